"""Pictures of distributed arrays, one room a kind of picture; each is drawn from plain facts."""

from grader.blocks import Blocks, blocks, blocks_of
from grader.draw.changes import change
from grader.draw.layouts import compare, devices, matmul, shards, text
from grader.draw.picture import Picture

__all__ = ["Blocks", "Picture", "blocks", "blocks_of", "change", "compare", "devices", "matmul", "shards", "text"]
