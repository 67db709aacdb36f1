"""What every picture is: a figure that shows itself in a notebook, and the facts it was drawn from as text.

A picture has no ground of its own. Lines and texts take the colour of the page's text, so that they are seen on a light
page, on a dark one and on paper; blocks keep their colours, and what is written on them is dark.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.draw.svg import FAINT, PAGE, QUIET, WRONG, drawn, element

__all__ = ["COLOURS", "EDGE", "FAINT", "INK", "PAGE", "QUIET", "WRONG", "Picture", "inches_of", "sheet"]

# Okabe and Ito's palette, made paler: told apart by everyone, and dark text stays readable on it.
COLOURS = ("#a6cfe8", "#f5d08a", "#a5d9c4", "#f2b49b", "#d9b8d4", "#f6efa0", "#9db9d6", "#cfcfcf")
INK, EDGE = "#222222", 0.7  # on blocks and around them, whatever the page; points
LETTER, SMALL, SMALLER, SMALLEST = 0.085, 0.075, 0.068, 0.065  # inches that a letter takes, by its size

# Who takes SVG out of a page, because it does not trust it, takes its style sheets too: then the facts are seen.
INSTEAD = "<style>.many-devices-facts{{display:none}}</style><pre class=many-devices-facts>{}</pre>"


@dataclass(frozen=True)
class Picture:
    """A drawn figure: SVG in a notebook, plain facts everywhere else."""

    figure: Figure
    facts: str

    def svg(self, style: str = "") -> str:
        """The picture as an element of a page; `style` has declarations of CSS for it."""
        size, parts = drawn(self.figure)
        return element(size, self.facts, (markup for _, markup in parts), style)

    def _repr_html_(self) -> str:
        return f"{INSTEAD.format(html.escape(self.facts))}{self.svg()}"

    def __repr__(self) -> str:
        return self.facts


def inches_of(texts: Iterable[str], letter: float = LETTER) -> float:
    """Inches that the longest of these texts takes."""
    return letter * max(map(len, texts), default=0)


def sheet(wide: float, high: float) -> tuple[Figure, Axes]:
    """A figure with one invisible axes over all of it, its units inches from the top left."""
    figure = Figure(figsize=(wide, high))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(0, wide)
    ax.set_ylim(high, 0)
    ax.axis("off")
    return figure, ax
