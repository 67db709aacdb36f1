"""Where arrays are: a column for the host and one for every device, a row for every array.

The picture for arrays on several meshes: it names devices by their own numbers, and shows which hold nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes

from grader.arrays.blocks import Bounds
from grader.arrays.words import number, region
from grader.draw.picture import COLOURS, EDGE, FAINT, INK, PAGE, QUIET, SMALLER, Picture, held_by, inches_of, sheet
from grader.draw.shapes import Box, centred, lettered, rectangle

HOST = "host"


@dataclass(frozen=True)
class PlacedArray:
    """One array: its name, whether it may be moved, and by place the part that lies there, with its values.

    A place is a device's number, or `HOST` for an array of NumPy's; a part has a start and a stop in each dimension.
    """

    name: str
    kind: str
    parts: Mapping[int | str, tuple[Bounds, np.ndarray]]


def placement(**arrays: Any) -> Picture:
    """Which device holds what of several arrays, each given under the name it is to be drawn with.

    The frame of an uncommitted array is dashed: JAX may move it.

    Args:
      **arrays: name → a jax.Array or a NumPy array.

    Example:
      >>> grader.draw.placement(here=np.arange(2), there=jax.device_put(np.arange(3), jax.devices()[1]))
      here (NumPy)
        host: [0:2] = 0 1
      there (committed)
        device 1: [0:3] = 0 1 2
    """
    rows, places = [_row(name, array) for name, array in arrays.items()], [HOST, *range(len(jax.devices()))]
    wide, high = _cell(rows)
    left = 0.3 + inches_of([text for row in rows for text in (row.name, row.kind)])
    figure, ax = sheet(left + len(places) * (wide + 0.06) + 0.05, 0.3 + len(rows) * (high + 0.12))
    for column, place in enumerate(places):
        x = left + column * (wide + 0.06)
        centred(ax, (x + wide / 2, 0.17), HOST if place == HOST else f"device {place}", 7.5)
    parts = sorted({part for row in rows for part, _ in row.parts.values()}, key=str)
    colours = {part: COLOURS[k % len(COLOURS)] for k, part in enumerate(parts)}  # whoever holds it, in whichever row
    for k, row in enumerate(rows):
        _draw_row(ax, row, places, colours, (left, 0.3 + k * (high + 0.12), wide, high))
    return Picture(figure, "\n".join(map(_text, rows)))


def _text(row: PlacedArray) -> str:
    """A row as one line for each part that lies somewhere."""
    lines = [f"{row.name} ({row.kind})"]
    for place, (part, values) in row.parts.items():
        where = HOST if place == HOST else f"device {place}"
        few = f" = {' '.join(map(_written, values.flat))}" if values.size <= 4 else ""
        lines.append(f"  {where}: {region(part)}{few}")
    return "\n".join(lines)


def _row(name: str, array: Any) -> PlacedArray:
    if isinstance(array, np.ndarray):
        return PlacedArray(name, "NumPy", {HOST: (_part([slice(None)] * array.ndim, array.shape), array)})
    if not isinstance(array, jax.Array):
        raise TypeError(f"{name} should be a jax.Array or a NumPy array; it is a {type(array).__name__}")
    numbers = {device: k for k, device in enumerate(jax.devices())}
    blocks = {numbers[s.device]: (_part(s.index, array.shape), np.asarray(s.data)) for s in array.addressable_shards}
    return PlacedArray(name, "committed" if array.committed else "uncommitted", dict(sorted(blocks.items())))


def _part(index: Sequence[slice], shape: Sequence[int]) -> Bounds:
    return tuple(part.indices(length)[:2] for part, length in zip(index, shape, strict=True))


def _written(value: Any) -> str:
    return number(value, 5)


def _label(part: Bounds, values: np.ndarray) -> str:
    """What is written into a block: its values where they are few, else its place in the whole."""
    if values.size > 8 or values.ndim > 2:
        return region(part)
    lines = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values.reshape(-1, min(values.size, 4) or 1)
    return "\n".join(" ".join(map(_written, line)) for line in lines)


def _cell(rows: Sequence[PlacedArray]) -> tuple[float, float]:
    labels = [_label(*held) for row in rows for held in row.parts.values()]
    widest = inches_of([line for label in labels for line in label.split("\n")], SMALLER)
    return max(0.66, widest + 0.14), max(0.36, 0.15 * max((x.count("\n") for x in labels), default=0) + 0.28)


def _draw_row(
    ax: Axes, row: PlacedArray, places: Sequence[int | str], colours: Mapping[Bounds, str], first: Box
) -> None:
    """The places of an array in a row; `first` is the box of the first one."""
    left, top, wide, high = first
    lettered(ax, (left - 0.1, top + high / 2 - 0.07), row.name, 9, ha="right", weight="bold")
    lettered(ax, (left - 0.1, top + high / 2 + 0.1), row.kind, 7, ha="right", color=QUIET)
    for column, place in enumerate(places):
        x = left + column * (wide + 0.06)
        held = row.parts.get(place)
        gid = held_by(place, name=f"{row.name} on {place}") if isinstance(place, int) else None
        loose = held is not None and row.kind == "uncommitted"
        edge, width, line = (PAGE, 1.5, "--") if loose else (INK if held else FAINT, EDGE, "-")
        colour = colours[held[0]] if held else "none"
        rectangle(ax, (x, top, wide, high), colour, edge, width, linestyle=line, gid=gid if held else None)
        if held:
            centred(ax, (x + wide / 2, top + high / 2), _label(*held), 7, color=INK, gid=gid)
