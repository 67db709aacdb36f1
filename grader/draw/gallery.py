"""One array laid out in several ways, side by side: to compare specs is to see what each entry does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from jax.sharding import PartitionSpec as P
from matplotlib.figure import Figure

from grader.arrays.blocks import blocks
from grader.arrays.meshes import spelled
from grader.draw.layouts import draw_whole, text
from grader.draw.picture import PAGE, Picture

ACROSS, WIDE, GAP, HEADING = 4, 1.8, 0.35, 0.5  # panels in a row; inches of a panel, between panels, above each of them


def specs(shape: tuple[int, ...], specs: Sequence[P], mesh: Any, title: str = "") -> Picture:
    """An array of rank 1 or 2 under each of the specs, every block with the devices that hold it.

    Copies of a block share a colour within a panel.

    Args:
      shape: of the array, which has one dimension or two.
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
    if not 1 <= len(shape) <= 2:
        raise ValueError(f"a gallery shows arrays of rank 1 or 2, not of shape {shape}")
    laid = [(spelled(spec), blocks(shape, spec, mesh)) for spec in specs]
    across = min(ACROSS, len(laid))
    down, high = math.ceil(len(laid) / across), _height(shape)
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
    if title:
        figure.suptitle(title, fontsize=11, color=PAGE, y=1 + HEADING / tall, va="center")
    facts = [f"{name}: {text(part)}" for name, part in laid]
    return Picture(figure, "\n".join(filter(None, [title, *facts])))


def _height(shape: Sequence[int]) -> float:
    """Inches of a panel: as high as its array is long, within what can be read."""
    rows, columns = (1, 1, *shape)[-2:]
    return min(WIDE, max(0.45, WIDE * rows / columns))
