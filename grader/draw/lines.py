"""Lines over one number, both on a log scale: how times or bytes grow, and where two ways cost the same."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.draw.bars import amount
from grader.draw.curves import DASHES, LINES, plain_axes
from grader.draw.picture import PAGE, QUIET, Picture

WIDE, HIGH = 7.4, 3.2  # inches
ABOVE, BELOW = ((-5, 5), "right"), ((6, -11), "left")  # where words stand beside a dot


@dataclass(frozen=True)
class Growth:
    """Lines over the same numbers `at`, which grow, all above zero; units in words."""

    at: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    across: str
    down: str

    def crossings(self) -> Iterator[tuple[str, str, float]]:
        """Where the first line crosses another, straight between two points on a log scale."""
        one, *others = self.lines
        for other in others:
            gaps = [math.log(a / b) for a, b in zip(self.lines[one], self.lines[other], strict=True)]
            for (x, g), (y, h) in itertools.pairwise(zip(self.at, gaps, strict=True)):
                if g * h < 0:
                    yield one, other, math.exp(math.log(x) + g / (g - h) * math.log(y / x))

    def __str__(self) -> str:
        ends = f"{amount(self.at[0])} and {amount(self.at[-1])} {self.across}"
        lines = [f"  {name}: {_short(y[0])} → {_short(y[-1])} {self.down}" for name, y in self.lines.items()]
        meet = [f"  {a} = {b} at {_short(x)} {self.across}" for a, b, x in self.crossings()]
        return "\n".join([f"  at {ends}", *lines, *meet])


def growth(
    at: Sequence[float], lines: Mapping[str, Sequence[float]], across: str, down: str, title: str = ""
) -> Picture:
    """Lines over one number, on log scales; a dot marks where the first crosses another.

    Args:
      at: the numbers across, growing, above zero.
      lines: name → a number above zero for each of `at`.
      across: what `at` counts.
      down: what the lines count.
      title: stands above the picture.

    Example:
      >>> grader.draw.growth([1, 100], {"arithmetic": [1, 100], "wire": [5, 5]}, "tokens", "ms")
        at 1 and 100 tokens
        arithmetic: 1 → 100 ms
        wire: 5 → 5 ms
        arithmetic = wire at 5 tokens
    """
    if any(len(y) != len(at) or min(y) <= 0 for y in lines.values()) or len(at) < 2:
        raise ValueError("each line has a number above zero for each of `at`, which are at least two")
    facts = Growth(tuple(at), {name: tuple(y) for name, y in lines.items()}, across, down)
    return Picture(_drawn(facts, title), "\n".join(filter(None, [title, str(facts)])))


def _short(number: float) -> str:
    return amount(float(f"{number:.3g}")) if number >= 0.01 else f"{number:.2g}"


def _drawn(facts: Growth, title: str) -> Figure:
    figure = Figure(figsize=(WIDE, HIGH), layout="constrained")
    ax = figure.subplots()
    ax.loglog()
    for k, (name, y) in enumerate(facts.lines.items()):
        colour, dashes = LINES[k % len(LINES)], DASHES[k % len(DASHES)]
        ax.plot(facts.at, y, color=colour, linestyle=dashes, linewidth=2.2, label=name, gid=name)
    met = sorted((math.exp(_between(facts.at, facts.lines[one], x)), x) for one, _, x in facts.crossings())
    for height, x in met:
        ax.plot([x], [height], "o", color=PAGE, markersize=5, gid="crossing")
        # Clear of the other lines, which end or cross in between.
        away, side = ABOVE if (height, x) == met[-1] else BELOW
        ax.annotate(_short(x), (x, height), away, textcoords="offset points", ha=side, fontsize=8, color=PAGE)
    _plain_axes(ax, facts)
    ax.set_title(title, fontsize=10, color=PAGE, loc="left", pad=22)
    figure.legend(loc="outside right center", fontsize=8.5, frameon=False, labelcolor=PAGE)
    return figure


def _between(at: Sequence[float], y: Sequence[float], x: float) -> float:
    """The logarithm of a line at x, straight between two points on a log scale."""
    k = next(k for k, right in enumerate(at[1:], 1) if right >= x)
    part = math.log(x / at[k - 1]) / math.log(at[k] / at[k - 1])
    return (1 - part) * math.log(y[k - 1]) + part * math.log(y[k])


def _plain_axes(ax: Axes, facts: Growth) -> None:
    ax.set_xlabel(facts.across, fontsize=9, color=PAGE)
    # Level and above its axis: a picture's SVG keeps where a text stands, and not how it is turned.
    ax.set_ylabel(facts.down, rotation=0, ha="left", va="bottom", fontsize=9, color=PAGE)
    ax.yaxis.set_label_coords(0, 1.02)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: _short(value))
        axis.set_minor_formatter(lambda value, _: "")
    plain_axes(ax, QUIET)
