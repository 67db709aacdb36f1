"""A mesh beside a matrix that is laid out on it: which axis cuts which dimension, and who holds which block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from grader.arrays.blocks import Blocks, Bounds, blocks
from grader.arrays.meshes import spelled
from grader.draw.grids import Grid, grid
from grader.draw.layouts import text
from grader.draw.picture import COLOURS, EDGE, INK, PAGE, QUIET, Picture, held_by, inches_of, sheet
from grader.draw.shapes import Box, block, lettered

ACROSS, DOWN, RADIUS = 0.56, 0.46, 0.18  # inches from device to device, and a device's radius
WIDE, HIGH, TOP, LEFT, BETWEEN = 2.4, 1.8, 0.8, 0.5, 0.7  # inches: the matrix; above; left of the mesh; from it on
BRACKET = 0.06  # inches from a matrix to its brackets


def sharding(shape: tuple[int, int], spec: P, mesh: Any, title: str = "") -> Picture:
    """The devices of a mesh, and beside them a matrix: a device has the colour of the block that it holds.

    A bracket at a part of the rows, or of the columns, tells at which places of the mesh's axes its holders stand.

    Args:
      shape: of the matrix.
      spec: its layout.
      mesh: a Mesh with one or two axes, or axis names to sizes.
      title: stands above the picture.

    Example:
      >>> grader.draw.sharding((4, 4), P("x"), {"x": 2, "y": 2})
      P('x') on x=2, y=2
        rows: x=0; x=1
        columns: whole
        [0:2, 0:4] on devices 0, 1
        [2:4, 0:4] on devices 2, 3
    """
    devices, held = grid(mesh), blocks(shape, spec, mesh)
    if len(shape) != 2 or devices.ids.ndim > 2:
        raise ValueError(
            f"a matrix is drawn beside a mesh of one axis or two; here are {shape} and {dict(devices.sizes)}"
        )
    said = title or f"{spelled(spec)} on {', '.join(f'{name}={n}' for name, n in devices.sizes.items())}"
    cuts = [_places(entry, devices.sizes) for entry in (*spec, None, None)[:2]]
    rows, columns = (1, *devices.ids.shape)[-2:]
    left = LEFT + columns * ACROSS + BETWEEN + inches_of(cuts[0], 0.07)
    figure, ax = sheet(max(left + WIDE + 0.1, inches_of([said])), TOP + max(rows * DOWN, HIGH) + 0.1)
    lettered(ax, (0.05, 0.13), said, 10)
    parts = sorted({held.bounds(device) for device in range(len(held.indices))})
    colours = {part: COLOURS[k % len(COLOURS)] for k, part in enumerate(parts)}
    _draw_mesh(ax, devices, held, colours)
    _draw_matrix(ax, held, colours, (left, TOP, WIDE, HIGH))
    for dimension, places in enumerate(cuts):
        _draw_brackets(ax, places, dimension, (left, TOP, WIDE, HIGH))
    told = [
        f"  {name}: {'; '.join(filter(None, places)) or 'whole'}"
        for name, places in zip(("rows", "columns"), cuts, strict=True)
    ]
    return Picture(figure, "\n".join([said, *told, *text(held).splitlines()[1:]]))


def _places(entry: Any, sizes: Mapping[str, int]) -> list[str]:
    """For each part into which an entry of a spec cuts its dimension, where on the mesh it is held."""
    axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
    return [
        ", ".join(f"{axis}={k}" for axis, k in zip(axes, place, strict=True))
        for place in np.ndindex(*(sizes[axis] for axis in axes))
    ]


def _draw_mesh(ax: Axes, devices: Grid, held: Blocks, colours: Mapping[Bounds, str]) -> None:
    _, columns = (1, *devices.ids.shape)[-2:]
    names = list(devices.sizes)
    for number, device in enumerate(devices.ids.flat):
        row, column = divmod(number, columns)
        x, y = LEFT + (column + 0.5) * ACROSS, TOP + (row + 0.5) * DOWN
        gid = held_by(number)
        colour = colours[held.bounds(number)]
        ax.add_patch(Circle((x, y), RADIUS, facecolor=colour, edgecolor=INK, linewidth=EDGE, gid=gid))
        lettered(ax, (x, y), str(int(device)), 9, ha="center", color=INK, gid=gid)
        if row == 0:
            lettered(ax, (x, y - RADIUS - 0.12), f"{names[-1]}={column}", color=QUIET, ha="center")
        if column == 0 and len(names) > 1:
            lettered(ax, (x - RADIUS - 0.06, y), f"{names[0]}={row}", color=QUIET, ha="right")


def _draw_matrix(ax: Axes, held: Blocks, colours: Mapping[Bounds, str], box: Box) -> None:
    left, top, wide, high = box
    across, down = wide / held.shape[1], high / held.shape[0]
    for part, colour in colours.items():
        who = [device for device in range(len(held.indices)) if held.bounds(device) == part]
        (y, bottom), (x, right) = part
        place = left + x * across, top + y * down, (right - x) * across, (bottom - y) * down
        block(ax, place, colour, ",".join(map(str, who)), held_by(*who), size=9)


def _draw_brackets(ax: Axes, places: list[str], dimension: int, box: Box) -> None:
    """Brackets left of the rows, or above the columns."""
    left, top, wide, high = box
    for k, words in enumerate(places if any(places) else ()):
        start, end = (k + 0.06) / len(places), (k + 0.94) / len(places)
        near, far = BRACKET, 2 * BRACKET
        if dimension == 0:
            y, bottom = top + start * high, top + end * high
            ax.plot([left - near, left - far, left - far, left - near], [y, y, bottom, bottom], color=PAGE, linewidth=1)
            lettered(ax, (left - far - 0.05, (y + bottom) / 2), words, 7.5, ha="right")
        else:
            x, right = left + start * wide, left + end * wide
            ax.plot([x, x, right, right], [top - near, top - far, top - far, top - near], color=PAGE, linewidth=1)
            lettered(ax, ((x + right) / 2, top - far - 0.09), words, 7.5, ha="center")
