"""How much is held at each moment, in several ways: a line of steps for each, on one scale that begins at zero."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from grader.draw.bars import amount
from grader.draw.curves import DASHES, LINES
from grader.draw.picture import FAINT, PAGE, Picture

WIDE, HIGH = 8.4, 2.9


def levels(ways: Mapping[str, Sequence[float]], unit: str, title: str = "") -> Picture:
    """For each way a line over the moments of a program: what is held, from zero on.

    Args:
      ways: name → what is held at each moment, in every way as many.
      unit: what is counted.
      title: stands above the picture.

    Example:
      >>> grader.draw.levels({"all at once": [2, 2, 2], "in turn": [0, 1, 1]}, "layers")
        all at once: 2, 2 layers at most
        in turn: 0 → 1, 1 layers at most
    """
    if len({len(held) for held in ways.values()}) != 1 or not all(map(len, ways.values())):
        raise ValueError("the ways have different numbers of moments, or none")
    facts = [f"  {name}: {_course(held)}, {amount(max(held))} {unit} at most" for name, held in ways.items()]
    return Picture(_drawn(ways, unit, title), "\n".join(filter(None, [title, *facts])))


def _course(held: Sequence[float]) -> str:
    """Where a line turns: its first level, its turning points, its last level; equal neighbours once."""
    seen = [level for level, _ in itertools.groupby(held)]
    inner = [b for a, b, c in zip(seen, seen[1:], seen[2:], strict=False) if (b - a) * (c - b) < 0]
    turns = [seen[0], *inner, seen[-1]] if len(seen) > 1 else seen
    return " → ".join(map(amount, turns))


def _drawn(ways: Mapping[str, Sequence[float]], unit: str, title: str) -> Figure:
    figure = Figure(figsize=(WIDE, HIGH), layout="constrained")
    ax = figure.subplots()
    for k, (name, held) in enumerate(ways.items()):
        steps = ax.stairs(held, range(len(held) + 1), baseline=None, label=name, gid=name, linewidth=2.2)
        steps.set(color=LINES[k % len(LINES)], linestyle=DASHES[k % len(DASHES)])
    ax.set_ylim(0, 1.12 * max(map(max, ways.values())))
    ax.set_xlim(0, len(next(iter(ways.values()))))
    ax.set_xticks([])
    ax.set_xlabel("time →", fontsize=9, color=PAGE)
    ax.tick_params(labelsize=8, colors=PAGE, left=False)
    ax.grid(axis="y", color=FAINT, linewidth=0.4)
    for name, side in ax.spines.items():
        side.set(visible=name in ("left", "bottom"), color=PAGE)
    ax.set_title(f"{title}: {unit}" if title else unit, fontsize=10, color=PAGE, loc="left")
    figure.legend(loc="outside right center", fontsize=8.5, frameon=False, labelcolor=PAGE)
    return figure
