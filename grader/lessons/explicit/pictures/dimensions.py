"""Operations on arrays with shardings in their types: dimension under dimension, and what stops."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from grader.arrays.blocks import axes_of
from grader.draw.picture import COLOURS, WRONG, Picture, inches_of, sheet
from grader.draw.shapes import Point, block, lettered, red_frame

TWICE = 3  # the rule by which no axis may occur twice
WIDE, HIGH, APART, TOP, ACROSS = 0.74, 0.3, 0.5, 0.75, 2  # inches: a dimension; to the next; above; panels in a row
RESULT, NO_TYPE = "result", "no type: rule"
Length = tuple[int, tuple[str, ...]]  # a dimension's length, and the axes that shard it


@dataclass(frozen=True)
class Dimensions:
    """What an operation's type comes from: array → letter → dimension, the result (if it has a type) last.

    `stops` are the letters at which no type is found, and `rule` is the lesson's rule: 2 if axes disagree, or shard a
    contracted dimension on both sides; 3 if an axis would occur twice; 0 if there is a type.
    """

    arrays: Mapping[str, Mapping[str, Length]]
    rule: int = 0
    stops: tuple[str, ...] = ()

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(letter for array in self.arrays.values() for letter in array))

    @property
    def twice(self) -> list[tuple[str, int]]:
        """Where rule 3 stops: for each of its letters the first array, as a row, in which an axis shards it."""
        rows = list(self.arrays.values())
        return [(k, next(n for n, row in enumerate(rows) if k in row and row[k][1])) for k in self.stops]


def matched(letters: str, operands: Mapping[str, Any]) -> Dimensions:
    """The dimensions of an `einsum` of arrays on a mesh of Explicit axes, and by which rule it stops, if it does.

    Args:
      letters: as `jax.numpy.einsum` takes them, such as "ij,jk->ik".
      operands: name → array, in their order.
    """
    lefts, _, right = letters.partition("->")
    arrays = {
        name: {letter: (n, axes_of(entry)) for letter, n, entry in zip(word, a.shape, _entries(a), strict=True)}
        for word, (name, a) in zip(lefts.split(","), operands.items(), strict=True)
    }
    every = dict.fromkeys(letter for array in arrays.values() for letter in array)
    cuts = {letter: [axes for a in arrays.values() if letter in a and (axes := a[letter][1])] for letter in every}
    if open_ones := tuple(k for k, cut in cuts.items() if len(set(cut)) > 1 or (k not in right and len(cut) > 1)):
        return Dimensions(arrays, 2, open_ones)
    lengths = {letter: n for array in arrays.values() for letter, (n, _) in array.items()}
    result = {letter: (lengths[letter], cuts[letter][0] if cuts[letter] else ()) for letter in right}
    named = [axis for _, cut in result.values() for axis in cut]
    if twice := tuple(k for k, (_, cut) in result.items() if any(named.count(axis) > 1 for axis in cut)):
        return Dimensions(arrays, TWICE, twice)
    return Dimensions({**arrays, RESULT: result})


def dimensions(operations: Mapping[str, tuple[str, Mapping[str, Any]]], title: str = "") -> Picture:
    """A panel for each operation: a row for each array, and below each letter the dimensions that belong together.

    A dimension has the color of the axis that shards it, and none if it is replicated. If the operation stops, the
    dimensions that stop it are framed red (a line joins those that one axis shards), and there is no result.

    Args:
      operations: name → (letters as `einsum` takes them, {name: array on a mesh of Explicit axes}).
      title: the text above the picture.

    Example:
      >>> line = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
      >>> rows = jax.device_put(np.ones((4, 4)), jax.NamedSharding(line, P("x")))
      >>> grader.draw.dimensions({"rows + rows.T": ("ij,ji->ij", {"rows": rows, "rows.T": rows})})
      rows + rows.T stops (rule 3) at i, j
        rows: i 4@x, j 4
        rows.T: j 4@x, i 4
    """
    found = {name: matched(letters, operands) for name, (letters, operands) in operations.items()}
    axes = [a for one in found.values() for array in one.arrays.values() for _, cut in array.values() for a in cut]
    colours = dict(zip(dict.fromkeys(axes), COLOURS, strict=False))
    names = inches_of([*(name for one in found.values() for name in one.arrays), NO_TYPE], 0.08) + 0.15
    wide = names + max(len(one.letters) for one in found.values()) * WIDE + APART
    high = TOP + HIGH * max(len(one.arrays) + bool(one.rule) for one in found.values())
    columns, above = min(ACROSS, len(found)), 0.35 if title else 0.0
    figure, ax = sheet(max(columns * wide, inches_of([title])), above + -(-len(found) // columns) * high)
    lettered(ax, (0.05, 0.13), title, 10)
    for k, (name, one) in enumerate(found.items()):
        _draw_panel(ax, name, one, colours, (k % columns * wide + names, above + k // columns * high))
    return Picture(figure, "\n".join(filter(None, [title, *(_told(name, one) for name, one in found.items())])))


def _draw_panel(ax: Axes, name: str, one: Dimensions, colours: Mapping[str, str], corner: Point) -> None:
    """An operation; the names of its arrays are left of the corner."""
    left, top = corner
    places = {letter: left + n * WIDE for n, letter in enumerate(one.letters)}
    lettered(ax, (left, top + 0.18), name, 9, weight="bold")
    for letter, x in places.items():
        lettered(ax, (x + WIDE / 2, top + 0.42), letter, 8.5, ha="center", style="italic")
    first = top + 0.55
    for row, (array, cells) in enumerate(one.arrays.items()):
        y = first + row * HIGH
        lettered(ax, (left - 0.1, y + HIGH / 2), array, 8.5, ha="right")
        for letter, cell in cells.items():
            colour = colours[cell[1][0]] if cell[1] else "none"
            box = (places[letter] + 0.03, y + 0.02, WIDE - 0.06, HIGH - 0.04)
            block(ax, box, colour, _written(cell), f"{name}: {array} {letter}")
    tall = HIGH * len(one.arrays)
    if one.rule == TWICE:
        _join(ax, name, [(k, (places[k], first + row * HIGH)) for k, row in one.twice])
    else:
        for letter in one.stops:
            red_frame(ax, (places[letter], first, WIDE, tall), f"{name}: stops at {letter}")
    if one.rule:
        lettered(ax, (left - 0.1, first + tall + HIGH / 2), f"{NO_TYPE} {one.rule}", 8.5, ha="right", color=WRONG)


def _join(ax: Axes, name: str, corners: Sequence[tuple[str, Point]]) -> None:
    """A red frame around each dimension that one axis shards, and a line from one to the next."""
    for letter, corner in corners:
        red_frame(ax, (*corner, WIDE, HIGH), f"{name}: stops at {letter}")
    for (_, (x, y)), (_, (u, v)) in itertools.pairwise(corners):
        ends = (x + WIDE, u) if x < u else (x, u + WIDE)
        ax.add_line(Line2D(ends, (y + HIGH / 2, v + HIGH / 2), color=WRONG, linewidth=2, gid=f"{name}: twice"))


def _entries(array: Any) -> tuple[Any, ...]:
    """What the array's type says about each dimension."""
    spec = jax.typeof(array).sharding.spec
    return (*spec, *[None] * (array.ndim - len(spec)))


def _written(cell: Length) -> str:
    length, axes = cell
    if not axes:
        return str(length)
    return f"{length}@{axes[0] if len(axes) == 1 else '(' + ','.join(axes) + ')'}"


def _told(name: str, one: Dimensions) -> str:
    stops = f" stops (rule {one.rule}) at {', '.join(one.stops)}" if one.rule else ""
    rows = [f"  {a}: {', '.join(f'{k} {_written(c)}' for k, c in cells.items())}" for a, cells in one.arrays.items()]
    return "\n".join([name + stops, *rows])
