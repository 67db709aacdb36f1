"""Pictures of distributed arrays, one room a kind of picture; each is drawn from plain facts."""

from grader.blocks import Blocks, blocks, blocks_of
from grader.draw.films import Film, film, ring, turning
from grader.draw.layouts import compare, devices, matmul, shards, text
from grader.draw.picture import Picture

__all__ = ["Blocks", "Film", "Picture", "blocks", "blocks_of", "compare", "devices", "film", "matmul", "ring", "shards",
           "text", "turning"]
