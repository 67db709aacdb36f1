"""Processes that meet again and again: what each brings, what it asks for, and what all of them take home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from grader.arrays.words import number
from grader.draw.picture import COLOURS, Picture, inches_of, sheet
from grader.draw.shapes import arrow, block, lettered, red_frame

HIGH, APART, TOP = 0.36, 0.1, 0.6  # inches: a row, the space between two boxes, above the rows
Asked = tuple[str, float, float]  # what a process asks for, what it brings for that, what it takes home


def exchanges(asked: Mapping[int, Sequence[Asked]], title: str = "") -> Picture:
    """A column for each process, a row for each exchange, in order; below, what each process then takes for what.

    A colour tells what is asked for. Who asks for something else than the first process is framed red.

    Args:
      asked: process → what it asks for, in the order in which it calls: (what, brings, takes).
      title: stands above the picture.

    Raises:
      ValueError: not all have called equally often.

    Example:
      >>> grader.draw.exchanges({0: [("sum", 1, 4), ("max", 1, 3)], 1: [("max", 3, 4), ("sum", 3, 3)]})
        exchange 1: process 0 brings 1 for the sum; process 1 brings 3 for the max; they take 4
        exchange 2: process 0 brings 1 for the max; process 1 brings 3 for the sum; they take 3
        process 0 says: sum 4, max 3
        process 1 says: sum 3, max 4
    """
    if len({len(calls) for calls in asked.values()}) != 1:
        raise ValueError(f"not equally many calls: {', '.join(f'process {p} has {len(c)}' for p, c in asked.items())}")
    rows = list(zip(*asked.values(), strict=True))
    names = list(dict.fromkeys(name for row in rows for name, *_ in row))
    colours = dict(zip(names, COLOURS, strict=False))
    said = {p: _said(calls, names) for p, calls in asked.items()}
    facts = [_told(k, dict(zip(asked, row, strict=True))) for k, row in enumerate(rows)]
    facts += [f"  process {p} says: {', '.join(answers)}" for p, answers in said.items()]

    boxes = [f"{name} {number(brings, 5)}" for row in rows for name, brings, _ in row]
    wide, left = max(inches_of([*boxes, "process 0"], 0.08), 0.8) + 0.1, inches_of(["exchange 1"], 0.08) + 0.2
    lefts = {p: left + k * (wide + APART) for k, p in enumerate(asked)}
    end, below = left + len(asked) * (wide + APART), TOP + len(rows) * (HIGH + APART) + 0.1
    figure, ax = sheet(max(end + 0.4 + inches_of(["all take 22"], 0.08), inches_of([title])), below + 0.19 * len(names))
    lettered(ax, (0.05, 0.13), title, 10)
    for p, x in lefts.items():
        lettered(ax, (x + wide / 2, TOP - 0.17), f"process {p}", 9, ha="center")
    for k, row in enumerate(rows):
        y = TOP + k * (HIGH + APART)
        lettered(ax, (left - 0.1, y + HIGH / 2), f"exchange {k + 1}", 9, ha="right")
        for p, (name, brings, _) in zip(asked, row, strict=True):
            box = (lefts[p], y, wide, HIGH)
            block(ax, box, colours[name], f"{name} {number(brings, 5)}", f"exchange {k + 1}: process {p}", size=9)
            if name != row[0][0]:
                red_frame(ax, box, f"exchange {k + 1}: process {p} asks for the {name}")
        arrow(ax, (end, y + HIGH / 2), (end + 0.28, y + HIGH / 2))
        lettered(ax, (end + 0.36, y + HIGH / 2), f"all take {_taken(row)}", 9)
    lettered(ax, (left - 0.1, below + 0.08), "says", 9, ha="right")
    for p, answers in said.items():
        for k, answer in enumerate(answers):
            lettered(ax, (lefts[p] + wide / 2, below + 0.08 + 0.19 * k), answer, 9, ha="center")
    return Picture(figure, "\n".join(filter(None, [title, *facts])))


def _said(calls: Sequence[Asked], names: Sequence[str]) -> list[str]:
    """What a process takes for what, in the same order for all."""
    return [f"{name} {number(takes, 5)}" for name, _, takes in sorted(calls, key=lambda one: names.index(one[0]))]


def _told(k: int, row: Mapping[int, Asked]) -> str:
    brings = [f"process {p} brings {number(mine, 5)} for the {name}" for p, (name, mine, _) in row.items()]
    return f"  exchange {k + 1}: {'; '.join(brings)}; they take {_taken(list(row.values()))}"


def _taken(row: Sequence[Asked]) -> str:
    """What comes back: one number for all, or for each its own."""
    return ", ".join(dict.fromkeys(number(takes, 5) for *_, takes in row))
