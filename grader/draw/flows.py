"""A program's products and collectives in the order in which a device comes by, and what stands between them.

Drawn from the program as JAX traces it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grader.draw.picture import OF_KIND, QUIET, Picture, inches_of, sheet
from grader.draw.shapes import Box, arrow, block, lettered
from grader.programs.jaxprs import inner_jaxprs

HIGH, APART, DOWN, TOP = 0.4, 0.25, 0.85, 0.5  # inches: a box, to the next, to the next row, above
ROW, FRAMED = 8, 0.45  # boxes in a row; inches for what stands beside a frame
# What JAX calls its collectives, and what the course does.
KINDS = {
    "all_gather": "all_gather",
    "all_gather_invariant": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "psum": "all_reduce",
    "psum_invariant": "all_reduce",
    "all_to_all": "all_to_all",
    "ppermute": "collective_permute",
}
# What leaves an array what it is: weights that were gathered or turned are still those weights.
SAME = {"all_gather", "broadcast_in_dim", "convert_element_type", "pcast", "pvary", "reshape", "squeeze", "transpose"}
# A root is where a norm is. What comes out of one of the others is what went in, however it is laid out.
ROOTS, PLAIN = {"rsqrt", "sqrt"}, {"convert_element_type", "pcast", "pvary", "reshape", "squeeze", "transpose"}
NORM, ADDED = "norm", "x +"


@dataclass(frozen=True, eq=False)  # two loops of the same length are two
class Loop:
    """A scan: how often a device comes by what is in it."""

    times: int


ONCE = Loop(1)


@dataclass(frozen=True)
class Stop:
    """A product, a collective, a norm, or a sum of what one of the first two gives and another array; the weights that
    it takes, and the loop that it is in. A collective has its mesh axes, and the shape of what it gives on a device."""

    kind: str
    axes: tuple[str, ...] = ()
    shape: tuple[int, ...] | None = None
    weights: str = ""
    loop: Loop = ONCE

    @property
    def lines(self) -> list[str]:
        if self.axes:
            return [self.kind, self.weights] if self.weights else [self.kind]
        return [f"× {self.weights}" if self.weights else self.kind]

    @property
    def gives(self) -> str:
        return "" if self.shape is None else "×".join(map(str, self.shape)) or "a number"

    @property
    def wide(self) -> float:
        """Inches of its box."""
        return max(0.6, inches_of(self.lines, 0.075) + 0.14, inches_of([self.gives], 0.07) + 0.1)

    def __str__(self) -> str:
        taken = f" {'of' if self.axes else 'with'} {self.weights}" if self.weights else ""
        over = f" over {', '.join(self.axes)}" if self.axes else ""
        times = f", {self.loop.times} times" if self.loop.times > 1 else ""
        given = f" → {self.gives}" if self.gives else ""
        return f"{self.kind}{taken}{over}{given}{times}"


def flow(fn: Callable[..., Any], *args: Any, title: str = "") -> Picture:
    """A chain of boxes: collectives each in its colour, with the shape that it gives; products and norms without one.

    A product with an array that came in a dict says under which name, and so does its all_gather. "x +" is where what
    a product or a collective gives is added to an array of its shape.

    Args:
      fn: a function of arrays; what stands in a scan comes once, in a frame that says how often.
      *args: arrays, or their shapes (`jax.ShapeDtypeStruct`).
      title: stands above the picture.

    Example:
      >>> line = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> total = jax.shard_map(lambda v: jax.lax.psum(v @ v.T, "x"), mesh=line, in_specs=P("x"), out_specs=P())
      >>> grader.draw.flow(total, np.ones((4, 3)))
        product
        all_reduce over x → 2×2
    """
    jaxpr = jax.make_jaxpr(fn)(*args).jaxpr
    stops = list(_stops(jaxpr, dict(zip(jaxpr.invars, _names(args), strict=True))))
    if all(stop.kind in (NORM, ADDED) for stop in stops):
        raise ValueError("there is nothing to draw: the program has no product and no collective")
    rows = _rows(stops)
    longest = max(sum(stop.wide + APART for stop in row) for row in rows)
    across = 0.1 + longest + FRAMED * any(stop.loop.times > 1 for stop in stops)
    figure, ax = sheet(max(across, inches_of([title]) + 0.2), TOP + len(rows) * DOWN)
    lettered(ax, (0.05, 0.13), title, 10)
    boxes = list(_boxes(rows))
    for stop, (x, y, wide, high) in zip(stops, boxes, strict=True):
        block(ax, (x, y, wide, high), OF_KIND.get(stop.kind, "none"), "\n".join(stop.lines), str(stop), size=8)
        lettered(ax, (x + wide / 2, y + high + 0.12), stop.gives, 7.5, ha="center", color=QUIET)
        lettered(ax, (x + wide / 2, y - 0.1), ", ".join(stop.axes), 7.5, ha="center", color=QUIET)
    for (x, y, wide, high), (u, v, *_) in itertools.pairwise(boxes):
        if y == v:
            arrow(ax, (x + wide + 0.03, y + high / 2), (u - 0.03, v + high / 2))
    for loop, run in itertools.groupby(zip(stops, boxes, strict=True), lambda pair: pair[0].loop):
        if loop.times > 1:
            _framed(ax, [box for _, box in run], f"{loop.times} times")
    return Picture(figure, "\n".join(filter(None, [title, *(f"  {stop}" for stop in stops)])))


def _boxes(rows: Sequence[Sequence[Stop]]) -> Iterator[Box]:
    """Where each stop stands, row by row."""
    for n, row in enumerate(rows):
        ends = itertools.accumulate((stop.wide + APART for stop in row), initial=0.1)
        yield from ((left, TOP + n * DOWN, stop.wide, HIGH) for left, stop in zip(ends, row, strict=False))


def _framed(ax: Axes, boxes: Sequence[Box], words: str) -> None:
    """A frame around the boxes of whole rows, and words beside it."""
    left, right, aside = boxes[0][0], max(x + wide for x, _, wide, _ in boxes) + 0.06, 0.06
    top, high = boxes[0][1] - 0.21, boxes[-1][1] - boxes[0][1] + HIGH + 0.43
    ax.add_patch(Rectangle((left - aside, top), right - left + aside, high, facecolor="none", edgecolor=QUIET))
    lettered(ax, (right + 0.08, top + high / 2), words, 10)


def _rows(stops: Sequence[Stop]) -> list[list[Stop]]:
    """A loop begins a row and ends one; and what does not fit in a row breaks where a sum is dealt out (and added), or
    where a row is full."""
    long = len(stops) > ROW
    rows: list[list[Stop]] = [[stops[0]]]
    for before, stop in itertools.pairwise(stops):
        dealt = "reduce_scatter" in [one.kind for one in rows[-1][-2:]] and stop.kind != ADDED
        if before.loop is not stop.loop or long and (len(rows[-1]) == ROW or dealt):
            rows.append([])
        rows[-1].append(stop)
    return rows


def _names(args: Any) -> list[str]:
    """For each array in `args` the key under which it stands in a dict; "" where it stands in none."""
    paths = (path for path, _ in jax.tree_util.tree_leaves_with_path(args))
    return [str(path[-1].key) if isinstance(path[-1], jax.tree_util.DictKey) else "" for path in paths]


def _stops(jaxpr: Any, named: Mapping[Any, str], loop: Loop = ONCE) -> Iterator[Stop]:
    """The stops of a jaxpr in their order; `named` says of its inputs what they are called."""
    names = dict(named)
    made: set[Any] = set()  # what a product or a collective gives
    spread: set[Any] = set()  # what was smaller, such as a bias
    for eqn in jaxpr.eqns:
        kind = eqn.primitive.name
        shape = tuple(eqn.outvars[0].aval.shape) if eqn.outvars else ()
        given = ["" if isinstance(value, jax.extend.core.Literal) else names.get(value, "") for value in eqn.invars]
        if kind in SAME:
            names[eqn.outvars[0]] = given[0]
        if kind == "dot_general":
            yield Stop("product", weights=given[1] or given[0], loop=loop)
        elif kind in KINDS:
            axes = eqn.params.get("axes", eqn.params.get("axis_name"))
            yield Stop(KINDS[kind], (axes,) if isinstance(axes, str) else tuple(axes), shape, given[0], loop)
        elif kind in ROOTS and shape:
            yield Stop(NORM, loop=loop)
        taken = {value for value in eqn.invars if not isinstance(value, jax.extend.core.Literal)}
        if kind == "add" and len(taken) == 2 and len(taken & made) == 1 and not taken & spread:
            yield Stop(ADDED, loop=loop)
        passed_on = taken & made and (kind in PLAIN or kind == "add" and taken & spread)
        if kind == "dot_general" or kind in KINDS or passed_on:
            made.update(eqn.outvars)
        if kind == "broadcast_in_dim" or kind in PLAIN and taken & spread:
            spread.update(eqn.outvars)
        within = Loop(loop.times * eqn.params["length"]) if kind == "scan" and eqn.params["length"] > 1 else loop
        for part in inner_jaxprs(eqn):
            inner = getattr(part, "jaxpr", part)
            alike = len(inner.invars) == len(given)
            yield from _stops(inner, dict(zip(inner.invars, given, strict=True)) if alike else {}, within)
