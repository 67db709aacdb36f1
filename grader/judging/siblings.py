"""What a wrong entry of a value has to do with the right ones beside it, and where in it something is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grader.arrays.numbers import same_numbers, same_value

MOST_PLACES = 4  # that are named
FEWEST_NUMBERS = 3  # different numbers: fewer are the same by chance
MOST_MOVED = 4  # places by which a list is tried against another


def of_right_ones(found: Any, due: Any, right: Sequence[tuple[str, Any]]) -> Iterator[str]:
    """Sentences on a wrong entry by the right entries beside it, which are named."""
    one, whole = (np.asarray(value) if _is_numbers(value) else None for value in (found, due))
    if (
        one is None
        or whole is None
        or one.shape != whole.shape
        or not one.size
        or len(np.unique(whole)) < FEWEST_NUMBERS
    ):
        return
    for name, value in right:
        other = np.asarray(value) if _is_numbers(value) else None
        if other is None or len(np.unique(other)) < FEWEST_NUMBERS:
            continue
        if other.shape == one.shape:
            yield from _of_the_same(one, other, name)
        if one.dtype.kind == other.dtype.kind == "f" and other.ndim == one.ndim:
            yield from _of_a_factor(one, whole, other, name)


def _of_the_same(found: np.ndarray, other: np.ndarray, name: str) -> Iterator[str]:
    """Where it is a right entry once more, or that moved on."""
    if same_numbers(found, other):
        yield f"It is the same as {name}, which is right."
    for k in range(1, min(MOST_MOVED, len(found) - 1) + 1) if found.ndim == 1 else ():
        which = f"{k} stand" if k > 1 else "one stands"
        if same_numbers(found, np.roll(other, k)):
            yield f"It is {name}, moved on by {k}: the last {which} at its beginning."
        if same_numbers(found, np.roll(other, -k)):
            yield f"It is {name}, moved back by {k}: the first {which} at its end."


def _of_a_factor(found: np.ndarray, due: np.ndarray, other: np.ndarray, name: str) -> Iterator[str]:
    """Where it is what is due, multiplied by a right entry or divided by it."""
    if any(n not in (1, m) for n, m in zip(other.shape, found.shape, strict=True)):
        return
    with np.errstate(all="ignore"):
        divided, multiplied = same_numbers(found * other, due), same_numbers(found, due * other)
    if divided:
        yield f"It is what is due, divided by {name}."
    if multiplied:
        yield f"It is what is due, multiplied by {name}."


def _is_numbers(value: Any) -> bool:
    """Whether it is an array of numbers, or a list of some."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iuf"
    return isinstance(value, (list, tuple)) and all(isinstance(v, (int, float)) for v in value)


def wrong_places(found: Any, due: Any) -> str:
    """The places inside of nested dicts and lists at which these two differ, where they are few; "" where there is but
    one, or nothing is nested."""
    if not isinstance(found, Mapping) or not isinstance(due, Mapping):
        return ""
    places = [*_places(found, due)]
    if not 1 < len(places) <= MOST_PLACES:
        return ""
    return f"In it are wrong, or missing, or too much: {', '.join(f'`{place}`' for place in places)}."


def _places(found: Any, due: Any, way: str = "") -> Iterator[str]:
    if same_value(found, due):
        return
    if isinstance(found, Mapping) and isinstance(due, Mapping):
        for key in dict.fromkeys((*due, *found)):
            inside = f"{way}.{key}" if way else str(key)
            if key in found and key in due:
                yield from _places(found[key], due[key], inside)
            else:
                yield inside
    elif isinstance(found, (list, tuple)) and isinstance(due, (list, tuple)) and len(found) == len(due):
        for k, pair in enumerate(zip(found, due, strict=True)):
            yield from _places(*pair, f"{way}[{k}]")
    else:
        yield way
