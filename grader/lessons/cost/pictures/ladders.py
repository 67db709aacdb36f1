"""A ladder of numbers that differ by powers of ten, such as bandwidths: bars on a log scale, each beside the next."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from grader.draw.picture import COLOURS, QUIET, Picture, inches_of, sheet
from grader.draw.shapes import block, lettered

LOG = "log scale"  # half the length is not half as much
DECADE, HIGH, APART = 1.3, 0.3, 0.3  # inches: ten times as much, a bar, and from it to the next


def ladder(rungs: Mapping[str, float], unit: str, title: str = "") -> Picture:
    """A bar for each number, on a log scale, from the largest to the smallest, and how many times as much each is.

    Args:
      rungs: name → a number above zero, the largest first.
      unit: what is counted.
      title: stands above the picture.

    Example:
      >>> grader.draw.ladder({"HBM": 2.8e12, "wire": 1.8e11}, "bytes/s")
        HBM: 2.8e+12 bytes/s
        wire: 1.8e+11 bytes/s, 16 times less
    """
    sizes = list(rungs.values())
    if not sizes or min(sizes) <= 0 or sizes != sorted(sizes, reverse=True):
        raise ValueError("the rungs of a ladder are numbers above zero, the largest first")
    steps = ["", *(f"{_times(a / b)} times less" for a, b in itertools.pairwise(sizes))]
    said = [f"{size:.2g} {unit}" for size in sizes]
    facts = [f"  {name}: {', '.join(filter(None, line))}" for name, *line in zip(rungs, said, steps, strict=True)]
    least = math.floor(math.log10(sizes[-1]) - 0.3)
    left, top = 0.2 + inches_of(rungs), 0.45 if title else 0.12
    longest = DECADE * (math.log10(sizes[0]) - least)
    wide = left + longest + 0.1 + inches_of(said)
    figure, ax = sheet(max(wide, inches_of([title]) + 0.2), top + len(sizes) * (HIGH + APART))
    lettered(ax, (0.05, 0.15), title, 10)
    for k, (name, size) in enumerate(rungs.items()):
        y, length = top + k * (HIGH + APART), DECADE * (math.log10(size) - least)
        lettered(ax, (left - 0.1, y + HIGH / 2), name, 9, ha="right")
        block(ax, (left, y, length, HIGH), COLOURS[k % len(COLOURS)], gid=name)
        lettered(ax, (left + length + 0.08, y + HIGH / 2), said[k], 9)
        lettered(ax, (left + 0.08, y - APART / 2), f"↓ {steps[k]}" if k else "", 8, color=QUIET)
    lettered(ax, (left, top + len(sizes) * (HIGH + APART) - APART / 2), LOG, 8, color=QUIET)
    return Picture(figure, "\n".join(filter(None, [title, *facts])))


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 100 else f"{ratio:,.0f}"
