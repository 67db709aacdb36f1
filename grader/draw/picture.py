"""What every picture is: a figure that shows itself in a notebook, and the facts it was drawn from as text.

A picture brings its own light ground, a card with round corners: what is written beside the blocks is then as legible
on a dark page as on a white one, and on paper.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image, ImageDraw

# Okabe and Ito's palette, made paler: told apart by everyone, and dark text stays readable on it.
COLOURS = ("#a6cfe8", "#f5d08a", "#a5d9c4", "#f2b49b", "#d9b8d4", "#f6efa0", "#9db9d6", "#cfcfcf")
GROUND, INK, QUIET, WRONG = "#f3f4f6", "#222222", "#5c5c5c", "#b83227"  # all legible on the ground
MARGIN, CORNER = 0.14, 8  # inches around what is drawn; pixels
LETTER, SMALL, SMALLER, SMALLEST = 0.085, 0.075, 0.068, 0.065  # inches that a letter takes, by its size


@dataclass(frozen=True)
class Picture:
    """A drawn figure: PNG in a notebook, plain facts everywhere else."""

    figure: Figure
    facts: str

    def png(self) -> bytes:
        drawn, file = io.BytesIO(), io.BytesIO()
        FigureCanvasAgg(self.figure)
        self.figure.savefig(drawn, format="png", dpi=100, bbox_inches="tight", pad_inches=MARGIN, facecolor=GROUND)
        with_round_corners(Image.open(drawn)).save(file, format="png")
        return file.getvalue()

    def _repr_png_(self) -> bytes:
        return self.png()

    def __repr__(self) -> str:
        return self.facts


def with_round_corners(image: Image.Image) -> Image.Image:
    """The picture as a card: its corners are seen through."""
    wide, high = image.size
    large = Image.new("L", (4 * wide, 4 * high))  # drawn large and made small, so that the corners are smooth
    ImageDraw.Draw(large).rounded_rectangle((0, 0, 4 * wide - 1, 4 * high - 1), 4 * CORNER, fill=255)
    image.putalpha(large.reduce(4))
    return image


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
