"""Film strips: which block every device holds at each step, what it does with it, and what it sends.

The facts are a `Film`, a table step × device; `film` draws it as a strip, `animation` as a ring that moves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.draw.picture import COLOURS, FAINT, INK, PAGE, QUIET, SMALLEST, Picture, in_page, inches_of, script, sheet
from grader.draw.shapes import Box, Point, arrow, centred, lettered, rectangle
from grader.draw.svg import drawn, element

Pair = tuple[int, int]


@dataclass(frozen=True)
class Film:
    """What happens on a row of devices, step by step.

    `holds[t][d]` is the block on device d at step t: a number or a short text, a tuple of several, or None.
    `does[t][d]` says what the device does with it, "" for nothing. `sends[t]` are the pairs (from, to) along which
    blocks move between step t and the next. `word` is what a step is called. `colour` gives a block the number of its
    colour; by default each block has its own.
    """

    holds: tuple[tuple[Any, ...], ...]
    does: tuple[tuple[str, ...], ...] = ()
    sends: tuple[tuple[Pair, ...], ...] = ()
    blocks: str = field(default="", kw_only=True)
    word: str = field(default="step", kw_only=True)
    colour: Callable[[Any], int] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        widths = {len(row) for row in (*self.holds, *self.does)}
        if not self.holds or len(widths) != 1 or self.does and len(self.does) != len(self.holds):
            raise ValueError("a film has an entry for every device at every step")

    @property
    def devices(self) -> int:
        return len(self.holds[0])

    def name(self, block: Any) -> str:
        """How a block is called: a number behind the letter for all, a text as it is."""
        return f"{self.blocks}{block}" if isinstance(block, (int, np.integer)) else str(block)

    def doing(self, step: int, device: int) -> str:
        return self.does[step][device] if self.does else ""

    def sent(self, step: int) -> tuple[Pair, ...]:
        return self.sends[step] if step < len(self.sends) else ()


def ring(
    devices: int,
    shift: int = 1,
    *,
    start: int = 0,
    does: Callable[[int, int, int], str] | None = None,
    blocks: str = "",
) -> Film:
    """The film of a ring on which every device sends what it holds `shift` places on, in every step but the last.

    Args:
      devices: how many devices, which is also the number of blocks.
      shift: by how many places blocks move; negative for the other way.
      start: at step 0 device d holds block d + start.
      does: what a device does, given (step, device, block).
      blocks: the letter in front of a block's number.

    Example:
      >>> grader.draw.ring(3).holds
      ((0, 1, 2), (2, 0, 1), (1, 2, 0))
    """
    holds = tuple(tuple((d + start - shift * t) % devices for d in range(devices)) for t in range(devices))
    pairs = tuple((d, (d + shift) % devices) for d in range(devices))
    doing = [[does(t, d, k) for d, k in enumerate(row)] for t, row in enumerate(holds)] if does else []
    return Film(holds, tuple(map(tuple, doing)), (pairs,) * (devices - 1), blocks=blocks)


def film(table: Film | Sequence[Sequence[Any]], title: str = "", blocks: str = "") -> Picture:
    """A strip: a row for each step, a column for each device, arrows for what is sent.

    Args:
      table: a Film, or rows of the blocks that the devices hold.
      title: stands above the picture.
      blocks: the letter in front of a block's number.

    Example:
      >>> grader.draw.film([[0, 1], [1, 0]], blocks="A")
      step 0: device 0 A0, device 1 A1
      step 1: device 0 A1, device 1 A0
    """
    facts = table if isinstance(table, Film) else Film(tuple(tuple(row) for row in table), blocks=blocks)
    return Strip(_drawn_strip(facts, title), "\n".join(filter(None, [title, strip(facts)])))


def _drawn_strip(facts: Film, title: str) -> Figure:
    wide, high = _cell(facts)
    gap = 0.34 if any(facts.sends) else 0.1
    left, top = 0.62, 0.5 if title else 0.25
    figure, ax = sheet(left + facts.devices * (wide + 0.22), top + len(facts.holds) * (high + gap))
    if title:
        lettered(ax, (0.02, 0.13), title, 10)
    corners = [left + d * (wide + 0.22) for d in range(facts.devices)]
    for d, x in enumerate(corners):
        centred(ax, (x + wide / 2, top - 0.08), f"device {d}", 7.5, va="bottom")
    for t, row in enumerate(facts.holds):
        y, gid = top + t * (high + gap), f"from step {t}"
        lettered(ax, (0.02, y + high / 2), f"{facts.word} {t}", gid=gid)
        for d, x in enumerate(corners):
            _draw_cell(ax, facts, row[d], facts.doing(t, d), (x, y, wide, high), gid)
        _draw_sends(ax, facts.sent(t), [x + wide / 2 for x in corners], (y + high, gap), gid)
    return figure


def strip(facts: Film) -> str:
    """A film as text: a line for each step, and what is sent after it."""
    lines = []
    for t, row in enumerate(facts.holds):
        doing = [f" ({words})" if (words := facts.doing(t, d)) else "" for d in range(facts.devices)]
        cells = [f"device {d} {_names(facts, cell)}{doing[d]}" for d, cell in enumerate(row)]
        lines.append(f"{facts.word} {t}: {', '.join(cells)}")
        if pairs := facts.sent(t):
            lines.append("  sends " + ", ".join(f"{a}→{b}" for a, b in pairs))
    return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Strip(Picture):
    """A film's steps one below the other, which buttons show one after the other."""

    def _repr_html_(self) -> str:
        return in_page(self.facts, self.svg(), script("steps.js"))


@dataclass(frozen=True, repr=False)
class Movie(Picture):
    """A picture that moves, over and over, with buttons to go through it step by step; a strip where no script runs.

    It stands still from the start for who asked for less motion, and waits while the pointer is on it.

    In the figure lie all the steps, one on the other: what has the gid `step T` is seen in that step. What has a gid of
    `travels` moves in its step, past the first place to the second: points to the right and down.
    """

    steps: int
    travels: Mapping[str, tuple[Point, Point]]
    still: Strip

    def _repr_html_(self) -> str:
        return in_page(self.facts, f"{self.still.svg()}{self.svg(';display:none')}", script("steps.js"))

    def svg(self, style: str = "") -> str:
        size, parts = drawn(self.figure)
        standing = [markup for gid, markup in parts if gid not in self.travels and not gid.startswith("step ")]
        scenes = [self._scene(step, parts) for step in range(self.steps)]
        film = f"many-devices-film-{self.steps}"
        return element(size, self.facts, [_motion(film, self.steps), *standing, *scenes], style, film)

    def _scene(self, step: int, parts: Sequence[tuple[str, str]]) -> str:
        held = "".join(markup for gid, markup in parts if gid == f"step {step}")
        sent = "".join(
            f'<g opacity="0" style="--u:{u:.0f}px;--v:{v:.0f}px;--x:{x:.0f}px;--y:{y:.0f}px">'
            f"{''.join(markup for gid, markup in parts if gid == name)}</g>"
            for name, ((u, v), (x, y)) in self.travels.items()
            if name.startswith(f"sent {step} ")
        )
        hidden = ' visibility="hidden"' if step else ""
        return f'<g{hidden} style="--t:{step}">{held}{sent}</g>'


def _motion(film: str, steps: int) -> str:
    """The style sheet of a movie. Its names tell the number of steps: equal names mean equal rules, on any page."""
    seconds, share = 1.2 * steps, 100 / steps
    return (
        f"<style>@keyframes {film}-shown{{0%{{visibility:visible}}{share:g}%,100%{{visibility:hidden}}}}"
        f"@keyframes {film}-sent{{0%{{opacity:1;transform:none}}{share / 2:g}%{{opacity:1;transform:translate(var(--u),"
        f"var(--v))}}{share:g}%,100%{{opacity:1;transform:translate(var(--x),var(--y))}}}}"
        f"@media(prefers-reduced-motion:no-preference){{.{film}>g{{animation:{film}-shown {seconds:g}s step-end "
        f"calc(var(--t)*1.2s) infinite}}.{film}>g>g{{animation:{film}-sent {seconds:g}s linear calc(var(--t)*1.2s) "
        f"infinite}}.{film}:hover g{{animation-play-state:paused}}}}</style>"
    )


def animation(facts: Film, title: str = "") -> Movie:
    """The devices in a circle: each works on its block while a copy is already on its way to the next.

    Args:
      facts: what happens, step by step.
      title: stands above the picture.

    Example:
      >>> grader.draw.animation(grader.draw.ring(2))
      step 0: device 0 0, device 1 1
        sends 0→1, 1→0
      step 1: device 0 1, device 1 0
    """
    wide, high = _cell(facts)
    radius, around = 1.2, facts.devices
    across = radius + wide / 2 + inches_of(["device 0"], SMALLEST) + 0.1  # from the middle to the edge
    figure, ax = sheet(2 * across, 3.75)
    middle = (across, 2.0)
    angles = [math.pi * (2 * d / around - 0.5) for d in range(around)]
    centred(ax, (across, 0.15), title, 9)
    for d, angle in enumerate(angles):
        x, y, looks = _outside(angle, _at(middle, radius, angle), wide / 2, high / 2)
        ax.text(x, y, f"device {d}", fontsize=6.5, color=PAGE, **looks)
    travels: dict[str, tuple[Point, Point]] = {}
    for step, row in enumerate(facts.holds):
        gid = f"step {step}"
        centred(ax, middle, f"{facts.word} {step}", 10, gid=gid)
        for d, angle in enumerate(angles):
            x, y = _at(middle, radius, angle)
            _draw_cell(ax, facts, row[d], facts.doing(step, d), (x - wide / 2, y - high / 2, wide, high), gid)
        for a, b in facts.sent(step):
            turn = (angles[b] - angles[a] + math.pi) % (2 * math.pi) - math.pi
            start, way = _at(middle, radius, angles[a]), _at(middle, 0.62 * radius, angles[a] + turn / 2)
            travels[f"sent {step} {a} {b}"] = _points(start, way), _points(start, _at(middle, radius, angles[b]))
            for part in _parts(row[a]):
                _draw_sent(ax, facts, part, start, f"sent {step} {a} {b}")
    words = "\n".join(filter(None, [title, strip(facts)]))
    return Movie(figure, words, len(facts.holds), travels, Strip(_drawn_strip(facts, title), words))


def _outside(angle: float, middle: Point, wide: float, high: float) -> tuple[float, float, dict[str, Any]]:
    """Where the name of a device stands: on the side of its cell that is away from the ring, where nothing travels."""
    (x, y), right, down = middle, math.cos(angle), math.sin(angle)
    if abs(right) > abs(down) - 1e-9:  # at 45° they differ by a rounding
        return x + math.copysign(wide + 0.05, right), y, {"ha": "left" if right > 0 else "right", "va": "center"}
    return x, y + math.copysign(high + 0.03, down), {"ha": "center", "va": "top" if down > 0 else "bottom"}


def _draw_sent(ax: Axes, facts: Film, part: Any, middle: Point, gid: str) -> None:
    """A block on its way."""
    x, y = middle
    rectangle(ax, (x - 0.17, y - 0.12, 0.34, 0.24), _colour(facts, part), width=0.8, zorder=4, gid=gid)
    centred(ax, middle, facts.name(part), 7, color=INK, zorder=5, gid=gid)


def _points(start: Point, end: Point) -> Point:
    """How far it is from one place to another: inches as points."""
    return 72 * (end[0] - start[0]), 72 * (end[1] - start[1])


def _at(middle: Point, radius: float, angle: float) -> Point:
    return middle[0] + radius * math.cos(angle), middle[1] + radius * math.sin(angle)


def _cell(facts: Film) -> tuple[float, float]:
    """Inches of one device at one step: wide enough for what is written there."""
    texts = [facts.doing(t, d) for t in range(len(facts.holds)) for d in range(facts.devices)]
    names = [_names(facts, cell) for row in facts.holds for cell in row]
    return max(0.7, inches_of([*texts, *names]) + 0.16), 0.5 if facts.does else 0.32


def _draw_cell(ax: Axes, facts: Film, cell: Any, doing: str, box: Box, gid: str = "") -> None:
    x, y, wide, high = box
    parts = _parts(cell)
    several = any(len(_parts(held)) > 1 for row in facts.holds for held in row)
    below = bool(doing) and several  # words across the borders of blocks could not be read
    tall = high - 0.2 if below else high
    for k, part in enumerate(parts):
        share = wide / len(parts)
        rectangle(ax, (x + k * share, y, share, tall), _colour(facts, part), gid=gid)
        middle = x + (k + 0.5) * share, y + (0.15 if doing else high / 2)
        centred(ax, middle, facts.name(part), 8.5, weight="bold", color=INK, gid=gid)
    if not parts:
        rectangle(ax, box, edge=FAINT, width=0.8, linestyle=":", gid=gid)
    if doing:
        ink, up = (INK if parts and not below else PAGE), 0.09 if below else 0.14
        centred(ax, (x + wide / 2, y + high - up), doing, 7.5, color=ink, gid=gid)


def _draw_sends(ax: Axes, pairs: Sequence[Pair], middles: Sequence[float], across: Point, gid: str) -> None:
    """Arrows between two rows: `across` says where the space between them begins, and how high it is."""
    y, gap = across
    for a, b in pairs:
        look = {"color": QUIET, "linewidth": 0.8, "mutation_scale": 7, "alpha": 0.5 if abs(a - b) > 1 else 1.0}
        arrow(ax, (middles[a], y + 0.02), (middles[b], y + gap - 0.03), gid=gid, **look)


def _parts(cell: Any) -> tuple[Any, ...]:
    return () if cell is None else cell if isinstance(cell, tuple) else (cell,)


def _names(facts: Film, cell: Any) -> str:
    return " ".join(facts.name(part) for part in _parts(cell)) or "nothing"


def _colour(facts: Film, block: Any) -> str:
    """A block's colour: what the film says, else by its number, else by when it first appears."""
    if facts.colour:
        return COLOURS[facts.colour(block) % len(COLOURS)]
    if isinstance(block, (int, np.integer)):
        return COLOURS[block % len(COLOURS)]
    seen = list(dict.fromkeys(itertools.chain.from_iterable(_parts(h) for row in facts.holds for h in row)))
    return COLOURS[seen.index(block) % len(COLOURS)]
