"""A program's products and collectives in the order in which a device comes by, with the shapes that it has there.

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
from grader.draw.shapes import Point, arrow, block, lettered

HIGH, APART, DOWN, TOP = 0.4, 0.3, 0.85, 0.5  # inches: a box, to the next, to the next row, above
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


@dataclass(frozen=True, eq=False)  # two loops of the same length are two
class Loop:
    """A scan: how often a device comes by what is in it."""

    times: int


ONCE = Loop(1)


@dataclass(frozen=True)
class Stop:
    """A product or a collective: what it gives on a device, the mesh axes of a collective, the weights that it takes,
    and the loop that it is in."""

    kind: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    weights: str = ""
    loop: Loop = ONCE

    @property
    def lines(self) -> list[str]:
        if self.axes:
            return [self.kind, self.weights] if self.weights else [self.kind]
        return [f"× {self.weights}" if self.weights else self.kind]

    def __str__(self) -> str:
        taken = f" {'of' if self.axes else 'with'} {self.weights}" if self.weights else ""
        over = f" over {', '.join(self.axes)}" if self.axes else ""
        times = f", {self.loop.times} times" if self.loop.times > 1 else ""
        return f"{self.kind}{taken}{over} → {'×'.join(map(str, self.shape)) or 'a number'}{times}"


def flow(fn: Callable[..., Any], *args: Any, title: str = "") -> Picture:
    """A chain of boxes: products without a colour, collectives each in its own.

    A product with an array that came in a dict says under which name, and so does its all_gather.

    Args:
      fn: a function of arrays; what stands in a scan comes once, in a frame that says how often.
      *args: arrays, or their shapes (`jax.ShapeDtypeStruct`).
      title: stands above the picture.

    Example:
      >>> line = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> total = jax.shard_map(lambda v: jax.lax.psum(v @ v.T, "x"), mesh=line, in_specs=P("x"), out_specs=P())
      >>> grader.draw.flow(total, np.ones((4, 3)))
        product → 2×2
        all_reduce over x → 2×2
    """
    jaxpr = jax.make_jaxpr(fn)(*args).jaxpr
    stops = list(_stops(jaxpr, dict(zip(jaxpr.invars, _names(args), strict=True))))
    if not stops:
        raise ValueError("there is nothing to draw: the program has no product and no collective")
    shapes = ["×".join(map(str, stop.shape)) for stop in stops]
    labels = [line for stop in stops for line in stop.lines]
    wide = max(0.6, inches_of(labels, 0.075) + 0.14, inches_of(shapes, 0.07) + 0.1)
    rows = _rows(stops)
    across = 0.1 + max(map(len, rows)) * (wide + APART) + FRAMED * any(stop.loop.times > 1 for stop in stops)
    figure, ax = sheet(max(across, inches_of([title]) + 0.2), TOP + len(rows) * DOWN)
    lettered(ax, (0.05, 0.13), title, 10)
    places = [(0.1 + k * (wide + APART), TOP + n * DOWN) for n, row in enumerate(rows) for k in range(len(row))]
    for stop, words, (x, y) in zip(stops, shapes, places, strict=True):
        block(ax, (x, y, wide, HIGH), OF_KIND.get(stop.kind, "none"), "\n".join(stop.lines), str(stop), size=8)
        lettered(ax, (x + wide / 2, y + HIGH + 0.12), words, 7.5, ha="center", color=QUIET)
        lettered(ax, (x + wide / 2, y - 0.1), ", ".join(stop.axes), 7.5, ha="center", color=QUIET)
    for (x, y), (u, v) in itertools.pairwise(places):
        if y == v:
            arrow(ax, (x + wide + 0.03, y + HIGH / 2), (u - 0.03, v + HIGH / 2))
    for loop, run in itertools.groupby(zip(stops, places, strict=True), lambda pair: pair[0].loop):
        if loop.times > 1:
            _framed(ax, [place for _, place in run], wide, f"{loop.times} times")
    return Picture(figure, "\n".join(filter(None, [title, *(f"  {stop}" for stop in stops)])))


def _framed(ax: Axes, places: Sequence[Point], wide: float, words: str) -> None:
    """A frame around the boxes of whole rows, and words beside it."""
    (xs, ys), aside = zip(*places, strict=True), 0.06
    top, high, right = ys[0] - 0.21, ys[-1] - ys[0] + HIGH + 0.43, max(xs) + wide + aside
    ax.add_patch(
        Rectangle((xs[0] - aside, top), right - xs[0] + aside, high, facecolor="none", edgecolor=QUIET, linewidth=0.8)
    )
    lettered(ax, (right + 0.08, top + high / 2), words, 10)


def _rows(stops: Sequence[Stop]) -> list[list[Stop]]:
    """A loop begins a row and ends one; and what does not fit in a row breaks where a sum is dealt out, or where a row
    is full."""
    long = len(stops) > ROW
    rows: list[list[Stop]] = [[stops[0]]]
    for before, stop in itertools.pairwise(stops):
        if before.loop is not stop.loop or long and (len(rows[-1]) == ROW or before.kind == "reduce_scatter"):
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
    for eqn in jaxpr.eqns:
        kind = eqn.primitive.name
        shape = tuple(eqn.outvars[0].aval.shape) if eqn.outvars else ()
        given = ["" if isinstance(value, jax.extend.core.Literal) else names.get(value, "") for value in eqn.invars]
        if kind in SAME:
            names[eqn.outvars[0]] = given[0]
        if kind == "dot_general":
            yield Stop("product", (), shape, given[1] or given[0], loop)
        elif kind in KINDS:
            axes = eqn.params.get("axes", eqn.params.get("axis_name"))
            yield Stop(KINDS[kind], (axes,) if isinstance(axes, str) else tuple(axes), shape, given[0], loop)
        within = Loop(loop.times * eqn.params["length"]) if kind == "scan" and eqn.params["length"] > 1 else loop
        for value in eqn.params.values():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                inner: Any = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    alike = len(inner.invars) == len(given)
                    yield from _stops(inner, dict(zip(inner.invars, given, strict=True)) if alike else {}, within)
