"""Curves of several runs, and how far each of them is from the one that is right.

Drawn from `Curves`, which is facts: for each run its numbers, and the name of the one that the others are held against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.draw.picture import FAINT, PAGE, Picture

# Okabe and Ito's hues at a strength that thin lines need, on a light page and on a dark one; any two are CIEDE2000 ≥ 12
# apart to everyone. With the dashes, nine runs can be told apart.
LINES = ("#096dad", "#b35812", "#2e9a69", "#b882b0", "#d08400", "#0099fe", "#726044", "#7b7c7f")
DASHES = ("-", "--", "-.", ":")
WIDE, HIGH = 9.6, 3.6
ROUNDING = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Curves:
    """Runs in order, each a number per step, all of the same length; `against` is the one that is right, and `within`
    says how far from it, step by step, another may be."""

    runs: Mapping[str, np.ndarray]
    against: str
    within: np.ndarray | None = None

    def deviation(self, run: str) -> np.ndarray:
        """How far a run is from the right one at each step, as a part of the right number."""
        right = self.runs[self.against]
        return np.abs(self.runs[run] - right) / np.abs(right)

    @property
    def bound(self) -> np.ndarray:
        """How far a run may be from the right one at each step, as a part of the right number."""
        right = self.runs[self.against]
        return np.full(right.shape, 100 * ROUNDING) if self.within is None else self.within / np.abs(right)

    @property
    def others(self) -> list[str]:
        return [run for run in self.runs if run != self.against]

    def __str__(self) -> str:
        right = self.runs[self.against]
        lines = [f"  {self.against}: {right[0]:.4g} → {right[-1]:.4g}"]
        for run in self.others:
            numbers, off = self.runs[run], self.deviation(run)
            lines.append(
                f"  {run}: {numbers[0]:.4g} → {numbers[-1]:.4g}, off by {_part(off[0])} at first, "
                f"{_part(off.max())} at most{self._held(off)}"
            )
        return "\n".join(lines)

    def _held(self, off: np.ndarray) -> str:
        if self.within is None:
            return ""
        beyond = np.flatnonzero(off > self.bound)
        return f", beyond the bound from step {beyond[0]} on" if beyond.size else ", within the bound at every step"


def _part(part: float) -> str:
    return "nothing but rounding" if part < 100 * ROUNDING else f"{part:.2g} of it"


def curves(
    runs: Mapping[str, Sequence[float]],
    against: str,
    title: str = "",
    within: Sequence[float] | np.ndarray | None = None,
) -> Picture:
    """Every run's curve, and beside it how far each is from the run `against`, on a log scale.

    Args:
      runs: name → one number per step, above zero, in every run as many.
      against: the name of the run that is right.
      title: stands above the curves.
      within: how far another run may be from it, one number per step in the unit of the runs: the bound that is drawn.
        Without it, that is a hundred roundings of float32.

    Example:
      >>> grader.draw.curves({"one device": [4.0, 2.0, 1.0], "eight": [4.0, 2.0, 1.5]}, against="one device")
        one device: 4 → 1
        eight: 4 → 1.5, off by nothing but rounding at first, 0.5 of it at most
    """
    bound = None if within is None else np.asarray(within, np.float64)
    facts = Curves({name: np.asarray(numbers, np.float64) for name, numbers in runs.items()}, against, bound)
    if against not in facts.runs:
        raise ValueError(f"there is no run named {against!r} to hold the others against")
    if len({numbers.shape for numbers in facts.runs.values()}) > 1:
        raise ValueError("the runs have different numbers of steps")
    if facts.within is not None and facts.within.shape != facts.runs[against].shape:
        raise ValueError("`within` should have one number for each step of the runs")
    if not all((numbers > 0).all() for numbers in facts.runs.values()):
        raise ValueError("these curves are drawn relative to one another: their numbers must be above zero")
    return Picture(_drawn(facts, title), "\n".join(filter(None, [title, str(facts)])))


def _drawn(facts: Curves, title: str) -> Figure:
    figure = Figure(figsize=(WIDE, HIGH), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, run in enumerate(facts.others):
        style = {"color": LINES[k % len(LINES)], "linestyle": DASHES[k % len(DASHES)], "linewidth": 1.6, "label": run}
        left.plot(facts.runs[run], **style, gid=run)
        right.plot(np.maximum(facts.deviation(run), ROUNDING), **style, gid=f"deviation of {run}")
    left.plot(facts.runs[facts.against], color=PAGE, linewidth=2.6, label=facts.against, gid=facts.against, zorder=0)
    right.plot(facts.bound, color=PAGE, linewidth=0.8, linestyle=(0, (1, 3)), gid="bound")
    last = len(facts.bound) - 1
    right.text(last, facts.bound[-1], "rounding, up to here", fontsize=8, color=PAGE, ha="right", va="bottom")
    for ax in (left, right):
        ax.set_yscale("log")
        ax.set_xlabel("step", fontsize=9, color=PAGE)
        plain_axes(ax)
    for axis in (left.yaxis, right.yaxis):
        axis.set_major_formatter("{x:g}")
    left.yaxis.set_minor_formatter("{x:g}")
    left.set_title(title or "every run", fontsize=10, color=PAGE, loc="left")
    right.set_title(f"relative distance from {facts.against}", fontsize=10, color=PAGE, loc="left")
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside right center", fontsize=8.5, frameon=False, labelcolor=PAGE
    )
    return figure


def plain_axes(ax: Axes, edge: str = PAGE) -> None:
    """Numbers without ticks, a faint grid, and edges to the left and below only."""
    ax.tick_params(which="both", labelsize=8, colors=PAGE, left=False, bottom=False)
    ax.grid(which="major", color=FAINT, linewidth=0.4)
    for name, side in ax.spines.items():
        side.set(visible=name in ("left", "bottom"), color=edge)
