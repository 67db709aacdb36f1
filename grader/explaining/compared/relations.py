"""How a wrong value relates to the expected one: evidence, for a value that no mistake explains.

A relation carries no numbers of its own case, so that it can be compared with those of other cases: only what is true
in every case that is wrong is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.arrays.described import HELD, is_observed
from grader.arrays.numbers import same_value
from grader.explaining.compared import arrays
from grader.explaining.compared.compared import Compared, plain_array
from grader.explaining.compared.cuts import bounds, part_relations, slice_relations
from grader.explaining.compared.lists import as_often, flattened, list_relations
from grader.explaining.compared.shapes import Shaped, shape_relations
from grader.explaining.compared.single_numbers import is_number, number_relations, sizes_in
from grader.explaining.telling import in_all
from grader.findings.finding import Finding
from grader.findings.quantities import Quantity
from grader.findings.relations import OnlyThere, OtherKeys, WrongGroups
from grader.findings.values import OtherKind, Sort

MOST_PLACES = 4  # of wrong elements, that are told
COMPARABLE = (bool, int, float, list, tuple, np.ndarray)
NUMBERS = "biuf"  # kinds of dtypes
OF_A_MESH = {"axes", "devices", "axis_types"}  # what is observed of a mesh


@dataclass(frozen=True, eq=False)
class _Known:
    """What a function was given, and the numbers of that which may be a factor."""

    given: Mapping[str, Any]
    sizes: Mapping[Quantity, float]


def relations_of(
    found: Any, expected: Any, given: Mapping[str, Any], sizes: Mapping[Quantity, float] | None = None
) -> Iterator[Finding]:
    """How a wrong value relates to the expected one, the most telling first. `sizes` are the numbers that may be a
    factor; by default all that were given."""
    if found is None or same_value(found, expected) or _is_script(expected):  # a script may be right in other words
        return
    known = _Known(given, dict(sizes_in(given)) if sizes is None else sizes)
    yield from sorted(_relations(found, expected, known), key=lambda one: -one.rank)


def _relations(found: Any, expected: Any, known: _Known) -> Iterator[Finding]:
    """Of the value as a whole, then of its elements."""
    yield from _of_whole(found, expected, known)
    both = found, expected
    if all(isinstance(one, Mapping) and not is_observed(one) for one in both):
        missing = [one[key] for one, other in (both, both[::-1]) for key in one if key not in other]
        if all(is_number(value) and value == 0 for value in missing):  # a count of 0 may be left out
            keys = dict.fromkeys((*expected, *found))
            yield from _of_elements([(str(key), found.get(key, 0), expected.get(key, 0)) for key in keys], known)
    elif all(isinstance(one, (list, tuple)) for one in both) and len(found) == len(expected):
        elements = enumerate(zip(*both, strict=True))
        yield from _of_elements([(f"[{k}]", *pair) for k, pair in elements], known)


def _of_whole(found: Any, expected: Any, known: _Known) -> Iterator[Finding]:
    if isinstance(found, np.ndarray) and found.ndim and isinstance(expected, (list, tuple)):
        found = list(found) if any(isinstance(one, np.ndarray) for one in expected) else found.tolist()
    both = found, expected
    if all(map(is_observed, both)):
        yield from _of_array_on_devices(found[HELD], expected[HELD], known)
    elif all(map(is_number, both)):
        yield from number_relations(float(found), float(expected), known.sizes)
    elif isinstance(expected, np.ndarray) and (array := _as_array(found)) is not None:
        if isinstance(found, np.ndarray) or not same_value(array, expected):
            yield from _of_array(array, expected, known)
        else:
            yield OtherKind("array", sort_of(found))
    elif all(isinstance(one, (list, tuple)) for one in both):
        yield from list_relations(list(found), list(expected))
    elif all(isinstance(one, Mapping) and not is_observed(one) for one in both):
        yield from _of_keys(found, expected)
        yield from slice_relations(found, expected)
    elif (sort := sort_of(expected)) is not None and sort != sort_of(found):
        yield OtherKind(sort, sort_of(found))


def sort_of(value: Any) -> Sort | None:
    """Of what kind a value is; None if it is of no kind that an answer may have."""
    if is_number(value):
        return "number"
    if isinstance(value, Mapping) and (is_observed(value) or value.keys() == OF_A_MESH):
        return "array on devices" if is_observed(value) else "mesh"
    sorts: dict[type | tuple[type, ...], Sort] = {bool: "truth value", str: "text", (list, tuple): "list"}
    sorts |= {Mapping: "dict", np.ndarray: "array", type(None): "None"}
    return next((sort for types, sort in sorts.items() if isinstance(value, types)), None)


def _of_keys(found: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Finding]:
    there = [key for key in expected if key in found]
    if len(found) != len(expected) and all(same_value(found[key], expected[key]) for key in there):
        yield from [OtherKeys("missing")] if len(there) == len(found) else []
        yield from [OtherKeys("extra")] if len(there) == len(expected) else []


def _of_array(found: np.ndarray, expected: np.ndarray, known: _Known) -> Iterator[Finding]:
    given = {name: value for name, value in known.given.items() if isinstance(value, np.ndarray)}
    yield from arrays.relations(plain_array(found, expected, known.sizes))
    if found.ndim == expected.ndim == 1:
        yield from list_relations(found.tolist(), expected.tolist())
    if found.shape != expected.shape:
        if as_often(flattened(found), flattened(expected)) and not same_value(flattened(found), flattened(expected)):
            yield WrongGroups("values")
        shapes = {name: value.shape for name, value in given.items()}
        yield from shape_relations(Shaped(found.shape, expected.shape, known.sizes, shapes))


def _as_array(value: Any) -> np.ndarray | None:
    """An array of numbers that may be compared; None if it is none."""
    if not isinstance(value, COMPARABLE):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in NUMBERS else None


def _of_array_on_devices(found: Mapping[str, Any], expected: Mapping[str, Any], known: _Known) -> Iterator[Finding]:
    """How an array on the expected devices relates to the expected one: by its parts, else by their values."""
    one, other = ([part for parts in held.values() for part in parts] for held in (found, expected))
    if list(found) != list(expected):
        return
    parts = [[bounds(part) for part in side] for side in (one, other)]
    if one == other:
        blocks, wanted = ([b for each in held.values() for b in each.values()] for held in (found, expected))
        seen = Compared(blocks, wanted, places=one, numbers=known.sizes)
        yield from arrays.relations(seen)
        return
    in_process = "num_processes" in known.given  # each sees nothing but its own devices
    shapes = [tuple(max(stop for _, stop in each) for each in zip(*side, strict=True)) for side in parts]
    if shapes[0] == shapes[1] or in_process:
        yield from part_relations(*parts, in_process=in_process)
    else:
        yield from shape_relations(Shaped(shapes[0], shapes[1], known.sizes))


def _of_elements(elements: Sequence[tuple[str, Any, Any]], known: _Known) -> Iterator[Finding]:
    """Which elements are wrong, and what is true of all of those, or of all that is wrong inside them."""
    wrong = [(name, found, expected) for name, found, expected in elements if not same_value(found, expected)]
    parts = [pair for _, found, expected in wrong for pair in _parts(found, expected)]
    common = [(one, False) for one in _in_all([(found, expected) for _, found, expected in wrong], known)]
    if len(parts) != len(wrong) or any(part[0] is not one[1] for part, one in zip(parts, wrong, strict=True)):
        common += [(one, True) for one in _in_all(parts, known)]
    if len(wrong) < len(elements) and len(wrong) <= MOST_PLACES:
        places = tuple(name for name, _, _ in wrong)
        yield from (OnlyThere(places, each, inside) for each, inside in common)
        yield OnlyThere(places)
    yield from (OnlyThere((), each, inside) for each, inside in common)


def _in_all(pairs: Sequence[tuple[Any, Any]], known: _Known) -> list[Finding]:
    return in_all([list(_of_whole(found, expected, known)) for found, expected in pairs])


def _parts(found: Any, expected: Any) -> Iterator[tuple[Any, Any]]:
    """What differs in two values, down to where they have another form."""
    both = found, expected
    if all(isinstance(one, Mapping) and not is_observed(one) for one in both) and found.keys() == expected.keys():
        pairs = [(found[key], expected[key]) for key in expected]
    elif all(isinstance(one, (list, tuple)) for one in both) and len(found) == len(expected):
        pairs = list(zip(*both, strict=True))
    else:
        yield both
        return
    for pair in pairs:
        if not same_value(*pair):
            yield from _parts(*pair)


def _is_script(value: Any) -> bool:
    """Whether it is text in lines, of which one has several words."""
    listed = isinstance(value, (list, tuple)) and bool(value)
    return listed and all(isinstance(one, str) for one in value) and any(" " in one for one in value)
