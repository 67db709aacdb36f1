"""Products of sharded matrices, A · B = C: what one device multiplies is in colour, and what it makes of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from grader.arrays.blocks import Blocks
from grader.draw.layouts import as_blocks, grid_shape, inches, text, who_holds
from grader.draw.picture import COLOURS, QUIET, Picture, held_by, inches_of, sheet
from grader.draw.shapes import Point, block, lettered

WIDEST_ROW = 9.0  # inches; wider products are drawn smaller
TITLE, ABOVE, LEFT, BETWEEN, APART = 0.35, 0.5, 0.3, 0.55, 0.25  # inches: above all, above a matrix, left of it, …


def matmul(*arrays: Any, title: str = "", names: Sequence[str] = "ABCDE", device: int = 0) -> Picture:
    """A · B = C in a row; with five arrays also C · D = E, below it. Each block has the devices that hold it.

    The blocks of one device are in colour, those of each array in another: what it holds of A is other data than what
    it holds of B. An array keeps its colour from one row to the next. (Pointing at a block lights another device's.)

    Args:
      arrays: three, or five; a jax.Array of two dimensions or `Blocks` each.
      title: stands above the picture.
      names: what the arrays are called.
      device: whose blocks are in colour.

    Example:
      >>> a, b, c = (grader.draw.blocks((4, 4), spec, {"x": 2}) for spec in (P("x"), P(), P("x")))
      >>> grader.draw.matmul(a, b, c)
      A: 4×4 over x=2
        [0:2, 0:4] on device 0
        [2:4, 0:4] on device 1
      B: 4×4 over x=2
        [0:4, 0:4] on devices 0, 1
      C: 4×4 over x=2
        [0:2, 0:4] on device 0
        [2:4, 0:4] on device 1
      in colour: the blocks of device 0
    """
    parts = [as_blocks(array) for array in arrays]
    if len(parts) not in (3, 5) or len(names) < len(parts):
        raise ValueError(
            f"a product is drawn of three arrays, each with a name, and two products of five: the result of the first "
            f"is a factor of the second; here are {len(parts)} arrays and {len(names)} names"
        )
    if not 0 <= device < len(parts[0].indices):
        raise ValueError(f"the devices are 0 to {len(parts[0].indices) - 1}; there is no device {device}")
    rows = [range(k, k + 3) for k in range(0, len(parts) - 2, 2)]
    scale = min(1.0, WIDEST_ROW / max(sum(_size(parts[k])[0] for k in row) for row in rows))
    wide = max(sum(_size(parts[k], scale)[0] for k in row) for row in rows) + LEFT + 2 * BETWEEN
    high = [max(_size(parts[k], scale)[1] for k in row) + ABOVE + APART for row in rows]
    above = TITLE if title else 0.0
    figure, ax = sheet(max(wide, inches_of([title])) + 0.1, above + sum(high))
    lettered(ax, (0.05, 0.15), title, 10)
    for n, row in enumerate(rows):
        left, top = LEFT, above + sum(high[:n]) + ABOVE
        for k, sign in zip(row, ("·", "=", ""), strict=True):
            _draw_matrix(ax, parts[k], (left, top), scale, COLOURS[k], device)
            across, down = _size(parts[k], scale)
            unfinished = f"  Σ {', '.join(parts[k].partial_over)}" if parts[k].partial_over else ""
            lettered(ax, (left + across / 2, top - 0.33), names[k] + unfinished, 11, ha="center")
            middle = left + across + BETWEEN / 2 - 0.05, top + down / 2
            lettered(ax, middle, sign, 26 if sign == "·" else 18, ha="center")
            left += across + BETWEEN
    words = [f"{name}: {text(part)}" for name, part in zip(names, parts, strict=False)]
    said = f"in colour: the blocks of device {device}"
    return Picture(figure, "\n".join(filter(None, [title, *words, said])), device=device)


def _size(part: Blocks, scale: float = 1.0) -> tuple[float, float]:
    """Inches across and down."""
    rows, columns = grid_shape(part.shape)
    return scale * inches(columns), scale * inches(rows)


def _draw_matrix(ax: Axes, part: Blocks, corner: Point, scale: float, colour: str, device: int) -> None:
    (x, y), (across, down) = corner, _size(part, scale)
    rows, columns = grid_shape(part.shape)
    lettered(ax, (x + across / 2, y - 0.1), str(columns), 7, ha="center", color=QUIET)
    lettered(ax, (x - 0.05, y + down / 2), str(rows), 7, ha="right", color=QUIET)
    sigma = "Σ " if part.partial_over else ""
    for bounds, who in who_holds(part).items():
        (top, bottom), (left, right) = ((0, 1), (0, 1), *bounds)[-2:]
        box = (
            x + left / columns * across,
            y + top / rows * down,
            (right - left) / columns * across,
            (bottom - top) / rows * down,
        )
        label = sigma + ",".join(map(str, who))
        block(ax, box, colour if device in who else "none", label, held_by(*who), size=9)
