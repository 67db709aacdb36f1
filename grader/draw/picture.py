"""What every picture is: a figure that shows itself in a notebook, and the facts it was drawn from as text.

A picture has no ground of its own. Lines and texts take the colour of the page's text, so that they are seen on a light
page, on a dark one and on paper; blocks keep their colours, and what is written on them is dark.

Where a device holds blocks of several arrays, a script lights them together when one is pointed at; where no script
runs, the picture is the same and stands still.
"""

from __future__ import annotations

import functools
import html
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.draw.svg import FAINT, PAGE, QUIET, WRONG, drawn, element  # noqa: F401 - pictures take colours from here
from grader.palette import COLOURS

# A collective's colour where parts of a picture are collectives, not data.
OF_KIND = {
    "all_gather": COLOURS[0],
    "reduce_scatter": COLOURS[1],
    "all_to_all": COLOURS[2],
    "all_reduce": COLOURS[3],
    "collective_permute": COLOURS[6],
}
INK, EDGE = "#222222", 0.7  # on blocks and around them, whatever the page; points
LETTER, SMALL, SMALLER, SMALLEST = 0.085, 0.075, 0.068, 0.065  # inches that a letter takes, by its size

# Who takes SVG out of a page, because it does not trust it, takes its style sheets too: then the facts are seen.
HOLDERS = re.compile(r'<path [^>]*data-d="([\d ]+)"')
INSTEAD = "<style>.many-devices-facts{{display:none}}</style><pre class=many-devices-facts>{}</pre>"


@dataclass(frozen=True)
class Picture:
    """A drawn figure: SVG in a notebook, plain facts everywhere else."""

    figure: Figure
    facts: str
    device: int | None = field(default=None, kw_only=True)  # for which it is drawn; by default for any

    def svg(self, style: str = "") -> str:
        """The picture as an element of a page; `style` has declarations of CSS for it."""
        size, parts = drawn(self.figure)
        return element(size, self.facts, (markup for _, markup in parts), style)

    def _repr_html_(self) -> str:
        svg = self.svg()
        held = Counter(device for holders in HOLDERS.findall(svg) for device in holders.split())
        serving = script("light.js") if max(held.values(), default=0) > 1 else ""
        return in_page(self.facts, svg, serving, "" if self.device is None else f' data-device="{self.device}"')

    def __repr__(self) -> str:
        return self.facts


def held_by(*devices: int, name: str = "") -> str:
    """The gid of a block: what lights with it is what the same devices hold."""
    return f"{name}{', ' * bool(name)}held by {' '.join(map(str, devices))}"


def in_page(facts: str, pictures: str, serving: str, told: str = "") -> str:
    """Pictures in a page, with the script that serves them, and their facts where they are taken out.

    `told` are the attributes by which the script is told what else it needs.
    """
    served = f"<div{told}>{pictures}<script>{serving}</script></div>" if serving else pictures
    return f"{INSTEAD.format(html.escape(facts))}{served}"


@functools.cache
def script(name: str) -> str:
    """A script of this room, without its comments and its indents."""
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    return "\n".join(text for line in lines if (text := line.strip().split("  //")[0]) and not text.startswith("//"))


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
