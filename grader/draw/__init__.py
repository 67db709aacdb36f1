"""Pictures of distributed arrays, one file a kind of picture; each is drawn from plain facts.

All of them have one grammar:

- a number is a device, counted row by row through the mesh;
- in a picture of an array the same colour is the same data, and other data has another colour;
- where boxes or bars are collectives, a collective has its own colour (`picture.OF_KIND`), the same in every picture;
- red is what is wrong, missing or in the way; dashes are what may still change;
- what has no colour of its own has the page's.

Pointing at a block, or choosing a device below, lights what the same device holds in every array of the picture.

A picture that only one lesson draws lies in that lesson's `pictures/`; its name is here all the same.
"""

import importlib
from typing import Any

from grader.arrays.blocks import Blocks, blocks, blocks_of
from grader.draw.bars import bars, bytes_sent
from grader.draw.changes import change
from grader.draw.collectives import buffers, collective
from grader.draw.curves import curves
from grader.draw.films import Film, animation, film, ring
from grader.draw.flows import flow
from grader.draw.gallery import specs
from grader.draw.grids import groups, mesh, route
from grader.draw.lanes import Meeting, lanes
from grader.draw.layouts import compare, devices, shards, text
from grader.draw.lines import growth
from grader.draw.matmuls import matmul
from grader.draw.picture import Picture
from grader.draw.places import placement
from grader.draw.spans import spans
from grader.draw.stripes import stripes
from grader.draw.timetables import timetable
from grader.renamed import renamed
from grader.timetables import interleaved, simulate

# Where in `grader.lessons` a picture is that only one lesson draws. It is imported when it is first asked for.
_OF_A_LESSON = {
    "bias_once": "shard_map.pictures.biases",
    "calls": "sharp_bits.pictures.calls",
    "contributions": "multihost.pictures.brought",
    "crossings": "cost.pictures.crossings",
    "descent": "data_parallel.pictures.descents",
    "dimensions": "explicit.pictures.dimensions",
    "dispatch": "experts.pictures.dispatch",
    "exchanges": "multihost.pictures.exchanges",
    "fits": "devices_and_meshes.pictures.fits",
    "hosts": "multihost.pictures.hosts",
    "ladder": "cost.pictures.ladders",
    "lattice": "shard_map.pictures.lattices",
    "levels": "fsdp.pictures.levels",
    "logsumexp": "collectives.pictures.logsumexp",
    "mapped": "shard_map.pictures.mapped",
    "matmul_cases": "matmul.pictures.products",
    "mirror": "gradients.pictures.mirrors",
    "needs": "automatic.pictures.needs",
    "pod": "real_chips.pictures.pods",
    "puzzle": "shardings.pictures.puzzles",
    "ring_sums": "rings.pictures.circulating",
    "sharding": "shardings.pictures.brackets",
    "stages": "placement.pictures.stages",
    "table": "gradients.pictures.tables",
    "triangles": "long_context.pictures.triangles",
    "two_streams": "rings.pictures.circulating",
    "ways": "cost.pictures.ways",
}

__all__ = [
    "Blocks",
    "Film",
    "Meeting",
    "Picture",
    "animation",
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
    "film",
    "flow",
    "groups",
    "growth",
    "interleaved",
    "lanes",
    "matmul",
    "mesh",
    "placement",
    "ring",
    "route",
    "shards",
    "simulate",
    "spans",
    "specs",
    "stripes",
    "text",
    "timetable",
    *_OF_A_LESSON,
]


# Until the next version.
_OLD_NAMES = {
    "brought": "contributions",
    "laid_out": "sharding",
    "products": "matmul_cases",
    "turning": "animation",
}


def __getattr__(name: str) -> Any:
    if name not in _OF_A_LESSON:
        return renamed(__name__, _OLD_NAMES, name)
    home = importlib.import_module(f"grader.lessons.{_OF_A_LESSON[name]}")
    globals()[name] = found = getattr(home, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
