"""Pictures of distributed arrays, one file a kind of picture; each is drawn from plain facts.

All of them have one grammar:

- a number is a device, counted row by row through the mesh;
- in a picture of an array the same colour is the same data, and other data has another colour;
- where boxes or bars are collectives, a collective has its own colour (`picture.OF_KIND`), the same in every picture;
- red is what is wrong, missing or in the way; dashes are what may still change;
- what has no colour of its own has the page's.

Pointing at a block, or choosing a device below, lights what the same device holds in every array of the picture.
"""

from grader.arrays.blocks import Blocks, blocks, blocks_of
from grader.draw.bars import bars, bytes_sent
from grader.draw.biases import bias_once
from grader.draw.brackets import laid_out
from grader.draw.brought import brought
from grader.draw.calls import calls
from grader.draw.changes import change
from grader.draw.collectives import buffers, collective
from grader.draw.crossings import crossings
from grader.draw.curves import curves
from grader.draw.descents import descent
from grader.draw.dimensions import dimensions
from grader.draw.dispatch import dispatch
from grader.draw.exchanges import exchanges
from grader.draw.films import Film, film, ring, turning
from grader.draw.flows import flow
from grader.draw.gallery import specs
from grader.draw.grids import groups, mesh, route
from grader.draw.hosts import hosts
from grader.draw.ladders import ladder
from grader.draw.lanes import Meeting, lanes
from grader.draw.lattices import lattice
from grader.draw.layouts import compare, devices, shards, text
from grader.draw.levels import levels
from grader.draw.lines import growth
from grader.draw.logsumexp import logsumexp
from grader.draw.mapped import mapped
from grader.draw.matmuls import matmul
from grader.draw.mirrors import mirror
from grader.draw.needs import needs
from grader.draw.picture import Picture
from grader.draw.places import placement
from grader.draw.pods import pod
from grader.draw.products import products
from grader.draw.spans import spans
from grader.draw.stripes import stripes
from grader.draw.tables import table
from grader.draw.timetables import timetable
from grader.draw.triangles import triangles
from grader.draw.ways import ways
from grader.timetables import interleaved, simulate

__all__ = [
    "stripes",
    "spans",
    "products",
    "mirror",
    "mapped",
    "needs",
    "logsumexp",
    "growth",
    "lattice",
    "lanes",
    "Meeting",
    "ladder",
    "hosts",
    "interleaved",
    "flow",
    "crossings",
    "laid_out",
    "Blocks",
    "Film",
    "Picture",
    "bars",
    "bias_once",
    "blocks",
    "blocks_of",
    "brought",
    "buffers",
    "bytes_sent",
    "calls",
    "change",
    "collective",
    "compare",
    "curves",
    "descent",
    "devices",
    "dimensions",
    "dispatch",
    "exchanges",
    "film",
    "groups",
    "levels",
    "matmul",
    "mesh",
    "placement",
    "pod",
    "ring",
    "route",
    "shards",
    "simulate",
    "specs",
    "table",
    "text",
    "timetable",
    "triangles",
    "turning",
    "ways",
]
