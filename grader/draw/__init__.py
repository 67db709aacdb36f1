"""Pictures of distributed arrays, one room a kind of picture; each is drawn from plain facts."""

from grader.blocks import Blocks, blocks, blocks_of
from grader.draw.layouts import compare, devices, matmul, shards, text
from grader.draw.picture import Picture
from grader.draw.places import placement

__all__ = ["Blocks", "Picture", "blocks", "blocks_of", "compare", "devices", "matmul", "placement", "shards", "text"]
