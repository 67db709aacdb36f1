"""Pictures of distributed arrays: who holds which block, with its values, its copies and its partial sums.

Every picture is drawn from `Blocks`, which are facts; the same facts have a text form.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grader.arrays.blocks import Blocks, Bounds, blocks_of
from grader.arrays.numbers import close, same_numbers
from grader.arrays.words import number, numbered, region, spanned
from grader.draw.picture import COLOURS, EDGE, INK, PAGE, QUIET, SMALLEST, WRONG, Picture, held_by, sheet
from grader.draw.shapes import Box, centred, rectangle

_Groups = Sequence[Sequence[int]]  # of devices


def shards(array: Any, title: str = "") -> Picture:
    """The whole array, coloured by block, each block with the devices that hold it.

    Copies of a block share a colour; rank 3 is drawn slice by slice.

    Args:
      array: a jax.Array or `Blocks`.
      title: stands above the picture.

    Example:
      >>> array = jax.device_put(np.arange(8.0), jax.NamedSharding(jax.make_mesh((4,), ("x",)), P("x")))
      >>> grader.draw.shards(array)
      8 over x=4
        [0:2] on device 0
        [2:4] on device 1
        [4:6] on device 2
        [6:8] on device 3
    """
    blocks = as_blocks(array)
    figure = Figure(figsize=(0.6, 0.6))
    planes = _planes(blocks)
    axes = figure.subplots(1, len(planes), squeeze=False)[0]
    rows, columns = grid_shape(blocks.shape)
    wide, high, gap = inches(columns), inches(rows), 0.3
    figure.set_size_inches(len(planes) * (wide + gap) - gap, high)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=1, wspace=gap / wide)
    for ax, (name, plane) in zip(axes, planes, strict=True):
        draw_whole(ax, blocks, plane)
        ax.set_title(name, fontsize=9, color=PAGE)
    if title:
        above = 0.18 + 0.18 * (len(planes) > 1)  # inches: clear of the ticks, and of the slices' names
        figure.suptitle(title, fontsize=11, color=PAGE, y=1 + above / high, va="bottom")
    return Picture(figure, "\n".join(filter(None, [title, text(blocks)])))


def devices(array: Any, title: str = "") -> Picture:
    """The grid of devices, each with the block it holds: rows are the mesh's first axis.

    Devices that hold the same numbers share a colour. Those that should hold copies, and do not, are framed in red.

    Args:
      array: a jax.Array or `Blocks`.
      title: stands above the picture.

    Example:
      >>> grader.draw.devices(grader.draw.blocks((4, 4), P("x", "y"), {"x": 2, "y": 2}))
      4×4 over x=2, y=2
        [0:2, 0:2] on device 0
        [0:2, 2:4] on device 1
        [2:4, 0:2] on device 2
        [2:4, 2:4] on device 3
    """
    blocks = as_blocks(array)
    each = [[device] for device in range(len(blocks.indices))]
    figure, ax = sheet(*_size(blocks, each))
    unlike = _unlike(blocks)
    _draw_devices(ax, blocks, each, title, _colours(blocks)[0], wrong=unlike)
    claimed = f"  no copies, whatever the layout says: {numbered('device', unlike)}" if unlike else ""
    return Picture(figure, "\n".join(filter(None, [title, text(blocks), claimed])))


def compare(expected: Blocks, found: Blocks) -> Picture:
    """What each device should hold beside what it does; what differs is framed in red.

    Devices that hold the same, and should, are drawn once.

    Args:
      expected: the blocks as they should be.
      found: the blocks as they are.

    Example:
      >>> expected, found = (grader.draw.blocks((4,), spec, {"x": 2}) for spec in (P("x"), P()))
      >>> grader.draw.compare(expected, found)
      expected
      4 over x=2
        [0:2] on device 0
        [2:4] on device 1
      found
      4 over x=2
        [0:4] on devices 0, 1
    """
    differ = [device for device in range(len(found.indices)) if not _same(found, expected, device)]
    kinds = _kinds(expected, found)
    one, other = _alike(expected, kinds[0], []), _alike(found, kinds[1], differ)
    (w, h), (v, g) = _size(expected, one), _size(found, other)
    figure, ax = sheet(w + v + 0.5, max(h, g))
    colours = _colours(expected, found)
    _draw_devices(ax, expected, one, "expected", colours[0])
    _draw_devices(ax, found, other, "found", colours[1], differ, left=w + 0.5)
    return Picture(figure, f"expected\n{text(expected)}\nfound\n{text(found)}")


def _alike(blocks: Blocks, kinds: Sequence[int], wrong: Sequence[int]) -> _Groups:
    """The devices in groups that hold the same: of `kinds` that are the same, and all of them wrong or none."""
    alike: dict[Any, list[int]] = {}
    for device, kind in enumerate(kinds):
        alike.setdefault((kind, blocks.bounds(device), device in wrong), []).append(device)
    return list(alike.values())


def _columns(blocks: Blocks, groups: _Groups) -> int:
    """In how many columns groups of devices are drawn: as in the mesh where they fill rows and columns of it."""
    _, wide = _mesh_grid(blocks)
    rows, columns = {group[0] // wide for group in groups}, {group[0] % wide for group in groups}
    return len(columns) if len(rows) * len(columns) == len(groups) else math.ceil(math.sqrt(len(groups)))


def text(array: Any) -> str:
    """Who holds what, one line a block: the devices, and the part of the whole.

    Args:
      array: a jax.Array or `Blocks`.

    Example:
      >>> print(grader.draw.text(grader.draw.blocks((4, 4), P("x"), {"x": 2, "y": 2})))
      4×4 over x=2, y=2
        [0:2, 0:4] on devices 0, 1
        [2:4, 0:4] on devices 2, 3
    """
    blocks = as_blocks(array)
    size = "×".join(map(str, blocks.shape)) or "scalar"
    mesh = ", ".join(f"{name}={n}" for name, n in blocks.mesh.items())
    partial = f", parts of a sum over {', '.join(blocks.partial_over)}" if blocks.partial_over else ""
    lines = [f"{size} over {mesh or 'one device'}{partial}"]
    for index, holders in who_holds(blocks).items():
        lines.append(f"  {region(index)} on {numbered('device', holders)}")
    return "\n".join(lines)


def as_blocks(array: Any) -> Blocks:
    if isinstance(array, Blocks):
        return array
    if isinstance(array, jax.Array):
        return blocks_of(array)
    raise TypeError(f"a picture is drawn of a jax.Array or of Blocks, not of a {type(array).__name__}")


def who_holds(blocks: Blocks) -> Mapping[Bounds, list[int]]:
    """Each block, in order, with the devices that hold it."""
    holders: dict[Bounds, list[int]] = {}
    for device in range(len(blocks.indices)):
        holders.setdefault(blocks.bounds(device), []).append(device)
    return dict(sorted(holders.items()))


def grid_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns: the last two dimensions."""
    rows, columns = (1, 1, *shape)[-2:]
    return rows, columns


def inches(length: int) -> float:
    return min(4.2, max(1.1, 0.34 * length))


def _planes(blocks: Blocks) -> list[tuple[str, tuple[int, ...]]]:
    """The two-dimensional slices a picture consists of: one, or one for each leading index."""
    if len(blocks.shape) <= 2:
        return [("", ())]
    leading = list(np.ndindex(*blocks.shape[:-2]))
    if len(leading) > 8:
        raise ValueError(f"a picture shows at most 8 slices; shape {blocks.shape} has {len(leading)}")
    return [(f"[{', '.join(map(str, k))}]", k) for k in leading]


def draw_whole(ax: Axes, blocks: Blocks, plane: tuple[int, ...], origin: Blocks | None = None) -> None:
    """An array coloured by block; or by the blocks of its `origin`, which is the same array in another layout."""
    rows, columns = grid_shape(blocks.shape)
    if origin is not None:
        _draw_pieces(ax, blocks, origin)
    holders = who_holds(blocks)
    for colour, (index, who) in enumerate(holders.items()):
        if any(not start <= k < stop for k, (start, stop) in zip(plane, index, strict=False)):
            continue
        (top, bottom), (left, right) = ((0, 1), (0, 1), *index)[-2:] if len(index) < 2 else index[-2:]
        box, gid = (left, top, right - left, bottom - top), held_by(*who)
        rectangle(ax, box, COLOURS[colour % len(COLOURS)] if origin is None else "none", gid=gid)
        label = f"{'Σ ' * bool(blocks.partial_over)}{','.join(map(str, who))}"
        middle = (left + right) / 2, (top + bottom) / 2
        centred(ax, middle, label, 9, weight="bold", color=INK, zorder=3, gid=gid)
    _frame(ax, rows, columns)


def _draw_pieces(ax: Axes, blocks: Blocks, origin: Blocks) -> None:
    """What each block has of each block of the origin, in that one's colour."""
    for (colour, old), (new, who) in itertools.product(enumerate(who_holds(origin)), who_holds(blocks).items()):
        common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(old, new, strict=True)]
        (top, bottom), (left, right) = ((0, 1), (0, 1), *common)[-2:]
        if top < bottom and left < right:
            box = (left, top, right - left, bottom - top)
            rectangle(ax, box, COLOURS[colour % len(COLOURS)], width=0, gid=held_by(*who))


def _frame(ax: Axes, rows: int, columns: int) -> None:
    ax.set_xlim(0, columns)
    ax.set_ylim(rows, 0)
    ax.set_xticks([0, columns])
    ax.set_yticks([0, rows])
    ax.tick_params(labelsize=7, length=0, colors=QUIET)
    for side in ax.spines.values():
        side.set_visible(False)


def _mesh_grid(blocks: Blocks) -> tuple[int, int]:
    sizes = tuple(blocks.mesh.values()) or (len(blocks.indices),)
    return (1, sizes[0]) if len(sizes) == 1 else (sizes[0], math.prod(sizes[1:]))


def _labels(value: np.ndarray | None, bounds: Bounds) -> list[list[str]]:
    """What is written into a block: its values, its first corner when they are many, or its place."""
    if value is None or value.ndim > 2 or not value.size:
        return [[region(bounds)]]
    block = value.reshape(grid_shape(value.shape))
    rows, columns = (n if n <= most else most - 1 for n, most in zip(block.shape, (3, 4), strict=True))
    dots = ["…"] * (columns < block.shape[1])
    labels = [[number(entry, 5) for entry in row[:columns]] + dots for row in block[:rows]]
    return labels + [["…"] * len(labels[0])] * (rows < block.shape[0])


def _all_labels(blocks: Blocks) -> list[list[list[str]]]:
    values = blocks.values or [None] * len(blocks.indices)
    return [
        _labels(None if value is None else np.asarray(value), blocks.bounds(device))
        for device, value in enumerate(values)
    ]


def _cell(blocks: Blocks, names: Sequence[str]) -> tuple[float, float]:
    """Inches one device takes: wide and high enough for what is written in it, and above it."""
    labels = _all_labels(blocks)
    widest = max(len(entry) for block in labels for row in block for entry in row)
    columns, rows = max(len(block[0]) for block in labels), max(len(block) for block in labels)
    named = SMALLEST * max(map(len, names))
    return max(0.8, named, columns * (SMALLEST * widest + 0.12)), max(0.35, 0.19 * rows + 0.06)


HEADING, GAP = 0.34, 0.24  # inches above the grid, and above each device for its name


def _size(blocks: Blocks, groups: _Groups) -> tuple[float, float]:
    """Inches a grid of groups of devices takes."""
    columns = _columns(blocks, groups)
    rows = -(-len(groups) // columns)
    wide, high = _cell(blocks, [_named(blocks, group) for group in groups])
    return columns * (wide + 0.1), rows * (high + GAP) + HEADING + 0.05


def _named(blocks: Blocks, group: Sequence[int]) -> str:
    return f"{spanned('device', group)}{' Σ' * bool(blocks.partial_over)}"


def _colours(*arrays: Blocks) -> list[list[str]]:
    """By array and device: the same numbers have the same colour."""
    return [[COLOURS[kind % len(COLOURS)] for kind in kinds] for kinds in _kinds(*arrays)]


def _kinds(*arrays: Blocks) -> list[list[int]]:
    """By array and device a number: the same for the same numbers; where there are none, for the same part of the
    whole."""
    seen: list[Any] = []

    def number_of(datum: Any) -> int:
        for k, other in enumerate(seen):
            if type(other) is type(datum) and (
                same_numbers(datum, other) if isinstance(datum, np.ndarray) else datum == other
            ):
                return k
        seen.append(datum)
        return len(seen) - 1

    return [[number_of(_datum(blocks, device)) for device in range(len(blocks.indices))] for blocks in arrays]


def _datum(blocks: Blocks, device: int) -> Any:
    """What tells a device's numbers from others': themselves, or which part of the whole and of a sum they are."""
    if blocks.values is not None:
        return np.asarray(blocks.values[device])
    place = np.unravel_index(device, tuple(blocks.mesh.values()) or (len(blocks.indices),))
    summand = [int(k) for axis, k in zip(blocks.mesh, place, strict=False) if axis in blocks.partial_over]
    return blocks.bounds(device), summand


def _unlike(blocks: Blocks) -> list[int]:
    """The devices that hold the same part of the whole as another one, and other numbers."""
    if blocks.values is None or blocks.partial_over:
        return []
    groups = [
        who
        for who in who_holds(blocks).values()
        if any(not same_numbers(blocks.values[d], blocks.values[who[0]]) for d in who)
    ]
    return sorted(itertools.chain.from_iterable(groups))


def _draw_devices(
    ax: Axes,
    blocks: Blocks,
    groups: _Groups,
    title: str,
    colours: Sequence[str],
    wrong: Sequence[int] = (),
    left: float = 0.0,
) -> None:
    """Draw a grid of groups of devices that hold the same into `ax`, whose units are inches from the top left, starting
    at `left`."""
    size = _size(blocks, groups)
    columns = _columns(blocks, groups)
    names = [_named(blocks, group) for group in groups]
    (wide, high), all_labels = _cell(blocks, names), _all_labels(blocks)
    centred(ax, (left + size[0] / 2, HEADING / 2), title, 10)
    for place, (group, name) in enumerate(zip(groups, names, strict=True)):
        row, column = divmod(place, columns)
        x, y = left + 0.05 + column * (wide + 0.1), HEADING + GAP + row * (high + GAP)
        framed, labels = group[0] in wrong, all_labels[group[0]]
        centred(ax, (x + wide / 2, y - 0.05), name, 7.5, va="bottom", color=WRONG if framed else PAGE)
        edge, width = (WRONG, 2) if framed else (INK, EDGE)
        gid = held_by(*group, name=name * framed)
        rectangle(ax, (x, y, wide, high), colours[group[0]], edge, width, gid=gid)
        _write(ax, labels, (x, y, wide / len(labels[0]), high / len(labels)), held_by(*group))


def _write(ax: Axes, labels: list[list[str]], box: Box, gid: str) -> None:
    """Entries into a block; `box` is that of the first."""
    x, y, wide, high = box
    for row, entries in enumerate(labels):
        for column, entry in enumerate(entries):
            centred(ax, (x + (column + 0.5) * wide, y + (row + 0.5) * high), entry, 7, color=INK, gid=gid)


def _same(one: Blocks, other: Blocks, device: int) -> bool:
    if one.indices[device] != other.indices[device] or one.values is None or other.values is None:
        return one.indices[device] == other.indices[device]
    return close(one.values[device], other.values[device])
