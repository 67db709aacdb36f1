"""How a wrong list relates to the expected one: order, groups, length."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from grader.arrays.numbers import same_value
from grader.explaining.compared.single_numbers import is_number
from grader.findings.finding import Finding
from grader.findings.relations import OtherElements, OtherLength, Reordered, SameProduct, WrongGroups

ENOUGH, SWAPPED = 3, 2  # elements, of which another order is no chance; those that are in each other's place


def list_relations(found: list[Any], expected: list[Any]) -> Iterator[Finding]:
    """How a wrong list relates to the expected one."""
    one, other = flattened(found), flattened(expected)
    if found and same_value(one, other) and _form(found) != _form(expected):
        yield WrongGroups("order")
    if len(found) == len(expected) > 1:
        yield from _in_another_order(found, expected)
        if all(map(is_number, (*found, *expected))) and math.prod(found) == math.prod(expected) != 0:
            yield SameProduct()
    elif len(found) != len(expected):
        yield from _of_another_length(found, expected)
    if _is_nested(expected) and as_often(one, other) and not _are_same_groups(found, expected):
        yield WrongGroups("values")
    if len(found) != len(expected) and len(one) == len(other):
        yield WrongGroups("count")


def _are_same_groups(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether these are the same groups, in whatever order: of them, and in each of them."""
    left = list(map(flattened, expected))
    for group in map(flattened, found):
        alike = next((k for k, other in enumerate(left) if as_often(group, other)), None)
        if alike is None:
            return False
        left.pop(alike)
    return not left


def _of_another_length(found: list[Any], expected: list[Any]) -> Iterator[Finding]:
    missing = len(expected) - len(found)
    if missing > 0 and (len(found) > 1 or len(flattened(found)) >= ENOUGH):  # else it may be either by chance
        is_end, is_beginning = same_value(found, expected[missing:]), same_value(found, expected[:-missing])
        if is_end != is_beginning:
            yield OtherElements("first missing" if is_end else "last missing")
    if found and _is_within(found, expected):
        yield OtherElements("missing")
    if expected and _is_within(expected, found):
        yield OtherElements("extra")
    if (len(found) > len(expected)) is (len(flattened(found)) > len(flattened(expected))):
        yield OtherLength("more" if len(found) > len(expected) else "fewer")


def _in_another_order(found: list[Any], expected: list[Any]) -> Iterator[Finding]:
    """That the expected elements are at other places; truth values are in some order by chance."""
    if any(isinstance(element, bool) for element in expected):
        return
    if same_value(found, expected[::-1]):
        yield Reordered("reversed")
    if as_often(found, expected):
        if len(expected) >= ENOUGH:
            if sum(not same_value(*pair) for pair in zip(found, expected, strict=True)) == SWAPPED:
                yield Reordered("two swapped")
            elif any(same_value(found, expected[k:] + expected[:k]) for k in range(1, len(expected))):
                yield Reordered("rotated")
        yield Reordered("any")


def _is_within(some: list[Any], values: list[Any]) -> bool:
    """Whether these are among the values, in their order."""
    rest = iter(values)
    return all(any(same_value(element, value) for value in rest) for element in some)


def as_often(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists hold the same, in whatever order."""
    if len(one) != len(other):
        return False
    if all(map(is_number, (*one, *other))):
        return same_value(sorted(one), sorted(other))
    return all(sum(same_value(a, b) for a in one) == sum(same_value(a, b) for a in other) for b in other)


def _form(values: Any) -> Any:
    """How lists, and arrays as lists, are put into one another."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    return list(map(_form, values)) if isinstance(values, (list, tuple)) else None


def _is_nested(values: list[Any]) -> bool:
    return any(isinstance(value, (list, tuple)) or np.ndim(value) > 0 for value in values)


def flattened(values: Any) -> list[Any]:
    """The values in a list and in the lists and arrays in it, one after the other."""
    if isinstance(values, (list, tuple)):
        return list(itertools.chain.from_iterable(map(flattened, values)))
    return np.ravel(values).tolist() if isinstance(values, np.ndarray) else [values]
