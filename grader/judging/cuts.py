"""How an array is cut over devices, against how it should be: of which parts each device holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ONE_ANOTHERS = (
    "It is cut into the parts that are due, but devices hold one another's. Which axis is to cut what, and in which "
    "order?"
)
IN_ANOTHER_MEMORY = "Each device holds the part that is due, but in another memory. Which kind is asked for?"

_Bounds = list[tuple[int, int]]


def bounds(part: str) -> _Bounds:
    """Where a part of an array starts and stops in each dimension."""
    return [(int(start), int(stop)) for start, stop in re.findall(r"(\d+):(\d+)", part)]


def of_cuts(found: Sequence[_Bounds], due: Sequence[_Bounds], of_which: str) -> Iterator[str]:
    """Sentences on the parts that devices hold, where these are not the ones that they should; `of_which` says of
    which devices, if it is not all that hold the array."""
    if len({len(part) for part in (*found, *due)}) > 1:
        yield "It has another number of dimensions than is due."
        return
    if found == due:
        yield IN_ANOTHER_MEMORY
        return
    whole, wanted = ([max(stop for _, stop in each) for each in zip(*parts, strict=True)] for parts in (found, due))
    if whole != wanted and not of_which:
        if len(wanted) > 1 and whole == wanted[::-1]:
            yield "As a whole it has the shape of the transpose."
        for k in (k for k in range(len(whole)) if whole[k] != wanted[k]):
            much = "times as long as is due: does each device have a part of that, or the whole?"
            several = wanted[k] > 0 and whole[k] > 0 and whole[k] % wanted[k] == 0
            length = "several " + much if several else f"{'longer' if whole[k] > wanted[k] else 'shorter'} than is due."
            yield f"As a whole it is, along dimension {k}, {length}"
        return
    if words := _into_how_many(found, due, of_which):
        yield words
    elif sorted(found) == sorted(due):
        yield ONE_ANOTHERS


def _into_how_many(found: Sequence[Sequence[Any]], due: Sequence[Sequence[Any]], of_which: str = "") -> str:
    """Which dimensions are on the devices in more parts than they should be, or fewer; given what each device has."""
    each = enumerate(zip(zip(*found, strict=True), zip(*due, strict=True), strict=True))
    words = [
        f"dimension {k} {how}" for k, (one, other) in each if (how := _how_cut(len({*one}), len({*other}), of_which))
    ]
    said = "; ".join(words)
    return f"{said[:1].upper()}{said[1:]}. Which axis of the mesh is to cut which dimension?" if said else ""


def of_slices(found: Mapping[str, Any], due: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on the slices that devices hold, written as `0:4`; `:` is a whole dimension."""
    parts = [list(side.values()) for side in (found, due)]
    if found.keys() != due.keys() or not all(_is_sliced(part) for side in parts for part in side):
        return
    if len({len(part) for side in parts for part in side}) > 1:
        yield "Devices should have one slice for each dimension."
    elif words := _into_how_many(parts[0], parts[1]):
        yield words
    elif sorted(map(list, parts[0])) == sorted(map(list, parts[1])):
        yield ONE_ANOTHERS
    else:
        yield from _of_bounds(*([", ".join(part) for part in side] for side in parts))


def _of_bounds(found: Sequence[str], due: Sequence[str]) -> Iterator[str]:
    """Sentences on slices that begin or end elsewhere than they should, where every dimension has two bounds."""
    sides = [[bounds(part) for part in side] for side in (found, due)]
    if len({len(part) for side in sides for part in side}) > 1:
        return
    by_dimension = list(zip(*(zip(*side, strict=True) for side in sides), strict=True))
    for slices, wanted in by_dimension:
        if max(stop for _, stop in slices) > max(stop for _, stop in wanted):
            yield "Slices go beyond the end of their dimension."
    for slices, wanted in by_dimension:
        lengths, equal = ({stop - start for start, stop in side} for side in (slices, wanted))
        if len(equal) == 1 < len(lengths):
            yield "The slices of one dimension are not of one length, and should be."


def _is_sliced(part: Any) -> bool:
    """Whether these are slices."""
    return (
        isinstance(part, (list, tuple))
        and len(part) > 0
        and all(isinstance(one, str) and re.fullmatch(r"\d*:\d*", one) for one in part)
    )


def _how_cut(parts: int, due: int, of_which: str) -> str:
    """How a dimension is on the devices, where it is in another number of parts than is due."""
    if parts == due:
        return ""
    if parts == 1:
        return f"is the same on every device{of_which}, and should be cut"
    if due == 1:
        return f"is cut, and should be the same on every device{of_which}"
    how_many = "more" if parts > due else "fewer"  # two devices may hold the same part where they should not
    return f"is on the devices{of_which} in {how_many} different parts than it should be"
