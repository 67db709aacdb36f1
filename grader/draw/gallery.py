"""Layouts side by side, of one array or of several: to compare specs is to see what each entry does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jax.sharding import PartitionSpec as P
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.arrays.blocks import blocks
from grader.arrays.meshes import spelled
from grader.draw.layouts import draw_whole, grid_shape, text
from grader.draw.picture import PAGE, Picture

ACROSS, WIDE, GAP, HEADING = 4, 1.8, 0.35, 0.5  # panels in a row; inches of a panel, between panels, above each of them


def specs(shape: tuple[int, ...] | list[tuple[int, ...]], specs: Sequence[P], mesh: Any, title: str = "") -> Picture:
    """An array of rank 1 or 2 under each of the specs, every block with the devices that hold it.

    Copies of a block share a colour within a panel.

    Args:
      shape: of the array, which has one dimension or two; or a list with a shape for each of the specs.
      specs: the layouts.
      mesh: a Mesh, or axis names to sizes.
      title: stands above the picture.

    Example:
      >>> grader.draw.specs((4, 4), [P("x"), P()], {"x": 2})
      P('x'): 4×4 over x=2
        [0:2, 0:4] on device 0
        [2:4, 0:4] on device 1
      P(): 4×4 over x=2
        [0:4, 0:4] on devices 0, 1
    """
    shapes = shape if isinstance(shape, list) else [shape] * len(specs)
    for one in shapes:
        if not 1 <= len(one) <= 2:
            raise ValueError(f"a gallery shows arrays of rank 1 or 2, not of shape {one}")
    laid = [(spelled(spec), blocks(one, spec, mesh)) for one, spec in zip(shapes, specs, strict=True)]
    across = min(ACROSS, len(laid))
    down, high = math.ceil(len(laid) / across), max(map(_height, shapes))
    tall = down * high + (down - 1) * HEADING
    figure = Figure(figsize=(across * WIDE + (across - 1) * GAP, tall))
    panels = figure.subplots(
        down,
        across,
        squeeze=False,
        gridspec_kw={"left": 0, "right": 1, "bottom": 0, "top": 1, "wspace": GAP / WIDE, "hspace": HEADING / high},
    )
    for ax in panels.flat[len(laid) :]:
        ax.axis("off")
    for ax, (name, part) in zip(panels.flat, laid, strict=False):
        draw_whole(ax, part, ())
        ax.set_title(name, fontsize=9.5, color=PAGE)
    if len(set(shapes)) > 1:
        longest = max(length for one in shapes for length in one)
        for ax, one in zip(panels.flat, shapes, strict=False):
            _shrink(ax, one, longest, high)
    if title:
        figure.suptitle(title, fontsize=11, color=PAGE, y=1 + HEADING / tall, va="center")
    facts = [f"{name}: {text(part)}" for name, part in laid]
    return Picture(figure, "\n".join(filter(None, [title, *facts])))


def _shrink(ax: Axes, shape: Sequence[int], longest: int, high: float) -> None:
    """A panel at the top of its place, as large beside the others as its array is."""
    rows, columns = grid_shape(shape)
    place, part = ax.get_position(), max(0.45, WIDE * rows / longest) / high
    wide, tall = place.width * columns / longest, place.height * part
    ax.set_position((place.x0 + (place.width - wide) / 2, place.y1 - tall, wide, tall))


def _height(shape: Sequence[int]) -> float:
    """Inches of a panel: as high as its array is long, within what can be read."""
    rows, columns = grid_shape(shape)
    return min(WIDE, max(0.45, WIDE * rows / columns))
