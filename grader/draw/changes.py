"""What a change of layout looks like: before and after, and what must travel between the devices for it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.arrays.blocks import Blocks
from grader.draw.layouts import as_blocks, draw_whole, grid_shape, inches, text
from grader.draw.picture import INK, PAGE, Picture, held_by
from grader.draw.shapes import arrow, centred, rectangle
from grader.hlo.report import Report

BETWEEN = 2.3  # inches for the arrow and what stands on it


@dataclass(frozen=True)
class Change:
    """Two layouts, the collectives between them, and for each device how much of what it needs it lacks.

    `arriving` counts, device by device, the entries of the block afterwards that the device did not hold before;
    it is None where before and after are not the same array.
    """

    before: Blocks
    after: Blocks
    between: tuple[str, ...]
    arriving: tuple[int, ...] | None


def change(before: Any, after: Any, between: Any = (), title: str = "", device: int | None = None) -> Picture:
    """One layout, an arrow with the collectives between, and the other layout.

    Where before and after are one array, a piece afterwards has the colour of the block that it was in before.

    Args:
      before, after: a jax.Array or `Blocks` each, on the same devices.
      between: what moves: a text, several, or a report of `grader.communication`.
      title: stands above the picture.
      device: frame what this device holds before and after.

    Example:
      >>> shape, mesh = (4, 4), {"x": 2}
      >>> before, after = grader.draw.blocks(shape, P("x"), mesh), grader.draw.blocks(shape, P(), mesh)
      >>> grader.draw.change(before, after, "all_gather over x", device=0)
      before
      4×4 over x=2
        [0:2, 0:4] on device 0
        [2:4, 0:4] on device 1
      → all_gather over x
      → device 0 needs 16 entries,
      → 8 of them it has, 8 are missing
      after
      4×4 over x=2
        [0:4, 0:4] on devices 0, 1
    """
    facts = changed(as_blocks(before), as_blocks(after), between)
    widths = [inches(grid_shape(blocks.shape)[1]) for blocks in (facts.before, facts.after)]
    height = max(inches(grid_shape(blocks.shape)[0]) for blocks in (facts.before, facts.after))
    high = max(height, 0.22 * len(facts.between) + 0.9) + 0.4
    figure = Figure(figsize=(sum(widths) + BETWEEN + 0.4, high))
    left, middle, right = figure.subplots(1, 3, width_ratios=[widths[0], BETWEEN, widths[1]])
    origin = facts.before if facts.arriving is not None else None
    for ax, blocks, name in ((left, facts.before, "before"), (right, facts.after, "after")):
        draw_whole(ax, blocks, (), origin)
        ax.set_title(name, fontsize=10, color=PAGE)
        if device is not None:
            _frame_device(ax, blocks, device)
    _draw_arrow(middle, [*facts.between, *_lacking(facts, device)])
    if title:
        figure.suptitle(title, fontsize=11, color=PAGE, y=1.04)
    return Picture(figure, "\n".join(filter(None, [title, change_text(facts, device)])), device=device)


def changed(before: Blocks, after: Blocks, between: Any = ()) -> Change:
    """The facts of a change; `between` as for `change`."""
    if len(before.indices) != len(after.indices):
        raise ValueError(f"before lies on {len(before.indices)} devices, after on {len(after.indices)}")
    if max(len(before.shape), len(after.shape)) > 2:
        raise ValueError("a change is drawn of arrays with at most two dimensions")
    alike = before.shape == after.shape and not before.partial_over and not after.partial_over
    lacking = tuple(_missing(old, new) for old, new in zip(before.indices, after.indices, strict=True))
    return Change(before, after, _lines(between), lacking if alike else None)


def change_text(facts: Change, device: int | None = None) -> str:
    """The change in words, from top to bottom."""
    moved = facts.between or ("nothing is sent",)
    return "\n".join(
        [
            "before",
            text(facts.before),
            *(f"→ {line}" for line in (*moved, *_lacking(facts, device))),
            "after",
            text(facts.after),
        ]
    )


def _lines(between: Any) -> tuple[str, ...]:
    if isinstance(between, str):
        return (between,)
    if isinstance(between, Report):
        return tuple(f"{c.kind} over {', '.join(c.axes)}: {c.bytes_sent:,} B{c.grouping}" for c in between.collectives)
    if isinstance(between, Iterable):
        return tuple(map(str, between))
    raise TypeError(f"between two layouts stand texts or a report, not a {type(between).__name__}")


def _missing(old: tuple[slice, ...], new: tuple[slice, ...]) -> int:
    """How many entries of the part `new` are not in the part `old`."""
    needed, common = 1, 1
    for a, b in zip(old, new, strict=True) if len(old) == len(new) else ():
        needed *= b.stop - b.start
        common *= max(0, min(a.stop, b.stop) - max(a.start, b.start))
    return needed - common


def _lacking(facts: Change, device: int | None) -> tuple[str, ...]:
    if device is None or facts.arriving is None:
        return ()
    needs = math.prod(stop - start for start, stop in facts.after.bounds(device))
    lacks = facts.arriving[device]
    return (f"device {device} needs {needs} entries,", f"{needs - lacks} of them it has, {lacks} are missing")


def _frame_device(ax: Axes, blocks: Blocks, device: int) -> None:
    """A dark frame, seen on the blocks, in a wider one of the page's ink, seen around them."""
    (top, bottom), (left, right) = ((0, 1), (0, 1), *blocks.bounds(device))[-2:]
    box = (left, top, right - left, bottom - top)
    for ink, wide, gid in ((PAGE, 3.4, held_by(device)), (INK, 2, held_by(device, name=f"device {device}"))):
        rectangle(ax, box, edge=ink, width=wide, fill=False, zorder=4, clip_on=False, gid=gid)


def _draw_arrow(ax: Axes, lines: list[str]) -> None:
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.axis("off")
    arrow(ax, (0.02, 0.5), (0.98, 0.5), mutation_scale=18, linewidth=1.6, shrinkA=2, shrinkB=2)
    centred(ax, (0.5, 0.56), "\n".join(lines) or "nothing is sent", va="bottom")
