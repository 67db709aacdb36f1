"""Pictures of distributed arrays, one room a kind of picture; each is drawn from plain facts."""

from grader.arrays.blocks import Blocks, blocks, blocks_of
from grader.draw.bars import bars, bytes_sent
from grader.draw.changes import change
from grader.draw.collectives import buffers, collective
from grader.draw.curves import curves
from grader.draw.dispatch import dispatch
from grader.draw.films import Film, film, ring, turning
from grader.draw.gallery import specs
from grader.draw.grids import groups, mesh, route
from grader.draw.layouts import compare, devices, matmul, shards, text
from grader.draw.levels import levels
from grader.draw.picture import Picture
from grader.draw.places import placement
from grader.draw.pods import pod
from grader.draw.tables import table
from grader.draw.timetables import timetable
from grader.draw.triangles import triangles
from grader.timetables import simulate

__all__ = [
    "Blocks",
    "Film",
    "Picture",
    "bars",
    "blocks",
    "blocks_of",
    "buffers",
    "bytes_sent",
    "change",
    "collective",
    "compare",
    "curves",
    "devices",
    "dispatch",
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
]
