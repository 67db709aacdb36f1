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

from grader.draw.picture import OF_KIND, QUIET, Picture, inches_of, sheet
from grader.draw.shapes import arrow, block, lettered

HIGH, APART, DOWN, TOP, ROW = (
    0.4,
    0.3,
    0.85,
    0.5,
    8,
)  # inches: a box, to the next, to the next row, above; boxes in a row
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


@dataclass(frozen=True)
class Stop:
    """A product or a collective: what it gives on a device, the mesh axes of a collective, the weights of a product."""

    kind: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    weights: str = ""

    @property
    def label(self) -> str:
        return f"× {self.weights}" if self.weights else self.kind

    def __str__(self) -> str:
        over = f" over {', '.join(self.axes)}" if self.axes else f" with {self.weights}" if self.weights else ""
        return f"{self.kind}{over} → {'×'.join(map(str, self.shape)) or 'a number'}"


def flow(fn: Callable[..., Any], *args: Any, title: str = "") -> Picture:
    """A chain of boxes: products without a colour, collectives each in its own.

    A product with an array that came in a dict says under which name.

    Args:
      fn: a function of arrays; what stands in a loop comes once.
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
    wide = max(0.6, inches_of([stop.label for stop in stops], 0.075) + 0.14, inches_of(shapes, 0.07) + 0.1)
    rows = _rows(stops)
    across = max(map(len, rows))
    figure, ax = sheet(max(0.1 + across * (wide + APART), inches_of([title]) + 0.2), TOP + len(rows) * DOWN)
    lettered(ax, (0.05, 0.13), title, 10)
    places = [(0.1 + k * (wide + APART), TOP + n * DOWN) for n, row in enumerate(rows) for k in range(len(row))]
    for stop, words, (x, y) in zip(stops, shapes, places, strict=True):
        block(ax, (x, y, wide, HIGH), OF_KIND.get(stop.kind, "none"), stop.label, str(stop), size=8)
        lettered(ax, (x + wide / 2, y + HIGH + 0.12), words, 7.5, ha="center", color=QUIET)
        lettered(ax, (x + wide / 2, y - 0.1), ", ".join(stop.axes), 7.5, ha="center", color=QUIET)
    for (x, y), (u, v) in itertools.pairwise(places):
        if y == v:
            arrow(ax, (x + wide + 0.03, y + HIGH / 2), (u - 0.03, v + HIGH / 2))
    return Picture(figure, "\n".join(filter(None, [title, *(f"  {stop}" for stop in stops)])))


def _rows(stops: Sequence[Stop]) -> list[list[Stop]]:
    """All in a row, if they fit; else a row ends where a sum is dealt out, or where it is full."""
    if len(stops) <= ROW:
        return [list(stops)]
    rows: list[list[Stop]] = [[]]
    for stop in stops:
        if len(rows[-1]) == ROW or rows[-1] and rows[-1][-1].kind == "reduce_scatter":
            rows.append([])
        rows[-1].append(stop)
    return rows


def _names(args: Any) -> list[str]:
    """For each array in `args` the key under which it stands in a dict; "" where it stands in none."""
    paths = (path for path, _ in jax.tree_util.tree_leaves_with_path(args))
    return [str(path[-1].key) if isinstance(path[-1], jax.tree_util.DictKey) else "" for path in paths]


def _stops(jaxpr: Any, named: Mapping[Any, str]) -> Iterator[Stop]:
    """The stops of a jaxpr in their order; `named` says of its inputs what they are called."""
    names = dict(named)
    for eqn in jaxpr.eqns:
        kind = eqn.primitive.name
        shape = tuple(eqn.outvars[0].aval.shape) if eqn.outvars else ()
        given = ["" if isinstance(value, jax.extend.core.Literal) else names.get(value, "") for value in eqn.invars]
        if kind in SAME:
            names[eqn.outvars[0]] = given[0]
        if kind == "dot_general":
            yield Stop("product", (), shape, given[1] or given[0])
        elif kind in KINDS:
            axes = eqn.params.get("axes", eqn.params.get("axis_name"))
            yield Stop(KINDS[kind], (axes,) if isinstance(axes, str) else tuple(axes), shape)
        for value in eqn.params.values():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                inner: Any = getattr(part, "jaxpr", part)
                if hasattr(inner, "eqns"):
                    alike = len(inner.invars) == len(given)
                    yield from _stops(inner, dict(zip(inner.invars, given, strict=True)) if alike else {})
