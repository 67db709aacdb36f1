"""Pictures of arrays whose spec is asked for: drawn from what each device holds, without any spec."""

from __future__ import annotations

from grader.arrays.blocks import Blocks
from grader.draw.layouts import shards
from grader.draw.picture import Picture

MESH = {"x": 4, "y": 2}
COLUMNS = (0, 4, 1, 5, 2, 6, 3, 7)  # device k holds this column, all of it
PUZZLES = {
    "columns": Blocks(MESH, (16, 8), tuple((slice(0, 16), slice(c, c + 1)) for c in COLUMNS)),
    "figure": Blocks(
        MESH,
        (8, 8),
        tuple((slice(4 * (k % 2), 4 * (k % 2) + 4), slice(2 * (k // 2), 2 * (k // 2) + 2)) for k in range(8)),
    ),
}


def puzzle(name: str) -> Picture:
    """An array on a 4 × 2 mesh. Which spec is this?

    Args:
      name: "columns" or "figure".

    Example:
      >>> print(str(grader.draw.puzzle("figure")).splitlines()[1])
        [0:4, 0:2] on device 0
    """
    return shards(PUZZLES[name])
