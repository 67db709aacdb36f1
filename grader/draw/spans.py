"""Spans of time on lanes, one below the other and to one scale: who is busy with what, from when to when."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from grader.draw.bars import amount
from grader.draw.picture import COLOURS, QUIET, WRONG, Picture, inches_of, sheet
from grader.draw.shapes import block, lettered

LONG, LANE = 5.6, 0.36  # inches: all the time, and a lane
Span = tuple[str, float, float]  # what, from when, until when


def spans(
    lanes: Mapping[str, Sequence[Span]], unit: str, title: str = "", marks: Mapping[str, float] | None = None
) -> Picture:
    """A lane for each name, with a bar for each span of time; the same work has the same colour.

    Args:
      lanes: name → (what, from when, until when), in order.
      unit: of time.
      title: stands above the picture.
      marks: what happens at a moment → when; a line through all lanes.

    Raises:
      ValueError: a span ends before it begins, or before the one in front of it on its lane has ended.

    Example:
      >>> grader.draw.spans({"wire": [("gather", 0, 87)], "product": [("multiply", 87, 311)]}, "µs")
        wire: gather 0 to 87
        product: multiply 87 to 311
        all of it: 311 µs
    """
    moments = [moment for lane in lanes.values() for _, start, end in lane for moment in (start, end)]
    for name, lane in lanes.items():
        if sorted(times := [t for _, *span in lane for t in span]) != times:
            raise ValueError(f"the spans of {name!r} overlap, or end before they begin: {times}")
    if not moments:
        raise ValueError("there is nothing to draw: no lane has a span")
    last = max(*moments, *(marks or {}).values())
    facts = [
        f"  {name}: {', '.join(f'{what} {amount(a)} to {amount(b)}' for what, a, b in lane)}"
        for name, lane in lanes.items()
    ]
    facts += [f"  {what}: at {amount(when)}" for what, when in (marks or {}).items()]
    left, top = 0.2 + inches_of(lanes), (0.4 if title else 0.1) + 0.22 * bool(marks)
    figure, ax = sheet(max(left + LONG + 0.4, inches_of([title]) + 0.2), top + len(lanes) * LANE + 0.35)
    lettered(ax, (0.05, 0.15), title, 10)
    kinds = list(dict.fromkeys(what for lane in lanes.values() for what, *_ in lane))
    colours = dict(zip(kinds, itertools.cycle(COLOURS)))
    for k, (name, lane) in enumerate(lanes.items()):
        y = top + k * LANE
        lettered(ax, (left - 0.1, y + LANE / 2), name, 9, ha="right")
        for what, start, end in lane:
            x, wide = left + LONG * start / last, LONG * (end - start) / last
            words = what if inches_of([what], 0.07) < wide else ""
            block(ax, (x, y + 0.05, wide, LANE - 0.1), colours[what], words, f"{name}: {what}", size=7.5)
    bottom = top + len(lanes) * LANE
    for what, when in (marks or {}).items():
        x = left + LONG * when / last
        ax.plot([x, x], [top - 0.04, bottom + 0.02], color=WRONG, linewidth=1.4, linestyle="--", gid=what, zorder=0.5)
        lettered(ax, (x, top - 0.13), what, 8, ha="center", color=WRONG)
    for moment in sorted({0.0, *moments}):
        x = left + LONG * moment / last
        ax.plot([x, x], [bottom, bottom + 0.05], color=QUIET, linewidth=0.8)
    shown = _spread(sorted({0.0, *moments}), last)
    for moment in shown:
        said = f"{amount(moment)} {unit}" if moment == shown[-1] else amount(moment)
        lettered(ax, (left + LONG * moment / last, bottom + 0.15), said, 7.5, ha="center", color=QUIET)
    return Picture(figure, "\n".join(filter(None, [title, *facts, f"  all of it: {amount(max(moments))} {unit}"])))


def _spread(moments: Sequence[float], last: float) -> list[float]:
    """The moments whose numbers have room beside one another, the last one among them."""
    shown = [moments[-1]]
    for moment in reversed(moments[:-1]):
        if (shown[0] - moment) / last * LONG > 0.45:
            shown.insert(0, moment)
    return shown
