"""Where a bias belongs when a matmul is summed over devices: after the sum. Before it, it counts once a device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from matplotlib.axes import Axes

from grader.draw.picture import COLOURS, OF_KIND, WRONG, Picture, inches_of, sheet
from grader.draw.shapes import Point, block, lettered, red_frame

CELL, HIGH, DOWN, TOP, APART = 0.66, 0.3, 0.44, 0.95, 0.55  # inches: a number; its height; a row; above; two panels
BESIDE_ROWS = ("a · w", "", "", "", "sigmoid")  # what stands before each row
RIGHT, EARLY = "psum, then the bias", "the bias, then psum"


@dataclass(frozen=True)
class Biased:
    """A term of a sum from each device, and the bias of that sum."""

    terms: tuple[float, ...]
    bias: float

    @property
    def right(self) -> float:
        return sum(self.terms) + self.bias

    @property
    def early(self) -> float:
        """With a bias in each term."""
        return sum(term + self.bias for term in self.terms)

    def __str__(self) -> str:
        n, b = len(self.terms), f"b = {_short(self.bias)}"
        terms, biased = (", ".join(map(_short, these)) for these in (self.terms, [t + self.bias for t in self.terms]))
        total = _short(sum(self.terms))
        right = f"{terms} → psum {total} → + b, once: {_short(self.right)} → sigmoid {_short(_sigmoid(self.right))}"
        early = f"{biased} → psum {_short(self.early)}, which has {n} b → sigmoid {_short(_sigmoid(self.early))}"
        return f"  {RIGHT} ({b}): {right}\n  {EARLY}: {early}"


def bias_once(terms: jax.Array, bias: float, title: str = "") -> Picture:
    """One element of sigmoid(a · w + b), twice: its terms are summed, then the bias. And, in red, the other way around.

    Args:
      terms: float[devices]; the term that each device has of a · w.
      bias: b of this element.
      title: is above the picture.

    Example:
      >>> grader.draw.bias_once(np.float32([1, 2]), -3)
        psum, then the bias (b = -3): 1, 2 → psum 3 → + b, once: 0 → sigmoid 0.5
        the bias, then psum: -2, -1 → psum -3, which has 2 b → sigmoid 0.0474
    """
    facts = Biased(tuple(map(float, np.asarray(terms))), float(bias))
    left, wide = 0.15 + inches_of(BESIDE_ROWS), CELL * len(facts.terms)
    places = (left, TOP), (left + wide + APART, TOP)
    across = places[1][0] + max(wide, inches_of([EARLY])) + 0.1
    figure, ax = sheet(max(across, inches_of([title])), TOP + len(BESIDE_ROWS) * DOWN)
    lettered(ax, (0.05, 0.15), title, 10)
    for k, words in enumerate(BESIDE_ROWS):
        lettered(ax, (0.05, TOP + k * DOWN + HIGH / 2), words, 9)
    for (x, _), words in zip(places, (RIGHT, EARLY), strict=True):
        lettered(ax, (x + wide / 2, 0.47), words, 9.5, ha="center", weight="bold")
    _draw_terms(ax, facts.terms, places[0], 0)
    _draw_sum(ax, sum(facts.terms), places[0], wide)
    block(ax, (left, TOP + 3 * DOWN, wide, HIGH), "none", f"+ b, once: {_short(facts.right)}", size=9)
    lettered(ax, (left + wide / 2, TOP + 4 * DOWN + HIGH / 2), _short(_sigmoid(facts.right)), 9, ha="center")
    _draw_terms(ax, facts.terms, places[1], 0)
    _draw_terms(ax, [term + facts.bias for term in facts.terms], places[1], 1)
    lettered(ax, (places[1][0] - 0.1, TOP + DOWN + HIGH / 2), "+ b", 9, ha="right", color=WRONG)
    red_frame(ax, (places[1][0], TOP + DOWN, wide, HIGH), "a bias on each device")
    _draw_sum(ax, facts.early, places[1], wide)
    for row, words in ((3, f"{len(facts.terms)} b in it"), (4, _short(_sigmoid(facts.early)))):
        middle = places[1][0] + wide / 2, TOP + row * DOWN + HIGH / 2
        lettered(ax, middle, words, 9, ha="center", color=WRONG)
    return Picture(figure, "\n".join(filter(None, [title, str(facts)])))


def _draw_terms(ax: Axes, terms: Sequence[float], corner: Point, row: int) -> None:
    """A number of each device's, in its colour; above the first row stand the devices."""
    left, top = corner
    for device, term in enumerate(terms):
        box = (left + device * CELL, top + row * DOWN, CELL, HIGH)
        block(ax, box, COLOURS[device % len(COLOURS)], _short(term), f"held by {device}")
        if row == 0:
            lettered(ax, (box[0] + CELL / 2, top - 0.14), f"device {device}", 8, ha="center")


def _draw_sum(ax: Axes, total: float, corner: Point, wide: float) -> None:
    left, top = corner
    block(ax, (left, top + 2 * DOWN, wide, HIGH), OF_KIND["all_reduce"], f"psum: {_short(total)}", size=9)


def _short(number: float) -> str:
    return f"{number:.3g}"


def _sigmoid(number: float) -> float:
    return 1 / (1 + math.exp(-number))
