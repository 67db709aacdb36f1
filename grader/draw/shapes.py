"""What most pictures are made of: blocks with something written on them, words beside them, arrows."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from grader.draw.picture import EDGE, FAINT, INK, PAGE, WRONG

Box = tuple[float, float, float, float]  # left, top, wide, high; inches
Point = tuple[float, float]  # across and down; inches


def rectangle(ax: Axes, box: Box, colour: str = "none", edge: str = INK, width: float = EDGE, **looks: Any) -> None:
    """A rectangle, filled with a colour if one is said."""
    left, top, wide, high = box
    ax.add_patch(Rectangle((left, top), wide, high, facecolor=colour, edgecolor=edge, linewidth=width, **looks))


def block(ax: Axes, box: Box, colour: str, words: str = "", gid: str = "", size: float = 8) -> None:
    """A block of data, dark words in its middle; without a colour ("none") an empty place, its words in the page's."""
    left, top, wide, high = box
    empty = colour == "none"
    rectangle(ax, box, colour, FAINT if empty else INK, linestyle=":" if empty else "-", gid=gid or None)
    if words:
        middle = left + wide / 2, top + high / 2
        lettered(ax, middle, words, size, color=PAGE if empty else INK, ha="center", gid=gid or None, zorder=3)


def red_frame(ax: Axes, box: Box, gid: str) -> None:
    """A red frame: what is wrong, or in the way."""
    rectangle(ax, box, edge=WRONG, width=2, gid=gid)


def lettered(ax: Axes, place: Point, words: str, size: float = 8, **looks: Any) -> None:
    """Words beside a place, in the page's colour if no other is said."""
    ax.text(*place, words, fontsize=size, **{"color": PAGE, "va": "center", **looks})


def centred(ax: Axes, place: Point, words: str, size: float = 8, **looks: Any) -> None:
    """Words around a place."""
    lettered(ax, place, words, size, ha="center", **looks)


def arrow(ax: Axes, start: Point, end: Point, **looks: Any) -> None:
    """An arrow from one place to another."""
    look: dict[str, Any] = {"color": PAGE, "linewidth": 1.2, "mutation_scale": 9, "arrowstyle": "-|>"}
    ax.add_patch(FancyArrowPatch(start, end, **{"shrinkA": 0, "shrinkB": 0, **look, **looks}))
