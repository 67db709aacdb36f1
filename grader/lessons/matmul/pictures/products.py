"""Sharded products, one a row: what one device has of A and of B, what it can make of C, and what it lacks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jax.sharding import PartitionSpec as P
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grader.arrays.blocks import Bounds, blocks
from grader.arrays.words import region
from grader.draw.picture import COLOURS, FAINT, INK, PAGE, QUIET, WRONG, Picture, inches_of, sheet
from grader.draw.shapes import Box, block, lettered

SIDE, APART, TOP, GAP = 0.92, 0.34, 0.62, 0.34  # inches: a matrix, between rows, above the first, between matrices
FIRST, SECOND, MADE = COLOURS[0], COLOURS[2], COLOURS[1]


@dataclass(frozen=True)
class Share:
    """What one device has of A and B, both of `length` rows and columns, and which part of C it should hold."""

    length: int
    a: Bounds
    b: Bounds
    wanted: Bounds

    @property
    def makes(self) -> Bounds | None:
        """The part of C for which it can multiply what it has; None where the blocks do not match along J."""
        return (self.a[0], self.b[1]) if self.a[1] == self.b[0] else None

    @property
    def finished(self) -> bool:
        """Whether it has all of J, so that what it makes is no part of a sum."""
        return self.a[1] == self.b[0] == (0, self.length)

    @property
    def lacks(self) -> str:
        """What it must be sent."""
        if self.makes is None:
            return "the rest of J"
        if not self.finished:
            return "the other partial sums"
        return "nothing" if self.makes == self.wanted else "the other blocks of C"

    def __str__(self) -> str:
        term = "" if self.finished else ", a partial sum"
        made = "no block of C" if self.makes is None else f"C{region(self.makes)}{term}"
        has = f"has A{region(self.a)} and B{region(self.b)}"
        return f"{has}, computes {made}, should hold C{region(self.wanted)}, lacks {self.lacks}"


def matmul_cases(rows: Mapping[str, Sequence[P]], mesh: Mapping[str, int], device: int, title: str = "") -> Picture:
    """For each product the blocks of one device: what it has, what it computes, and (in dashes) what it should hold.

    Args:
      rows: name → the specs of A, B and C.
      mesh: axis names to sizes.
      device: which one.
      title: is written above the picture.

    Example:
      >>> grader.draw.matmul_cases({"1": (P("x"), P(), P("x"))}, {"x": 2}, device=1)
      device 1, of matrices 4 × 4
        1: has A[2:4, 0:4] and B[0:4, 0:4], computes C[2:4, 0:4], should hold C[2:4, 0:4], lacks nothing
    """
    length = 2 * math.prod(mesh.values())
    shares = {
        name: Share(length, *(blocks((length, length), spec, mesh).bounds(device) for spec in specs))
        for name, specs in rows.items()
    }
    facts = [
        f"device {device}, of matrices {length} × {length}",
        *(f"  {name}: {share}" for name, share in shares.items()),
    ]
    left = 0.2 + inches_of(shares, 0.08)
    columns = [left + k * (SIDE + GAP) for k in range(3)]
    figure, ax = sheet(
        columns[2] + SIDE + 0.25 + inches_of([s.lacks for s in shares.values()]), TOP + len(shares) * (SIDE + APART)
    )
    lettered(ax, (0.05, 0.13), title or f"what device {device} has, computes of C, and should hold (dashed)", 10)
    for k, (name, share) in enumerate(shares.items()):
        y = TOP + k * (SIDE + APART)
        lettered(ax, (left - 0.15, y + SIDE / 2), name, 9, ha="right")
        for x, letters in zip(columns, ("I J", "J K", "I K"), strict=True):
            _draw_frame(ax, (x, y), letters)
        _draw_part(ax, share, share.a, (columns[0], y), FIRST, "A")
        _draw_part(ax, share, share.b, (columns[1], y), SECOND, "B")
        if share.makes:
            _draw_part(ax, share, share.makes, (columns[2], y), MADE, "A·B" if share.finished else "partial sum")
        _draw_wanted(ax, share, (columns[2], y))
        for x, sign in zip(columns[1:], "·=", strict=True):
            lettered(ax, (x - GAP / 2 - 0.04, y + SIDE / 2), sign, 26 if sign == "·" else 16, ha="center")
        lettered(ax, (columns[2] + SIDE + 0.15, y + SIDE / 2), f"lacks\n{share.lacks}", 9)
    return Picture(figure, "\n".join(filter(None, [title, *facts])))


def _draw_frame(ax: Axes, corner: tuple[float, float], letters: str) -> None:
    (x, y), (down, across) = corner, letters.split()
    ax.add_patch(Rectangle(corner, SIDE, SIDE, facecolor="none", edgecolor=FAINT, linewidth=1))
    lettered(ax, (x - 0.05, y + SIDE / 2), down, 8, ha="right", color=QUIET)
    lettered(ax, (x + SIDE / 2, y - 0.08), across, 8, ha="center", color=QUIET)


def _place(share: Share, part: Bounds, corner: tuple[float, float]) -> Box:
    (x, y), unit = corner, SIDE / share.length
    (top, bottom), (left, right) = part
    return x + left * unit, y + top * unit, (right - left) * unit, (bottom - top) * unit


def _draw_part(ax: Axes, share: Share, part: Bounds, corner: tuple[float, float], colour: str, words: str) -> None:
    box = _place(share, part, corner)
    block(ax, box, colour, words if min(box[2:]) > 0.2 and box[2] > inches_of([words], 0.07) else "", size=8)
    if words == "partial sum":
        unit = SIDE / share.length
        ax.vlines(
            [box[0] + k * unit for k in range(1, part[1][1] - part[1][0])],
            box[1],
            box[1] + box[3],
            color=INK,
            linewidth=0.4,
        )


def _draw_wanted(ax: Axes, share: Share, corner: tuple[float, float]) -> None:
    x, y, wide, high = _place(share, share.wanted, corner)
    colour = PAGE if share.lacks == "nothing" else WRONG
    frame = Rectangle((x, y), wide, high, facecolor="none", edgecolor=colour, linewidth=1.8, linestyle="--", zorder=4)
    ax.add_patch(frame)
