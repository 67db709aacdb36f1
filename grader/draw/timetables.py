"""Timetables of pipelines: a row for each device, a column for each step; the same colour is the same microbatch.

A backward pass has bold letters and a strong frame, a second stage of the same device a dash (F3′). Idle places stay
empty; what a device waits for ever to begin is an empty frame.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from grader.draw.picture import COLOURS, EDGE, FAINT, INK, QUIET, SMALL, Picture, inches_of, sheet
from grader.draw.shapes import Box, centred, lettered, rectangle
from grader.timetables import Orders, Timetable, Work, simulate

CELL, ROW, LEFT = 0.3, 0.32, 0.72  # inches
WIDEST = 9.5  # inches; longer timetables have narrower steps
READABLE = 0.14  # inches: what is narrower has no letters, and its colour tells the microbatch
STRONG = 1.6  # points around a backward pass


def timetable(orders: Orders | Timetable, title: str = "", rows: Sequence[str] = ()) -> Picture:
    """A pipeline's timetable: who does what in which step. Orders that come to a halt are drawn up to there.

    Args:
      orders: for each device a list of its work, as `draw.simulate` takes it, or what that returned.
      title: stands above the picture.
      rows: what the rows are called, where each is not one device.

    Example:
      >>> grader.draw.timetable([["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]])
      device 0 │ F0 F1 ·  ·  B0 B0 ·  B1 B1
      device 1 │ ·  F0 B0 B0 F1 B1 B1 ·  ·
      9 steps, bubble 33.3%; microbatches held at most, by device: 2 1
    """
    facts = orders if isinstance(orders, Timetable) else simulate(orders)
    names = list(rows) or [f"device {device}" for device in range(len(facts.orders))]
    if len(names) != len(facts.orders):
        raise ValueError(f"there are {len(facts.orders)} rows to name, and {len(names)} names")
    before = max(LEFT, inches_of(names, SMALL) + 0.1)
    steps = facts.steps + (2 if any(map(facts.waiting, range(len(facts.orders)))) else 0)
    cell = min(CELL, (WIDEST - before) / max(steps, 1))
    top = 0.45 if title else 0.1
    bottom = top + ROW * len(facts.orders)
    said = repr(facts).splitlines()
    figure, ax = sheet(max(before + cell * steps, inches_of([title, *said])) + 0.1, bottom + 0.4 + 0.18 * len(said))
    if title:
        lettered(ax, (0.02, 0.15), title, 10)
    for device in range(len(facts.orders)):
        y = top + ROW * device
        lettered(ax, (0.02, y + ROW / 2), names[device])
        rectangle(ax, (before, y, cell * steps, ROW), edge=FAINT, width=0.6, linestyle=":")
        for work, start, end in facts.placed(device):
            _draw_work(ax, facts, work, (before + cell * start, y, cell * (end - start), ROW))
        if pending := facts.waiting(device):
            start = max((end for _, _, end in facts.placed(device)), default=0)
            _draw_work(ax, facts, pending, (before + cell * start, y, cell * facts.length(pending), ROW), waits=True)
    lettered(ax, (0.02, bottom + 0.12), "step", 7, color=QUIET)
    for step in range(0, steps, max(1, round(0.3 / cell))):
        centred(ax, (before + cell * (step + 0.5), bottom + 0.12), str(step), 6, color=QUIET)
    for k, line in enumerate(said):
        lettered(ax, (0.02, bottom + 0.36 + 0.18 * k), line, 8.5)
    return Picture(figure, "\n".join(filter(None, [title, in_text(facts, names)])))


def in_text(facts: Timetable, names: Sequence[str]) -> str:
    """A timetable as text: a line for each device, a word for each step."""
    steps, several = facts.steps, len({w.stage for order in facts.orders for w in order}) > len(facts.orders)
    rows = []
    for device in range(len(facts.orders)):
        row = ["·"] * steps
        for work, start, end in facts.placed(device):
            row[start:end] = [str(work) if several else f"{work.kind}{work.microbatch}"] * (end - start)
        rows.append(row)
    wide = max((len(word) for row in rows for word in row), default=1)
    lines = [
        f"{name} │ {' '.join(word.ljust(wide) for word in row)}".rstrip() for name, row in zip(names, rows, strict=True)
    ]
    return "\n".join([*lines, repr(facts)])


def _draw_work(ax: Axes, facts: Timetable, work: Work, box: Box, waits: bool = False) -> None:
    x, y, wide, high = box
    ink, line, colour = (QUIET, ":", "none") if waits else (INK, "-", COLOURS[work.microbatch % len(COLOURS)])
    width, weight = (STRONG, "bold") if work.kind == "B" else (EDGE, "normal")
    rectangle(ax, (x + 0.01, y + 0.03, wide - 0.02, high - 0.06), colour, ink, width, linestyle=line)
    if wide >= READABLE:
        words = f"{work.kind}{work.microbatch}{'′' * facts.place(work)}{'?' * waits}"
        centred(ax, (x + wide / 2, y + high / 2), words, 7 if wide > 0.24 else 5, weight=weight, color=ink)
