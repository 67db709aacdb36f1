"""log Σ exp of a row that no device has: what each device reduces its block to, and what it sends."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grader.arrays.blocks import blocks_of
from grader.draw.collectives import STRIP, draw_bands
from grader.draw.picture import COLOURS, EDGE, QUIET, Picture, inches_of, sheet
from grader.draw.shapes import Box, block, lettered

CELL, HIGH, APART, TOP, DOWN = (
    0.42,
    0.3,
    0.25,
    0.75,
    0.46,
)  # inches: a number; its height; to the next device; above; a row
BEFORE_ROWS = ("a", "max a", "", "Σ exp(a − largest)", "", "largest + log Σ")  # labels the rows


@dataclass(frozen=True)
class Boiled:
    """A row by device, and the two numbers that each device makes of its block, of `itemsize` bytes each."""

    blocks: tuple[np.ndarray, ...]
    itemsize: int

    @property
    def most(self) -> list[float]:
        return [float(part.max()) for part in self.blocks]

    @property
    def sums(self) -> list[float]:
        return [float(np.exp(part - max(self.most)).sum()) for part in self.blocks]

    @property
    def result(self) -> float:
        return max(self.most) + float(np.log(sum(self.sums)))

    def __str__(self) -> str:
        zipped = zip(self.blocks, self.most, self.sums, strict=True)
        each = [
            f"  device {d}: {part.tolist()} → {most:g} → {total:.3g}" for d, (part, most, total) in enumerate(zipped)
        ]
        sent = f"{self.itemsize} B from each device"
        return "\n".join(
            [
                "its block → its largest → its Σ exp(a − largest)",
                *each,
                f"  pmax, {sent}: {max(self.most):g}",
                f"  psum, {sent}: {sum(self.sums):.3g}",
                f"  largest + log Σ = {self.result:.5g}",
            ]
        )


def logsumexp(row: jax.Array, title: str = "") -> Picture:
    """A row that is sharded over devices, reduced twice: to its largest element, and to a sum.

    Args:
      row: one dimension, sharded over a 1-D mesh; few elements.
      title: is above the picture.

    Example:
      >>> line = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> row = jax.device_put(np.float32([1, 2, 4, 3]), jax.NamedSharding(line, P("x")))
      >>> grader.draw.logsumexp(row)
      its block → its largest → its Σ exp(a − largest)
        device 0: [1.0, 2.0] → 2 → 0.185
        device 1: [4.0, 3.0] → 4 → 1.37
        pmax, 4 B from each device: 4
        psum, 4 B from each device: 1.55
        largest + log Σ = 4.4402
    """
    held = blocks_of(row)
    facts = Boiled(tuple(np.asarray(value) for value in held.values or ()), row.dtype.itemsize)
    left = 0.15 + inches_of(BEFORE_ROWS)
    wide = [len(part) * CELL for part in facts.blocks]
    across = sum(wide) + APART * (len(wide) - 1)
    figure, ax = sheet(max(left + across + 0.1, inches_of([title]) + 0.2), TOP + len(BEFORE_ROWS) * DOWN)
    lettered(ax, (0.05, 0.15), title, 10)
    for k, words in enumerate(BEFORE_ROWS):
        lettered(ax, (0.05, TOP + k * DOWN + HIGH / 2), words, 9)
    x = left
    for device, part in enumerate(facts.blocks):
        lettered(ax, (x + wide[device] / 2, TOP - 0.14), f"device {device}", 8, ha="center")
        for k, entry in enumerate(part):
            _number(ax, (x + k * CELL, 0, CELL), f"{entry:g}", device)
        _number(ax, (x, 1, wide[device]), f"{facts.most[device]:g}", device)
        _number(ax, (x, 3, wide[device]), f"{facts.sums[device]:.3g}", device)
        x += wide[device] + APART
    sent = f"{facts.itemsize} B from each device →"
    for k, words in ((2, f"pmax: {sent} {max(facts.most):g}"), (4, f"psum: {sent} {sum(facts.sums):.3g}")):
        _number_of_all(ax, (left, TOP + k * DOWN, across, HIGH), words, len(facts.blocks))
    lettered(ax, (left + across / 2, TOP + 5 * DOWN + HIGH / 2), f"{facts.result:.5g}, on every device", 9, ha="center")
    return Picture(figure, "\n".join(filter(None, [title, str(facts)])))


def _number(ax: Axes, place: tuple[float, int, float], words: str, device: int) -> None:
    """A number of a device's, in its colour; `place` is how far across, in which row, and how wide."""
    left, row, wide = place
    block(ax, (left, TOP + row * DOWN, wide, HIGH), COLOURS[device % len(COLOURS)], words, gid=f"held by {device}")


def _number_of_all(ax: Axes, box: Box, words: str, devices: int) -> None:
    """A number that is made of one from each device: a band below it for each, as `draw.collective` has them."""
    left, top, wide, high = box
    draw_bands(ax, range(devices), (left, top + high - STRIP, wide, STRIP))
    ax.add_patch(Rectangle((left, top), wide, high, facecolor="none", edgecolor=QUIET, linewidth=EDGE))
    lettered(ax, (left + wide / 2, top + (high - STRIP) / 2), words, 8.5, ha="center")
