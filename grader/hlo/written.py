"""What a program's author wrote, read from its jaxpr, and what the compiler made of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.hlo.collectives import CompiledCollective
from grader.hlo.sources import SourceLine, callers
from grader.hlo.text import dtype_name
from grader.jax_versions import open_jaxpr, spots
from grader.programs.collectives import OF_PRIMITIVE
from grader.programs.jaxprs import equations, inner_jaxprs

_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


@dataclass(frozen=True)
class WrittenCollective:
    """A collective that an author wrote: its primitive, the axes of its mesh that it runs over, how many devices that
    are, and one device's operand."""

    kind: str
    primitive: str
    axes: tuple[str, ...]
    group: int
    mesh: frozenset[str]
    shape: tuple[int, ...]
    dtype: str
    place: SourceLine | None

    def __str__(self) -> str:
        over = f" over {', '.join(self.axes)}" if self.axes else ""
        at = f" ({self.place})" if self.place else ""
        return f"{self.kind} of {self.array}{over}{at}"

    @property
    def array(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def written_in(jaxpr: Any, mesh: Mapping[str, int] | None = None) -> Iterator[WrittenCollective]:
    """The collectives of a traced function, in the order of the program, each operand by itself."""
    sizes = mesh or {}
    for eqn in open_jaxpr(jaxpr).eqns:
        kind, axes = OF_PRIMITIVE.get(eqn.primitive.name), _axes(eqn.params)
        if kind and axes:  # over dimensions of an array, as under vmap, it is no collective
            group = math.prod(sizes.get(axis, 1) for axis in axes)
            place = _place(eqn)
            avals: list[Any] = [operand.aval for operand in eqn.invars]
            for aval in avals[: 1 if kind == "ragged_all_to_all" else None]:
                shape, dtype = tuple(aval.shape), _short(aval.dtype)
                yield WrittenCollective(kind, eqn.primitive.name, axes, group, frozenset(sizes), shape, dtype, place)
        inside = dict(eqn.params["mesh"].shape) if eqn.primitive.name == "shard_map" else sizes
        for inner in inner_jaxprs(eqn):
            yield from written_in(inner, inside)


def lines_in(jaxpr: Any) -> dict[tuple[str, bool], SourceLine]:
    """The line of each primitive that is on one line only, forward (False) and backward (True)."""
    found: dict[tuple[str, bool], set[SourceLine | None]] = {}
    for eqn, backward in equations(jaxpr):
        found.setdefault((eqn.primitive.name, backward), set()).add(_place(eqn))
    return {key: line for key, (line, *others) in found.items() if line is not None and not others}


def _place(eqn: Any) -> SourceLine | None:
    return callers([SourceLine(spot.file, spot.first) for spot in spots(eqn)])


def _axes(params: Mapping[str, Any]) -> tuple[str, ...]:
    axes = params.get("axes", params.get("axis_name", ()))
    return tuple(axis for axis in (axes if isinstance(axes, (tuple, list)) else (axes,)) if isinstance(axis, str))


def _short(dtype: Any) -> str:
    """A dtype as jaxprs spell it: float32 is f32."""
    name = str(dtype)
    word = name.rstrip("0123456789")
    return f"{_SHORT[word]}{name[len(word) :]}" if word in _SHORT else dtype_name(re.sub(r"^float(\d+)_", r"f\1", name))


def reconciled(
    found: Sequence[CompiledCollective], written: Sequence[WrittenCollective]
) -> tuple[tuple[CompiledCollective, ...], tuple[WrittenCollective, ...]]:
    """What runs, each labeled by who wrote it, and what was written and doesn't run.

    The compiled text names the primitive that a collective serves. It is its author's if it is what that primitive
    does, along its axes; else the compiler needed it on the way there. One of the author's that was made into another
    kind says so.
    """
    left = list(written)
    labeled = [_labeled(c, left, written) for c in found]
    return tuple(_replacing(c, left) for c in labeled), tuple(left)


def _labeled(
    c: CompiledCollective, left: list[WrittenCollective], written: Sequence[WrittenCollective]
) -> CompiledCollective:
    """A collective with what its author wrote, which is then taken from what is left; the compiler's if none fits.

    XLA may make several of one, as where it unrolls a loop, and may reshape an operand. Where it merged some and kept
    no name of this one, the array decides first.
    """
    by_array = [] if c.is_named else [w for w in left if _is_over(w, c) and math.prod(w.shape) == math.prod(c.operand)]
    by_name = [w for w in (written if c.is_named else left) if _is_over(w, c) and w.primitive == c.operation]
    alike = by_array or (by_name if c.yours else [])
    if not alike:
        return replace(c, yours=False, is_named=True)
    best = min(alike, key=lambda w: (w not in left, *_differences(w, c)))
    is_first = best in left
    if is_first:
        left.remove(best)
    axes = c.axes if {*c.axes} <= best.mesh else best.axes
    same_size = math.prod(best.shape) == math.prod(c.operand)
    return replace(
        c,
        yours=True,
        axes=axes,
        operation=best.primitive,
        place=c.place or _only_place(w for w in written if _is_over(w, c) and w.primitive == best.primitive),
        is_split=not is_first,
        operand=best.shape if same_size else c.operand,
        written="" if best.dtype == c.dtype else best.array,
    )


def _only_place(written: Iterable[WrittenCollective]) -> SourceLine | None:
    """The line of some that are alike; None where they are on several, for a compiler may change their order."""
    line, *others = {w.place for w in written}
    return None if others else line


def _differences(w: WrittenCollective, c: CompiledCollective) -> tuple[bool, ...]:
    """How a collective differs from what was written, the weightiest first."""
    return w.place != c.place, w.dtype != c.dtype, math.prod(w.shape) != math.prod(c.operand)


def _is_over(w: WrittenCollective, c: CompiledCollective) -> bool:
    return w.kind == c.kind and _same_devices(w, c)


def _replacing(c: CompiledCollective, left: list[WrittenCollective]) -> CompiledCollective:
    """A collective of another kind than was written on its line, along the same axes: the compiler's way to do that."""
    if c.yours:
        return c
    for w in left:
        if w.primitive == c.operation and w.kind != c.kind and c.place in (None, w.place) and _same_devices(w, c):
            left.remove(w)
            return replace(c, yours=True, written=w.kind)
    return c


def _same_devices(w: WrittenCollective, c: CompiledCollective) -> bool:
    """Whether both run over the same devices: along the same axes, but for those of one device, of the same mesh."""
    return {*w.axes} >= {*c.axes} if {*c.axes} <= w.mesh else w.group == c.group
