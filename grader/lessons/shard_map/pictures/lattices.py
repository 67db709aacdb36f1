"""The types of values inside shard_map as a lattice: over which axes a value may vary, and what leads where.

Drawn from JAX itself: each operation is traced on a value of each type, and its result's type is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from matplotlib.figure import Figure

from grader.arrays.meshes import make_mesh
from grader.draw.picture import COLOURS, QUIET, Picture, inches_of, sheet
from grader.draw.shapes import arrow, block, lettered
from grader.jax_versions import all_gather, axes_varied, varying

Varied = frozenset[str]
OverAxis = Callable[[Any, str], Any]
# Of a value that varies over an axis, collectives over this axis; of one that does not, what makes it vary.
COLLECT: Mapping[str, OverAxis] = {
    "psum": lax.psum,
    "pmax": lax.pmax,
    'all_gather(…, to="invarying")': lambda v, axis: all_gather(v, axis, to="invarying"),
    "all_gather": lax.all_gather,
    "ppermute": lambda v, axis: lax.ppermute(v, axis, [(0, 1), (1, 0)]),
}
LOOSEN: Mapping[str, OverAxis] = {
    "v + axis_index": lambda v, axis: v + lax.axis_index(axis),
    "pcast": varying,
}
HIGH, DOWN, ACROSS, TOP = 0.34, 0.95, 2.0, 0.5  # inches: a type, from one row to the next, from type to type, above


def lattice(axes: Sequence[str], title: str = "") -> Picture:
    """All types over these axes of a mesh, from the one that may vary over all down to the one that varies over none.

    Args:
      axes: names of one axis or two.
      title: stands above the picture.

    Example:
      >>> grader.draw.lattice(["x"])
      {V:x} → {}: psum, pmax, all_gather(…, to="invarying") over x
      {V:x} → {V:x}: all_gather, ppermute over x
      {} → {V:x}: v + axis_index, pcast over x
    """
    if not 1 <= len(axes) <= 2:
        raise ValueError(f"a lattice is drawn over one axis or two, not over {', '.join(axes) or 'none'}")
    found = type_moves(axes)
    facts = [
        f"{spelled_type(a)} → {spelled_type(b)}: {', '.join(names)} over {axis}"
        for (a, b, axis), names in found.items()
    ]
    return Picture(_drawn(axes, found, title), "\n".join(filter(None, [title, *facts])))


def type_moves(axes: Sequence[str]) -> dict[tuple[Varied, Varied, str], list[str]]:
    """(a type, another, an axis) → the operations over the axis that lead from the one to the other."""
    mesh = make_mesh(dict.fromkeys(axes, 2))
    found: dict[tuple[Varied, Varied, str], list[str]] = {}
    for start, axis in itertools.product(_types(axes), axes):
        for name, operation in (COLLECT if axis in start else LOOSEN).items():
            found.setdefault((start, _after(operation, start, axis, mesh), axis), []).append(name)
    return found


def spelled_type(varied: Varied) -> str:
    """As JAX prints it behind a shape."""
    names = ",".join(sorted(varied))
    return f"{{V:({names})}}" if len(varied) > 1 else f"{{V:{names}}}" if varied else "{}"


def _types(axes: Sequence[str]) -> list[Varied]:
    """From the one that varies over all to the one that varies over none."""
    return [frozenset(some) for n in range(len(axes), -1, -1) for some in itertools.combinations(axes, n)]


def _after(operation: OverAxis, start: Varied, axis: str, mesh: Any) -> Varied:
    seen: list[Varied] = []

    def body(v: Any) -> Any:
        value = varying(v, tuple(sorted(start))) if start else v
        seen.append(frozenset(axes_varied(jax.typeof(operation(value, axis)))))
        return v

    jax.eval_shape(jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P()), jnp.zeros(2))
    return seen[0]


def _drawn(axes: Sequence[str], found: Mapping[tuple[Varied, Varied, str], list[str]], title: str) -> Figure:
    wide = inches_of([spelled_type(frozenset(axes)), "the same on all"]) + 0.2
    rows = [[kind for kind in _types(axes) if len(kind) == n] for n in range(len(axes), -1, -1)]
    most = max(map(len, rows))
    whole = (most - 1) * ACROSS + wide
    places = {
        kind: (0.1 + whole / 2 + (k - (len(row) - 1) / 2) * ACROSS, TOP + n * DOWN)
        for n, row in enumerate(rows)
        for k, kind in enumerate(row)
    }
    words = {
        "↓": next(names for (a, b, _), names in found.items() if b < a),
        "↑": next(names for (a, b, _), names in found.items() if a < b),
        "stay:": next(names for (a, b, _), names in found.items() if a == b),
    }
    legend = [f"{sign} {', '.join(names)}" for sign, names in words.items()]
    figure, ax = sheet(whole + 0.6 + inches_of(legend, 0.078), TOP + len(axes) * DOWN + HIGH + 0.1)
    lettered(ax, (0.05, 0.13), title, 10)
    for kind, (x, y) in places.items():
        colour = COLOURS[len(kind)]
        block(ax, (x - wide / 2, y, wide, HIGH), colour, spelled_type(kind) if kind else "{}  the same on all", size=9)
    for start, end, axis in found:
        if start == end:
            continue
        up = len(start) < len(end)
        (x, y), (u, v) = places[start], places[end]
        aside = -0.12 if up else 0.12
        ends = (x + aside, y + (0 if up else HIGH)), (u + aside, v + (HIGH if up else 0))
        arrow(ax, *ends)
        if not up:
            lettered(ax, ((x + u) / 2 + 0.2, (y + v + HIGH) / 2), axis, 9, color=QUIET)
    for k, line in enumerate(legend):
        lettered(ax, (whole + 0.4, TOP + 0.2 + 0.3 * k), line, 9)
    return figure
