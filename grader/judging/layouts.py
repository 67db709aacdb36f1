"""How a layout differs from the one that is due: which axis of the mesh cuts which dimension."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from grader.arrays.blocks import Blocks
from grader.arrays.notation import parse
from grader.arrays.words import enumeration
from grader.judging.wording import is_or_are


def cut_by(held: Blocks) -> Mapping[str, int | None]:
    """For every axis with several devices the dimension that it cuts; None where it cuts none."""
    numbers = np.arange(len(held.indices)).reshape(tuple(held.mesh.values()))
    first = held.indices[0]
    found = {}
    for k, (axis, size) in enumerate(held.mesh.items()):
        if size > 1:
            next_one = held.indices[int(np.moveaxis(numbers, k, 0)[1].flat[0])]
            found[axis] = next(
                (d for d, pair in enumerate(zip(first, next_one, strict=True)) if pair[0] != pair[1]), None
            )
    return found


def layout_evidence(found: Blocks, due: Blocks) -> str:
    """Which axes cut another dimension than they should; that they only do it in another order, where it is that."""
    if found.indices == due.indices:  # it is something else, such as the memory that it is in
        return ""
    if not _is_cut_by_axes(found):  # but by those of another mesh, say
        return _parts(found, due)
    if words := list(_otherwise(cut_by(found), cut_by(due))):
        return f"{'; '.join(words)}. Where in your program is that said?"
    cut = [dimension for dimension in cut_by(due).values() if dimension is not None]
    if len({*cut}) < len(cut):
        return "The same axes cut the same dimensions, but in another order, so that devices hold one another's blocks."
    return "The same axes cut the same dimensions, but devices hold one another's blocks. In which order do they stand?"


def _is_cut_by_axes(held: Blocks) -> bool:
    """Whether along every axis of the mesh the parts differ in just that dimension which it cuts, and all of them."""
    numbers, cut = np.arange(len(held.indices)).reshape(tuple(held.mesh.values())), cut_by(held)
    for k, axis in enumerate(held.mesh):
        for line in np.moveaxis(numbers, k, -1).reshape(-1, held.mesh[axis]).tolist():
            several = [len({str(held.indices[device][d]) for device in line}) for d in range(len(held.indices[0]))]
            if several != [len(line) if d == cut.get(axis) else 1 for d in range(len(several))]:
                return False
    return True


def _parts(found: Blocks, due: Blocks) -> str:
    """Into how many parts dimensions are cut, where that is not what is due; else that devices hold one another's."""
    have, want = ([len({*map(str, each)}) for each in zip(*held.indices, strict=True)] for held in (found, due))
    words = [
        f"dimension {d} is in {n} part{'s' * (n > 1)}, and should be in {m}"
        for d, (n, m) in enumerate(zip(have, want, strict=True))
        if n != m
    ]
    if words:
        return f"No axes of the mesh cut it so: {'; '.join(words)}. On which mesh is it?"
    return "Its parts are on other devices than is due. In which order do the devices stand?"


def _otherwise(found: Mapping[str, int | None], due: Mapping[str, int | None]) -> Iterator[str]:
    for axis in (axis for axis in due if found[axis] != due[axis]):
        yield f"`{axis}` cuts {_dimension(found[axis])}, and should cut {_dimension(due[axis])}"


def _dimension(number: int | None) -> str:
    return "nothing" if number is None else f"dimension {number}"


def notation_in_words(text: str) -> str:
    """What is said of an array in the lessons' notation, as C[I_X, K], letter by letter; "" for other words."""
    try:
        named = parse(text)
    except ValueError:
        return ""
    over = (" and ".join(map(str.upper, axes)) for axes in named.axes)
    cut = [f"{dim} is {f'cut over {axes}' if axes else 'whole'}" for dim, axes in zip(named.dims, over, strict=True)]
    return f"As you wrote it, {', and '.join(cut)}."


def spec_in_words(spec: Sequence[Any]) -> str:
    """What a spec says of an array, entry by entry: who wrote it may hold that against what is asked."""
    cut = [
        f"dimension {k} is cut over {' and '.join(entry) if isinstance(entry, (list, tuple)) else entry}"
        for k, entry in enumerate(spec)
        if entry
    ]
    return (
        f"As you wrote it, {', '.join(cut)}, and nothing else is cut: devices along another axis, if any, hold copies."
        if cut
        else "As you wrote it, nothing is cut: every device holds a copy of the whole."
    )


def dimension_by_dimension(spec: Sequence[Any], due: Sequence[Any]) -> str:
    """Which dimensions a wrong spec cuts as it should, and which it should leave whole; by what they should be cut is
    not said, and nothing where none is right."""
    pairs = [(_axes(one), _axes(other)) for one, other in zip_longest(spec, due)]
    right = [k for k, (one, other) in enumerate(pairs) if one == other]
    if not right or len(right) == len(pairs):
        return ""
    told = [f"dimension {k} {_as_it_is(*pair)}" for k, pair in enumerate(pairs)]
    return f"{'; '.join(told)}.".capitalize()


def _axes(entry: Any) -> tuple[Any, ...]:
    return () if entry is None else tuple(entry) if isinstance(entry, (list, tuple)) else (entry,)


def _as_it_is(found: tuple[Any, ...], due: tuple[Any, ...]) -> str:
    if found == due:
        return "is right"
    return "is not" if due else "should not be cut"


def type_by_parts(text: str, due: str) -> str:
    """Which parts of an array's type, as JAX writes it, are right, and which are not; "" of other words."""
    one, other = _parts_of_type(text), _parts_of_type(due)
    if not one or not other or one.keys() != other.keys():
        return ""
    right, wrong = ([part for part in one if (one[part] == other[part]) is well] for well in (True, False))
    if not right or not wrong:
        return ""
    return f"Of this type {_enumerated(right)} right, and {_enumerated(wrong)} wrong."


def _enumerated(parts: Sequence[str]) -> str:
    return f"{enumeration(parts)} {is_or_are(parts)}"


def _parts_of_type(text: str) -> dict[str, Any]:
    """The parts of a type such as float32[16@x,8@y]{V:x}."""
    found = re.fullmatch(r"([a-z]+\d*)\[([^\]]*)\]((?:\{[^}]*\})?)", text.replace(" ", ""))
    if not found:
        return {}
    kind, dimensions, behind = found.groups()
    sizes, axes = zip(*((size, axis) for size, _, axis in (d.partition("@") for d in _split(dimensions))), strict=True)
    return {
        "the kind of number": kind,
        "the lengths": sizes,
        "what stands behind @": axes,
        "what stands behind the brackets": behind,
    }


def _split(dimensions: str) -> list[str]:
    """The dimensions in a type: no comma within round brackets parts two."""
    return re.split(r",(?![^(]*\))", dimensions)
