"""Bars side by side: bytes, memory or time of several ways to do the same, each made of its parts.

A collective has the same colour in every picture; over other axes of the mesh it is ruled besides. Drawn from `Bars`,
which is facts: for each alternative its parts and how much each is.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.draw.picture import COLOURS, EDGE, FAINT, INK, OF_KIND, WRONG, Picture, inches_of, sheet
from grader.draw.shapes import Box, centred, lettered, rectangle
from grader.hlo.report import Report
from grader.programs.structure import Structure

LONG, HIGH, APART = 4.2, 0.3, 0.16  # inches: the longest bar, a bar's height, the space below it
RULED = 0.07  # inches from one rule to the next
PIXEL = 1 / 100  # inches: what is shorter cannot be told by its colour

Against = float | Mapping[str, float]  # one size for all bars, or one for each


@dataclass(frozen=True)
class Bars:
    """Alternatives in order, each a list of parts with their sizes, in one unit; and sizes to hold them against."""

    parts: Mapping[str, Mapping[str, float]]
    unit: str
    marks: Mapping[str, Against]

    @property
    def totals(self) -> dict[str, float]:
        return {name: sum(sizes.values()) for name, sizes in self.parts.items()}

    @property
    def kinds(self) -> list[str]:
        """The names of all parts, in the order in which they first come."""
        return list(dict.fromkeys(itertools.chain.from_iterable(self.parts.values())))

    def __str__(self) -> str:
        lines = []
        for name, sizes in self.parts.items():
            made_of = ", ".join(f"{part} {amount(size)}" for part, size in sizes.items() if part and size)
            lines.append(f"  {name}: {amount(self.totals[name])} {self.unit}" + (f" = {made_of}" if made_of else ""))
        lines += [f"  {what}: {_told(mark)} {self.unit}" for what, mark in self.marks.items()]
        return "\n".join(lines)


def amount(size: float) -> str:
    """A number as one reads it: whole where it is whole, else with three digits."""
    return f"{size:,.0f}" if float(size).is_integer() else f"{size:,.3g}" if abs(size) < 1000 else f"{size:,.0f}"


def _told(mark: Against) -> str:
    if isinstance(mark, Mapping):
        return ", ".join(f"{name} {amount(size)}" for name, size in mark.items())
    return f"at {amount(mark)}"


def bars(
    alternatives: Mapping[str, Mapping[str, float] | float],
    unit: str = "B",
    title: str = "",
    marks: Mapping[str, Against] | None = None,
    inside: bool = False,
) -> Picture:
    """One bar for each alternative, to one scale, its parts in colours; "two: this" and "two: that" are a pair.

    Args:
      alternatives: name → its parts (a dict from part to size), or one number.
      unit: what the sizes are counted in.
      title: stands above the picture.
      marks: what bars are held against, such as the room that there is → how much, a line through all of them; or a
        guess → how much for each alternative, a line across its bar.
      inside: write each part's size into it, in place of their sum beside the bar; the unit stands beside the first.

    Example:
      >>> grader.draw.bars({"copies": {"weights": 4, "Adam": 8}, "shards": 3}, "GB")
        copies: 12 GB = weights 4, Adam 8
        shards: 3 GB
    """
    if not alternatives:
        raise ValueError("there is nothing to draw: `alternatives` is empty")
    facts = Bars(
        {name: dict(parts) if isinstance(parts, Mapping) else {"": parts} for name, parts in alternatives.items()},
        unit,
        marks or {},
    )
    if any(size < 0 for parts in facts.parts.values() for size in parts.values()):
        raise ValueError("a bar cannot be shorter than nothing: the sizes must not be negative")
    return Picture(_drawn(facts, title, inside), "\n".join(filter(None, [title, str(facts)])))


def bytes_sent(
    reports: Mapping[str, Report | Structure], title: str = "", marks: Mapping[str, Against] | None = None
) -> Picture:
    """What each device sends in several programs, by collective and mesh axis, from their `communication`.

    Args:
      reports: name → the report of `grader.communication`, or what a program asks for as it is written.
      title: stands above the picture.
      marks: what the bytes are held against, as in `bars`.

    Example:
      >>> mesh = jax.make_mesh((4,), ("x",))
      >>> array = jax.device_put(np.arange(8.0), jax.NamedSharding(mesh, P("x")))
      >>> total = jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
      >>> grader.draw.bytes_sent({"a sum": grader.communication(total, array)})
        a sum: 12 B sent per device = all_reduce over x 12
    """
    return bars({name: sent_by_kind(report) for name, report in reports.items()}, "B sent per device", title, marks)


def sent_by_kind(report: Report | Structure) -> dict[str, int]:
    """Bytes sent per device for each kind of collective and its axes; those that send nothing left out."""
    sums: Counter[str] = Counter()
    for c in report.collectives:
        sums[f"{c.kind} over {', '.join(c.axes)}"] += c.bytes_sent
    return {kind: sent for kind, sent in sums.items() if sent}


def looks(kinds: Sequence[str]) -> dict[str, tuple[str, int]]:
    """The colour of each part, and how many other parts before it have the same: a collective's over other axes.

    A bar without parts, beside bars that have some, is grey: it is none of them.
    """
    known = {kind: OF_KIND[name] for kind in kinds if (name := kind.split(" ")[0]) in OF_KIND}
    if any(kinds):
        known[""] = FAINT
    free = itertools.cycle(colour for colour in COLOURS if colour not in known.values())
    colours = [known.get(kind) or next(free) for kind in kinds]
    return {
        kind: (colour, colours[:k].count(colour)) for k, (kind, colour) in enumerate(zip(kinds, colours, strict=True))
    }


def _draw_part(ax: Axes, box: Box, look: tuple[str, int], gid: str = "") -> None:
    (x, y, wide, high), (colour, nth) = box, look
    rectangle(ax, box, colour, gid=gid)
    if nth:
        rules = np.arange(x + RULED / nth, x + wide, RULED / nth)
        ax.vlines(rules, y, y + high, color=INK, linewidth=EDGE)


def _rows(names: Sequence[str]) -> list[float]:
    """Where each bar begins, in inches below the first: what is called alike before a colon stands together, if there
    are several such groups."""
    groups = [name.partition(": ")[0] for name in names]
    several = 1 < len(set(groups)) < len(groups)
    gaps = [0.0, *(APART * (several and one != other) for one, other in itertools.pairwise(groups))]
    return [row * (HIGH + APART) + gap for row, gap in enumerate(itertools.accumulate(gaps))]


def _beside(facts: Bars, inside: bool) -> dict[str, str]:
    """What is written beside each bar: its sum; where sizes stand in the bars, their unit, and that once."""
    if inside:
        first, *others = facts.parts
        return {first: facts.unit} | dict.fromkeys(others, "")
    return {name: f"{amount(total)} {facts.unit}" for name, total in facts.totals.items()}


def _drawn(facts: Bars, title: str, inside: bool) -> Figure:
    longest = max(*facts.totals.values(), *itertools.chain.from_iterable(map(_sizes, facts.marks.values())), 0) or 1.0
    left = 0.2 + inches_of(facts.parts)
    totals = _beside(facts, inside)
    least = PIXEL * longest / LONG
    kinds = [
        kind for kind in facts.kinds if kind and any(sizes.get(kind, 0) >= least for sizes in facts.parts.values())
    ]
    top = (0.45 if title else 0.12) + 0.22 * bool(facts.marks)
    wide = max(left + LONG + 0.2 + inches_of(totals.values()), inches_of([title]) + 0.2)
    rows = _rows(list(facts.parts))
    bottom = top + rows[-1] + HIGH + APART
    figure, ax = sheet(wide, bottom + 0.3 * len(kinds) + 0.1)
    lettered(ax, (0.05, 0.15), title, 10)
    look = looks(facts.kinds)
    for row, (name, parts) in zip(rows, facts.parts.items(), strict=True):
        x, y = left, top + row
        lettered(ax, (left - 0.1, y + HIGH / 2), name, 9, ha="right")
        for part, size in parts.items():
            length = LONG * size / longest
            _draw_part(ax, (x, y, length, HIGH), look[part], f"{name}: {part}")
            if inside and length > inches_of([amount(size)]):
                centred(ax, (x + length / 2, y + HIGH / 2), amount(size), 9, color=INK)
            x += length
        for what, mark in facts.marks.items():
            there = left + LONG * (mark[name] if isinstance(mark, Mapping) else mark) / longest
            if isinstance(mark, Mapping):
                _draw_mark(ax, there, (y - 0.06, y + HIGH + 0.06), what)
                if there < x:
                    _draw_mark(ax, there, (y, y + HIGH), colour=INK)
            if x < there < x + 0.08 + inches_of([totals[name]]):
                x = there  # what is written beside a bar would stand across the line
        lettered(ax, (x + 0.08, y + HIGH / 2), totals[name], 9)
    for what, mark in facts.marks.items():
        x = left + LONG * _sizes(mark)[0] / longest
        if not isinstance(mark, Mapping):
            _draw_mark(ax, x, (top - 0.06, bottom - APART + 0.06), what)
        centred(ax, (x, top - 0.15), what, color=WRONG)
    for k, kind in enumerate(kinds):
        y = bottom + 0.3 * k + 0.06
        _draw_part(ax, (left, y, 0.22, 0.17), look[kind])
        lettered(ax, (left + 0.32, y + 0.09), kind, 8.5)
    return figure


def _sizes(mark: Against) -> list[float]:
    return list(mark.values()) if isinstance(mark, Mapping) else [mark]


def _draw_mark(ax: Axes, x: float, ys: tuple[float, float], gid: str = "", colour: str = WRONG) -> None:
    ax.plot([x, x], ys, color=colour, linewidth=1.4, linestyle="--", gid=gid)
