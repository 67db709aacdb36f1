"""What a wrong array of numbers, or of truth values, has to do with the one that is due."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.arrays.described import is_observed
from grader.arrays.numbers import close_entries, same_value
from grader.arrays.words import numbered
from grader.judging.lists import from_where_on, of_two_lists
from grader.judging.proportions import beside_what_was_given, by_rows, made_of_what_was_given
from grader.judging.shapes import Shaped, shape_relations
from grader.judging.single_numbers import LARGEST_TIMES, is_number, of_two_numbers
from grader.judging.wording import before_little, is_or_are, lower_first, most_telling

TOLD_APART = 4  # entries that are told apart by their places
ENOUGH_IN_ORDER = 3  # different numbers: fewer stand in another order by chance
MOST_BLOCKS = 64  # of an array, that a smaller one is held against
SAME_TIMES = 1e-3  # how near to a whole number of times a difference has to be
OF_EVERY_NUMBER = "The same is so of every number in it:"
SOME_ENTRIES = "Some entries are right, others are not."
STILL_ON_DEVICES = (
    "It is still an array on devices. What is due is in one place, such as NumPy's array on the host. What brings it "
    "there?"
)
COMPARABLE = (int, float, list, tuple, np.ndarray)
NUMBERS = "biuf"  # kinds of dtypes


@dataclass(frozen=True, eq=False)
class WasGiven:
    """What a function was given, and the numbers among that of which one may be a factor."""

    given: Mapping[str, Any]
    sizes: Mapping[str, float]


def of_array(found: Any, due: np.ndarray, known: WasGiven) -> Iterator[str]:
    """Sentences on what was found where an array is due."""
    is_array = isinstance(found, np.ndarray)
    if is_observed(found):
        yield STILL_ON_DEVICES
        return
    as_array = _as_array(found) if isinstance(found, COMPARABLE) else None
    if as_array is None:
        yield from () if is_array else ("An array of numbers is due.",)
    elif not is_array and same_value(as_array, due):
        yield f"The numbers are right, but an array is due, and this is {_kind(found)}."
    elif due.dtype.kind in NUMBERS:
        yield from _of_arrays(as_array, due, known)


def _as_array(value: Any) -> np.ndarray | None:
    """An array of numbers that may be compared; None where it is none."""
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    return array if array.dtype.kind in NUMBERS else None


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else "a tuple" if isinstance(value, tuple) else "a number"


def _of_arrays(found: np.ndarray, due: np.ndarray, known: WasGiven) -> Iterator[str]:
    if found.shape != due.shape:
        if found.shape == due.T.shape and same_value(found, due.T):
            yield "It is the transpose of what is due."
        if found.size == due.size and same_value(found.ravel(), due.ravel()):
            yield "The numbers are right, and in order, but the shape is another."
        if found.size == due.size and same_value(np.sort(found, axis=None), np.sort(due, axis=None)):
            yield "The numbers are those that are due, but the shape is another."
        if found.ndim == due.ndim == 1:
            yield from of_two_lists(found.tolist(), due.tolist())
        if found.size and _is_part(found, due):
            yield "It is a part of what is due, and no more. Where is the rest?"
        counts = {words: int(n) for words, n in known.sizes.items() if n.is_integer()}
        shapes = {name: a.shape for name, a in known.given.items() if isinstance(a, np.ndarray)}
        yield from shape_relations(Shaped(found.shape, due.shape, counts, shapes))
        if found.ndim != due.ndim:
            yield f"It has {'more' if found.ndim > due.ndim else 'fewer'} dimensions than are due."
        yield "The shape is another than is due."
        return
    if found.ndim > 1 and same_value(found, due.T):
        yield "It is the transpose of what is due."
    for axis in range(due.ndim):
        if same_value(found, np.flip(due, axis)):
            yield f"It is what is due, turned round along dimension {axis}."
        for k in range(1, min(due.shape[axis], TOLD_APART + 1)):
            if same_value(found, np.roll(due, k, axis)):
                yield f"It is what is due, moved on by {k} along dimension {axis}."
            if same_value(found, np.roll(due, -k, axis)):
                yield f"It is what is due, moved back by {k} along dimension {axis}."
    if found.dtype.kind == due.dtype.kind == "f":
        alike = {
            name: [a]
            for name, a in known.given.items()
            if isinstance(a, np.ndarray) and a.shape == due.shape and a.dtype.kind == "f"
        }
        besides = beside_what_was_given([found], [due], alike) or made_of_what_was_given([found], [due], alike)
        yield from filter(None, [besides, by_rows([found], [due], "a row")])
        yield from _of_ones(found, due)
    yield from _of_bounded(found, due, known)
    # A vector need not be in any order: one right number at its beginning may be chance.
    order = from_where_on(close_entries(found, due).tolist(), least=2) if due.ndim == 1 else ()
    yield from before_little(number_by_number(found, due, known), order)


def _of_ones(found: np.ndarray, due: np.ndarray) -> Iterator[str]:
    """That rows should add up to 1, and do not."""
    if due.ndim < 2 or due.shape[-1] < 2:
        return
    ones = np.ones(due.shape[:-1], np.float32)
    if same_value(due.sum(-1), ones) and not close_entries(found.sum(-1), ones).any():
        yield "Its rows should add up to 1, and none of them does."


def _of_bounded(found: np.ndarray, due: np.ndarray, known: WasGiven) -> Iterator[str]:
    """Where no number goes beyond one that was given, and else it is what is due."""
    numbers = {name: n for name, n in known.sizes.items() if due.dtype.kind == "f" or n.is_integer()}
    for name, n in numbers.items() if due.dtype.kind != "b" else ():
        for bound, words in ((np.minimum, "larger"), (np.maximum, "smaller")):
            if same_value(found, bound(due, np.asarray(n, due.dtype))):
                yield f"It is what is due, but never {words} than {name}."


def _is_part(found: np.ndarray, due: np.ndarray) -> bool:
    """Whether it is one of the equal blocks into which the array that is due may be cut."""
    if found.ndim != due.ndim or len(np.unique(found)) < 2:
        return False
    if any(n % k for n, k in zip(due.shape, found.shape, strict=True)):
        return False
    starts = itertools.product(*(range(0, n, k) for n, k in zip(due.shape, found.shape, strict=True)))
    return any(
        same_value(found, due[tuple(slice(s, s + k) for s, k in zip(start, found.shape, strict=True))])
        for start in itertools.islice(starts, MOST_BLOCKS)
    )


def number_by_number(found: np.ndarray, due: np.ndarray, known: WasGiven) -> Iterator[str]:
    """Sentences on arrays of one shape, whatever it is."""
    right = close_entries(found, due)
    if due.dtype.kind == "b":
        yield from _of_truths(found, due, right)
        return
    if len(np.unique(due)) >= ENOUGH_IN_ORDER and same_value(np.sort(found, axis=None), np.sort(due, axis=None)):
        yield "The numbers are right, but they stand in other places."
    if not found.any():
        yield "It is all zeros."
    if (due >= 0).all() and (found < 0).any() and same_value(np.maximum(found, 0), due):
        yield "It would be right with 0 in the place of its negative numbers. Is a relu missing, at the end?"
    told = ~(right & close_entries(np.zeros_like(due), due))
    if common := _of_all_numbers(found[told], due[told], known):
        if told.all():
            yield f"{OF_EVERY_NUMBER} {lower_first(common)}"
        yield f"But for zeros that are right, the same is so of every number in it: {lower_first(common)}"
    if right.any():
        if np.count_nonzero(~right) > 1 and (common := _of_all_numbers(found[~right], due[~right], known)):
            yield f"Some numbers are right, and of all others the same is so: {lower_first(common)}"
        yield from _where_wrong(found, due, right, known)
        yield from _of_rows(right)
        yield "Some numbers are right, others are not."


def _where_wrong(found: np.ndarray, due: np.ndarray, right: np.ndarray, known: WasGiven) -> Iterator[str]:
    """What stands in the places of the numbers that are wrong, or which numbers these are, by an argument."""
    wrong, wanted = found[~right], due[~right]
    for name, given in known.given.items():
        if isinstance(given, np.ndarray) and given.shape == due.shape and same_value(wrong, given[~right]):
            yield f"Wherever a number in it is wrong, it is what `{name}` has there."
        if not is_number(given) or len(wrong) < 2:
            continue
        if (wrong == given).all():
            yield f"Wherever a number in it is wrong, it is `{name}`."
        if (wanted >= given).all() and (due[right] < given).all():
            yield f"The numbers below `{name}` are right, and no others are."
        if not float(given).is_integer() and given and _are_few_times((wrong - wanted) / given):
            yield f"Wherever a number in it is wrong, it is off by `{name}`, once or several times."
    places = np.flatnonzero(~right).tolist()
    if due.ndim == 1 and 0 < len(places) <= TOLD_APART and right.sum() >= len(places):
        which = f"{numbered('number', places)} (counted from 0) {is_or_are(places)}"
        yield f"Of its {due.size} numbers only {which} not right."
    if len(wrong) > 1 and len(np.unique(wrong)) == 1 and len(np.unique(wanted)) > 1:
        yield "Wherever a number in it is wrong, it is one and the same, and others are due."


def _are_few_times(times: np.ndarray) -> bool:
    """Whether these are small whole numbers, and not 0: any number is so many times a small one."""
    whole = np.abs(np.round(times))
    return bool(((whole > 0) & (whole <= LARGEST_TIMES) & (np.abs(np.abs(times) - whole) < SAME_TIMES)).all())


def _of_all_numbers(found: np.ndarray, due: np.ndarray, known: WasGiven) -> str:
    pairs = zip(found.tolist(), due.tolist(), strict=True)
    return most_telling([list(of_two_numbers(float(f), float(d), known.sizes)) for f, d in pairs])


def _of_truths(found: np.ndarray, due: np.ndarray, right: np.ndarray) -> Iterator[str]:
    """Sentences on an array of truth values."""
    if found.dtype.kind == "b":
        if not right.any() and len(np.unique(due)) > 1:
            yield "It is True wherever False is due, and False wherever True is."
        for value in (True, False):
            if (found[~right] == value).all():
                yield f"Wherever an entry of it is wrong, that is {value}, and {not value} is due."
    if right.any():
        yield from _of_rows(right)
        yield SOME_ENTRIES


def _of_rows(right: np.ndarray) -> Iterator[str]:
    """Which rows are right, where some are wholly so; of each number whether it is."""
    rows = [bool(row.all()) for row in right] if right.ndim > 1 else []
    few, whole = [k for k, well in enumerate(rows) if well], len(rows)
    if 0 < len(few) < whole and min(len(few), whole - len(few)) <= TOLD_APART:
        is_right = len(few) <= whole - len(few)
        named = few if is_right else [k for k in range(whole) if k not in few]
        which = f"{numbered('number', named)} (counted from 0) {is_or_are(named)} {'right' if is_right else 'wrong'}"
        yield f"Of the {whole} rows only {which}."
