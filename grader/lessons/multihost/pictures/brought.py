"""What each process brings of an array, and what its devices then hold of the arrays that are made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.arrays.words import number
from grader.draw.picture import COLOURS, Picture, inches_of, sheet
from grader.draw.shapes import block, lettered, red_frame

HIGH, BETWEEN, TOP = 0.36, 0.16, 0.6  # inches: a row; between two processes; above the rows
BRINGS = "brings"
Shard = tuple[int, int, Sequence[float]]  # where it begins and ends in the array, and its values


@dataclass(frozen=True)
class OnDevice:
    """What one device of a process holds of an array; `differs`: another has other values under the same indices."""

    process: int
    device: int
    start: int
    stop: int
    values: tuple[float, ...]
    differs: bool

    def __str__(self) -> str:
        told = f"process {self.process} [{self.start}:{self.stop}] = {_written(self.values)}"
        return f"{told}, which differs" if self.differs else told


def contributions(
    mine: Mapping[int, Sequence[float]], made: Mapping[str, Mapping[int, Sequence[Shard]]], title: str = ""
) -> Picture:
    """A column for each process; a row for what it brings, and one for each array that is made of it.

    A colour tells whose values they are. Where an array's layout says that devices hold the same part, and they do not,
    the parts that differ from the first are framed red.

    Args:
      mine: process → the values that it brings.
      made: how an array is made → process → what each of its devices holds: (start, stop, values).
      title: stands above the picture.

    Example:
      >>> grader.draw.contributions({0: [7, 8], 1: [5, 6]}, {"P()": {0: [(0, 2, [7, 8])], 1: [(0, 2, [5, 6])]}})
      brings: process 0 7 8; process 1 5 6
      P(): process 0 [0:2] = 7 8; process 1 [0:2] = 5 6, which differs
    """
    rows = {way: _pieces(shards) for way, shards in made.items()}
    colours = {process: COLOURS[k % len(COLOURS)] for k, process in enumerate(mine)}
    devices = max(one.device for row in rows.values() for one in row) + 1
    wide, left = (
        inches_of([_written(one.values) for row in rows.values() for one in row], 0.07) + 0.14,
        inches_of([BRINGS, *made], 0.08) + 0.2,
    )
    lefts = {process: left + k * (devices * wide + BETWEEN) for k, process in enumerate(mine)}
    across = max(left + len(mine) * (devices * wide + BETWEEN), inches_of([title]))
    tops = {BRINGS: TOP, **{way: TOP + (k + 1.5) * HIGH for k, way in enumerate(made)}}
    figure, ax = sheet(across, TOP + (len(made) + 1.5) * HIGH)
    lettered(ax, (0.05, 0.13), title, 10)
    for way, y in tops.items():
        lettered(ax, (left - 0.1, y + HIGH / 2 - 0.04), way, 9, ha="right")
    for process, x in lefts.items():
        lettered(ax, (x + devices * wide / 2, TOP - 0.17), f"process {process}", 9, ha="center")
        box = (x, TOP, devices * wide, HIGH - 0.08)
        block(ax, box, colours[process], _written(mine[process]), f"process {process}")
    for way, one in ((way, one) for way, row in rows.items() for one in row):
        box = (lefts[one.process] + one.device * wide, tops[way], wide, HIGH - 0.08)
        block(ax, box, colours[one.process], _written(one.values), f"{way}: {one}")
        if one.differs:
            red_frame(ax, box, f"{way}: {one}")
    facts = [f"{BRINGS}: " + "; ".join(f"process {process} {_written(values)}" for process, values in mine.items())]
    facts += [f"{way}: {'; '.join(map(str, row))}" for way, row in rows.items()]
    return Picture(figure, "\n".join(filter(None, [title, *facts])))


def _pieces(shards: Mapping[int, Sequence[Shard]]) -> list[OnDevice]:
    """What the devices hold of one array, each held against who has the same part first."""
    first: dict[tuple[int, int], tuple[float, ...]] = {}
    return [
        OnDevice(process, device, start, stop, here, first.setdefault((start, stop), here) != here)
        for process, held in shards.items()
        for device, (start, stop, values) in enumerate(held)
        for here in [tuple(values)]
    ]


def _written(values: Sequence[float]) -> str:
    return " ".join(number(value, 5) for value in values)
