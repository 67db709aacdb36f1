"""Pictures of a mesh: its devices in a grid with named axes, the groups along an axis, and the wires beneath.

Drawn from `Grid`, which is facts: axis names and sizes, and the ids of the devices row by row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

from grader.draw.picture import COLOURS, FAINT, INK, QUIET, SMALL, WRONG, Picture, inches_of, sheet
from grader.draw.shapes import arrow, centred, lettered
from grader.programs.structure import device_numbers_along

ACROSS, DOWN, RADIUS = 0.68, 0.56, 0.19  # inches from device to device, and a device's radius
LEFT, TOP, BETWEEN = 0.75, 0.62, 0.55  # inches for the names of the axes, and from one plane to the next
WIRE = "#9a9a9a"


@dataclass(frozen=True)
class Grid:
    """Devices in a grid: the sizes of its axes in order, the devices' ids, and the ids of those left out."""

    sizes: Mapping[str, int]
    ids: np.ndarray
    left_out: tuple[int, ...] = ()

    def groups(self, axes: Sequence[str]) -> list[tuple[int, ...]]:
        """The devices that differ only in their place along `axes`: one group a line."""
        if unknown := [axis for axis in axes if axis not in self.sizes]:
            raise ValueError(f"the mesh has no axis {unknown[0]!r}; its axes are {', '.join(self.sizes)}")
        return [tuple(line) for line in self.ids.ravel()[device_numbers_along(axes, self.sizes)].tolist()]


def grid(mesh: Any) -> Grid:
    """The grid of a Mesh, or of axis names to sizes, whose devices are then numbered row by row."""
    if isinstance(mesh, Grid):
        return mesh
    if not isinstance(mesh, Mesh):
        sizes = dict(mesh)
        return Grid(sizes, np.arange(math.prod(sizes.values())).reshape(tuple(sizes.values())))
    ids = np.array([device.id for device in mesh.devices.flat]).reshape(mesh.devices.shape)
    return Grid(dict(mesh.shape), ids, tuple(d.id for d in jax.devices() if d.id not in ids))


def mesh(mesh: Any, title: str = "") -> Picture:
    """The devices of a mesh, by id, in its grid; rank 3 is drawn plane by plane.

    Devices that the mesh leaves out stand below, in grey.

    Args:
      mesh: a Mesh, or axis names to sizes.
      title: stands above the picture.

    Example:
      >>> grader.draw.mesh({"x": 4, "y": 2})
      x=4, y=2; each line runs along y
        x=0: 0 1
        x=1: 2 3
        x=2: 4 5
        x=3: 6 7
    """
    facts = grid(mesh)
    colours = dict.fromkeys(map(int, facts.ids.flat), COLOURS[0])
    return Picture(_drawn(facts, colours, (), title), "\n".join(filter(None, [title, _grid_in_words(facts)])))


def groups(mesh: Any, axis: str | Sequence[str], title: str = "") -> Picture:
    """The groups of devices along one axis, or along several: a colour each, neighbours linked.

    Args:
      mesh: a Mesh, or axis names to sizes.
      axis: the name of an axis, or several.
      title: stands above the picture.

    Example:
      >>> grader.draw.groups({"x": 4, "y": 2}, "y")
      along y: 4 groups of 2
        0, 1
        2, 3
        4, 5
        6, 7
    """
    facts, axes = grid(mesh), (axis,) if isinstance(axis, str) else tuple(axis)
    lines = facts.groups(axes)
    colours = {device: COLOURS[k % len(COLOURS)] for k, line in enumerate(lines) for device in line}
    heading = f"along {', '.join(axes)}: {len(lines)} group{'s' * (len(lines) > 1)} of {len(lines[0])}"
    words = [title, heading, *(f"  {', '.join(map(str, line))}" for line in lines)]
    return Picture(_drawn(facts, colours, axes, title or heading), "\n".join(filter(None, words)))


def route(coords: Mapping[int, Sequence[int]], order: Sequence[int], title: str = "") -> Picture:
    """Chips where they stand, wired to the chips beside them, and the ring that visits devices in this order.

    Args:
      coords: device → its place (column, row); devices in one place are cores of one chip.
      order: the devices, as the ring visits them.
      title: stands above the picture.

    Example:
      >>> grader.draw.route({0: (0, 0), 1: (1, 0), 2: (1, 1), 3: (0, 1)}, [0, 1, 3, 2])
        0 → 1: 1 link
        1 → 3: 2 links
        3 → 2: 1 link
        2 → 0: 2 links
        longest step: 2
    """
    places = {device: tuple(coords[device])[:2] for device in order}
    steps = [(a, b, links(places[a], places[b])) for a, b in zip(order, [*order[1:], order[0]], strict=True)]
    facts = [
        title,
        *(f"  {a} → {b}: {n} link{'s' * (n != 1)}" for a, b, n in steps),
        f"  longest step: {max(n for *_, n in steps)}",
    ]
    return Picture(_drawn_route(places, steps, title), "\n".join(filter(None, facts)))


def links(one: Sequence[int], other: Sequence[int]) -> int:
    """The wires from one chip to another in a grid without wrap-around."""
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def _grid_in_words(facts: Grid) -> str:
    *leading, last = facts.sizes
    lines = [f"{', '.join(f'{name}={size}' for name, size in facts.sizes.items())}; each line runs along {last}"]
    for place in np.ndindex(*facts.ids.shape[:-1]):
        prefix = ", ".join(f"{name}={k}" for name, k in zip(leading, place, strict=True))
        lines.append(f"  {prefix}{': ' * bool(prefix)}{' '.join(map(str, facts.ids[place]))}")
    return "\n".join([*lines, *([f"  left out: {' '.join(map(str, facts.left_out))}"] if facts.left_out else [])])


def _rows_and_columns(facts: Grid) -> tuple[int, int]:
    return (1, *facts.ids.shape)[-2:]


def _at(facts: Grid, place: Sequence[int]) -> tuple[float, float]:
    """Where a device is drawn: rows and columns are the last two axes, planes side by side the others."""
    row, column = (0, *place)[-2:]
    plane = int(np.ravel_multi_index(place[:-2], facts.ids.shape[:-2])) if len(place) > 2 else 0
    wide = (_rows_and_columns(facts)[1] - 1) * ACROSS + 2 * RADIUS + BETWEEN
    return LEFT + plane * wide + column * ACROSS, TOP + row * DOWN


def _drawn(facts: Grid, colours: Mapping[int, str], axes: Sequence[str], title: str) -> Figure:
    rows, _ = _rows_and_columns(facts)
    below, spare = TOP + rows * DOWN + 0.1, 2.4 * RADIUS  # where those left out stand, and how far apart
    right = _at(facts, [n - 1 for n in facts.ids.shape])[0] + 2 * RADIUS
    note = LEFT + (len(facts.left_out) + 1) * spare + 0.9 if facts.left_out else 0.0
    wide = max(right, note, inches_of([title], SMALL) + 0.2)
    figure, ax = sheet(wide, TOP + (rows - 1) * DOWN + 2 * RADIUS + 0.6 * bool(facts.left_out))
    lettered(ax, (0.05, 0.12), title, 10)
    for one, other, far in _links(facts, axes):
        _link(ax, _at(facts, one), _at(facts, other), colours[int(facts.ids[one])], far)
    for place in np.ndindex(*facts.ids.shape):
        _device(ax, *_at(facts, place), int(facts.ids[place]), colours[int(facts.ids[place])])
    _name_axes(ax, facts)
    for k, device in enumerate(facts.left_out):
        _device(ax, LEFT + k * spare, below, device, "none", edge=FAINT)
    if facts.left_out:
        lettered(ax, (LEFT + (len(facts.left_out) - 0.3) * spare, below), "left out", color=QUIET)
    return figure


def _links(facts: Grid, axes: Sequence[str]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], bool]]:
    """Neighbours along the axes, and whether they stand in different planes."""
    for axis in axes:
        k = list(facts.sizes).index(axis)
        for place in np.ndindex(*facts.ids.shape):
            if place[k] + 1 < facts.ids.shape[k]:
                yield place, (*place[:k], place[k] + 1, *place[k + 1 :]), k < facts.ids.ndim - 2


def _link(ax: Axes, one: tuple[float, float], other: tuple[float, float], colour: str, far: bool) -> None:
    dark, bent = tuple(0.62 * part for part in to_rgb(colour)), f"arc3,rad={0.3 if far else 0}"
    look = {"arrowstyle": "-", "linewidth": 2.2, "mutation_scale": 1, "connectionstyle": bent}
    arrow(ax, one, other, color=dark, zorder=1, gid="link", **look)


def _device(ax: Axes, x: float, y: float, device: int, colour: str, edge: str = INK) -> None:
    ax.add_patch(Circle((x, y), RADIUS, facecolor=colour, edgecolor=edge, zorder=2, gid=f"device {device}"))
    centred(ax, (x, y), str(device), 9, color=INK if edge == INK else QUIET, zorder=3)


def _name_axes(ax: Axes, facts: Grid) -> None:
    """Along rows and columns, `name = place`; the planes' places above them."""
    names = list(facts.sizes)
    rows, columns = _rows_and_columns(facts)
    for column in range(columns):
        x, y = _at(facts, [0] * (facts.ids.ndim - 1) + [column])
        centred(ax, (x, y - RADIUS - 0.1), f"{names[-1]}={column}", color=QUIET)
    for row in range(rows if facts.ids.ndim > 1 else 0):
        x, y = _at(facts, [0] * (facts.ids.ndim - 2) + [row, 0])
        lettered(ax, (x - RADIUS - 0.08, y), f"{names[-2]}={row}", ha="right", color=QUIET)
    for plane in np.ndindex(*facts.ids.shape[:-2]) if facts.ids.ndim > 2 else ():
        x, _ = _at(facts, [*plane, 0, 0])
        label = ", ".join(f"{name}={k}" for name, k in zip(names, plane, strict=False))
        below = TOP + (rows - 1) * DOWN + RADIUS + 0.22
        centred(ax, (x + (columns - 1) * ACROSS / 2, below), label, color=QUIET)


CHIP, APART = 0.62, 1.5  # inches: a core's share of a chip's width, and from chip to chip


def _drawn_route(places: Mapping[int, tuple[int, ...]], steps: Sequence[tuple[int, int, int]], title: str) -> Figure:
    chips = sorted(set(places.values()))
    cores = {chip: sorted(d for d in places if places[d] == chip) for chip in chips}
    wide = CHIP * max(map(len, cores.values()))
    apart = max(APART, wide + 0.5)
    corner = {chip: (0.2 + chip[0] * apart, 0.45 + chip[1] * 1.1) for chip in chips}
    figure, ax = sheet(
        max(0.4 + max(x for x, _ in chips) * apart + wide, inches_of([title], SMALL) + 0.2),
        0.6 + max(y for _, y in chips) * 1.1 + CHIP,
    )
    lettered(ax, (0.05, 0.15), title, 10)
    for chip in chips:
        x, y = corner[chip]
        for beside in ((chip[0] + 1, chip[1]), (chip[0], chip[1] + 1)):
            if beside in corner:
                (px, py), across = corner[beside], beside[1] == chip[1]
                ends = ((x + wide, px), (y + CHIP / 2,) * 2) if across else ((x + wide / 2,) * 2, (y + CHIP, py))
                ax.plot(*ends, color=WIRE, linewidth=6, alpha=0.35, zorder=0, solid_capstyle="butt")
        ax.add_patch(
            FancyBboxPatch((x, y), wide, CHIP, boxstyle="round,pad=0.04", facecolor="none", edgecolor=WIRE, zorder=0.5)
        )
    middle = {
        d: (corner[places[d]][0] + wide * (k + 0.5) / len(line), corner[places[d]][1] + CHIP / 2)
        for line in cores.values()
        for k, d in enumerate(line)
    }
    for a, b, n in steps:
        look = {"mutation_scale": 11, "linewidth": 1.8, "shrinkA": 15, "shrinkB": 15, "zorder": 4}
        colour = WRONG if n > 1 else "#2f6f9f"
        arrow(ax, middle[a], middle[b], color=colour, gid="step", connectionstyle="arc3,rad=0.17", **look)
    for device, (x, y) in middle.items():
        _device(ax, x, y, device, COLOURS[0])
    return figure
