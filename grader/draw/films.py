"""Film strips: which block every device holds at each step, what it does with it, and what it sends.

The facts are a `Film`, a table step × device; `film` draws it as a strip, `turning` as a ring that moves.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyArrowPatch, Rectangle
from PIL import Image

from grader.draw.picture import COLOURS, GROUND, INK, QUIET, Picture, inches_of, sheet, with_round_corners

Pair = tuple[int, int]


@dataclass(frozen=True)
class Film:
    """What happens on a row of devices, step by step.

    `holds[t][d]` is the block on device d at step t: a number or a short text, a tuple of several, or None.
    `does[t][d]` says what the device does with it, "" for nothing. `sends[t]` are the pairs (from, to) along which
    blocks move between step t and the next.
    """

    holds: tuple[tuple[Any, ...], ...]
    does: tuple[tuple[str, ...], ...] = ()
    sends: tuple[tuple[Pair, ...], ...] = ()
    blocks: str = field(default="", kw_only=True)

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
    steps: int = 0,
    does: Callable[[int, int, int], str] | None = None,
    blocks: str = "",
) -> Film:
    """The film of a ring on which every device sends what it holds `shift` places on, in every step but the last.

    Args:
      devices: how many devices, which is also the number of blocks.
      shift: by how many places blocks move; negative for the other way.
      start: at step 0 device d holds block d + start.
      steps: by default as many as there are devices.
      does: what a device does, given (step, device, block).
      blocks: the letter in front of a block's number.

    Example:
      >>> grader.draw.ring(3).holds
      ((0, 1, 2), (2, 0, 1), (1, 2, 0))
    """
    steps = steps or devices
    holds = tuple(tuple((d + start - shift * t) % devices for d in range(devices)) for t in range(steps))
    pairs = tuple((d, (d + shift) % devices) for d in range(devices))
    doing = [[does(t, d, k) for d, k in enumerate(row)] for t, row in enumerate(holds)] if does else []
    return Film(holds, tuple(map(tuple, doing)), (pairs,) * (steps - 1), blocks=blocks)


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
    wide, high = _cell(facts)
    gap = 0.34 if any(facts.sends) else 0.1
    left, top = 0.62, 0.5 if title else 0.25
    figure, ax = sheet(left + facts.devices * (wide + 0.22), top + len(facts.holds) * (high + gap))
    if title:
        ax.text(0.02, 0.13, title, fontsize=10, color=INK, va="center")
    corners = [left + d * (wide + 0.22) for d in range(facts.devices)]
    for d, x in enumerate(corners):
        ax.text(x + wide / 2, top - 0.08, f"device {d}", ha="center", va="bottom", fontsize=7.5, color=INK)
    for t, row in enumerate(facts.holds):
        y = top + t * (high + gap)
        ax.text(0.02, y + high / 2, f"step {t}", va="center", fontsize=8, color=INK)
        for d, x in enumerate(corners):
            _draw_cell(ax, facts, row[d], facts.doing(t, d), (x, y, wide, high))
        _draw_sends(ax, facts.sent(t), [x + wide / 2 for x in corners], y + high, gap)
    return Picture(figure, "\n".join(filter(None, [title, strip(facts)])))


def strip(facts: Film) -> str:
    """A film as text: a line for each step, and what is sent after it."""
    lines = []
    for t, row in enumerate(facts.holds):
        cells = [f"device {d} {_names(facts, cell)}{_bracketed(facts.doing(t, d))}" for d, cell in enumerate(row)]
        lines.append(f"step {t}: {', '.join(cells)}")
        if pairs := facts.sent(t):
            lines.append("  sends " + ", ".join(f"{a}→{b}" for a, b in pairs))
    return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Movie(Picture):
    """A picture that moves three times round, then stands still: an animated PNG. On paper its first frame stays."""

    frames: tuple[Image.Image, ...] = ()
    milliseconds: int = 180

    def png(self) -> bytes:
        file = io.BytesIO()
        first, *others = self.frames
        first.save(file, format="png", save_all=True, append_images=others, duration=self.milliseconds, loop=3)
        return file.getvalue()


def turning(facts: Film, title: str = "") -> Movie:
    """The devices in a circle: each works on its block while a copy is already on its way to the next.

    Args:
      facts: what happens, step by step.
      title: stands above the picture.

    Example:
      >>> grader.draw.turning(grader.draw.ring(2))
      step 0: device 0 0, device 1 1
        sends 0→1, 1→0
      step 1: device 0 1, device 1 0
    """
    scenes = [
        (t, moved)
        for t in range(len(facts.holds))
        for moved in ([k / 5 for k in range(6)] if facts.sent(t) else [0.0] * 5)
    ]
    figures = [_scene(facts, title, *scene) for scene in scenes]
    return Movie(figures[0], "\n".join(filter(None, [title, strip(facts)])), tuple(map(_pixels, figures)))


def _scene(facts: Film, title: str, step: int, moved: float) -> Any:
    figure, ax = sheet(3.7, 3.75)
    middle, radius, around = (1.85, 2.0), 1.2, facts.devices
    angles = [math.pi * (2 * d / around - 0.5) for d in range(around)]
    ax.text(1.85, 0.15, title, ha="center", va="center", fontsize=9, color=INK)
    ax.text(*middle, f"step {step}", ha="center", va="center", fontsize=10, color=INK)
    wide, high = _cell(facts)
    for d, angle in enumerate(angles):
        x, y = _at(middle, radius, angle)
        _draw_cell(ax, facts, facts.holds[step][d], facts.doing(step, d), (x - wide / 2, y - high / 2, wide, high))
        ax.text(x, y - high / 2 - 0.03, f"device {d}", ha="center", va="bottom", fontsize=6.5, color=INK)
    for a, b in facts.sent(step) if moved > 0 else ():
        turn = (angles[b] - angles[a] + math.pi) % (2 * math.pi) - math.pi
        x, y = _at(middle, radius * (1 - 0.38 * math.sin(math.pi * moved)), angles[a] + moved * turn)
        for part in _parts(facts.holds[step][a]):
            ax.add_patch(
                Rectangle(
                    (x - 0.17, y - 0.12),
                    0.34,
                    0.24,
                    facecolor=_colour(facts, part),
                    edgecolor=INK,
                    linewidth=0.8,
                    zorder=4,
                )
            )
            ax.text(x, y, facts.name(part), ha="center", va="center", fontsize=7, color=INK, zorder=5)
    return figure


def _at(middle: tuple[float, float], radius: float, angle: float) -> tuple[float, float]:
    return middle[0] + radius * math.cos(angle), middle[1] + radius * math.sin(angle)


def _pixels(figure: Any) -> Image.Image:
    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(90)
    figure.set_facecolor(GROUND)
    canvas.draw()
    return with_round_corners(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3].copy())).quantize(32)


def _cell(facts: Film) -> tuple[float, float]:
    """Inches of one device at one step: wide enough for what is written there."""
    texts = [facts.doing(t, d) for t in range(len(facts.holds)) for d in range(facts.devices)]
    names = [_names(facts, cell) for row in facts.holds for cell in row]
    return max(0.7, inches_of([*texts, *names]) + 0.16), 0.5 if facts.does else 0.32


def _draw_cell(ax: Axes, facts: Film, cell: Any, doing: str, box: tuple[float, float, float, float]) -> None:
    x, y, wide, high = box
    parts = _parts(cell)
    for k, part in enumerate(parts):
        share = wide / len(parts)
        ax.add_patch(
            Rectangle((x + k * share, y), share, high, facecolor=_colour(facts, part), edgecolor="white", linewidth=1.5)
        )
        ax.text(
            x + (k + 0.5) * share,
            y + (0.15 if doing else high / 2),
            facts.name(part),
            ha="center",
            va="center",
            fontsize=8.5,
            weight="bold",
            color=INK,
        )
    if not parts:
        ax.add_patch(Rectangle((x, y), wide, high, facecolor="none", edgecolor="#999999", linewidth=0.8, linestyle=":"))
    if doing:
        ax.text(x + wide / 2, y + high - 0.14, doing, ha="center", va="center", fontsize=7.5, color=INK)


def _draw_sends(ax: Axes, pairs: Sequence[Pair], middles: Sequence[float], y: float, gap: float) -> None:
    for a, b in pairs:
        far = abs(a - b) > 1
        ax.add_patch(
            FancyArrowPatch(
                (middles[a], y + 0.02),
                (middles[b], y + gap - 0.03),
                arrowstyle="-|>",
                mutation_scale=7,
                linewidth=0.8,
                color=QUIET,
                alpha=0.5 if far else 1.0,
                shrinkA=0,
                shrinkB=0,
            )
        )


def _parts(cell: Any) -> tuple[Any, ...]:
    return () if cell is None else cell if isinstance(cell, tuple) else (cell,)


def _names(facts: Film, cell: Any) -> str:
    return " ".join(facts.name(part) for part in _parts(cell)) or "nothing"


def _bracketed(words: str) -> str:
    return f" ({words})" if words else ""


def _colour(facts: Film, block: Any) -> str:
    """A block's colour: by its number, else by when it first appears."""
    if isinstance(block, (int, np.integer)):
        return COLOURS[block % len(COLOURS)]
    seen = list(dict.fromkeys(itertools.chain.from_iterable(_parts(h) for row in facts.holds for h in row)))
    return COLOURS[seen.index(block) % len(COLOURS)]
