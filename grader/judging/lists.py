"""What a wrong list has to do with the one that is due: order, groups, length."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grader.arrays.numbers import close, same_value
from grader.judging.single_numbers import is_number, is_ratio

FIRST_IS_WRONG = "Already its first number is wrong. What goes into that one?"
SAME_CURVE = 2e-4  # relative: how near two losses of one curve are
ENOUGH_ENTRIES, EXCHANGED = 3, 2  # of fewer any other order is all of these; entries of which each is the other
NOT_GROUPED = "they are not grouped as they should be."


def of_two_lists(found: list[Any], due: list[Any]) -> Iterator[str]:
    """Sentences on a list where another is due."""
    one, other = _flat(found), _flat(due)
    alike = len(found) > 0 and same_value(one, other)
    if alike and _form(found) == _form(due):
        yield "The numbers are right, but arrays are due where it has lists."
        return
    rows = len(due) > 0 and all(isinstance(row, (list, tuple)) for row in (*found, *due))
    if rows and len({*map(len, found)}) == 1 and same_value(_turned(found), due):
        yield "It is the transpose of what is due: rows stand for columns."
    if alike:
        yield f"The entries are right, but {NOT_GROUPED}"
    if len(found) != len(due):
        yield from _of_fewer_or_more(found, due)
    elif len(due) > 1:
        yield from _of_another_order(found, due)
        if all(map(is_number, (*found, *due))) and math.prod(found) == math.prod(due) != 0:
            yield "The product of these numbers is right, and not each of them for itself."
    if _nested(due) and as_often(one, other) and not _are_same_groups(found, due):
        yield "All that is due is there, as often as it is due, but not in the groups in which it should be."


def _are_same_groups(found: Sequence[Any], due: Sequence[Any]) -> bool:
    """Whether these are the same groups, in whatever order: of them, and in each of them."""
    left = list(map(_flat, due))
    for group in map(_flat, found):
        alike = next((k for k, other in enumerate(left) if as_often(group, other)), None)
        if alike is None:
            return False
        left.pop(alike)
    return not left


def _of_fewer_or_more(found: list[Any], due: list[Any]) -> Iterator[str]:
    """Sentences on a list that has another length than is due."""
    yield from of_one_entry(found, due)
    yield from of_one_cut_short(found, due)
    if found and _within(found, due):
        yield "What is there is right, but entries are missing."
    if due and _within(due, found):
        yield "All that is due is there, and more besides."
    yield from _of_groups(found, due)
    more, values = len(found) > len(due), len(_flat(found)) - len(_flat(due))
    how = "more" if values > 0 else "fewer"
    if not values:
        yield f"There are as many values as are due, but {NOT_GROUPED}"
    elif more == (values > 0):
        yield f"There are {how} entries than are due."
    else:
        yield f"There are {how} values than are due, and {NOT_GROUPED}"


def _of_another_order(found: list[Any], due: list[Any]) -> Iterator[str]:
    """Sentences on a list that has what is due at other places; truth values are in some order by chance."""
    if any(isinstance(entry, bool) for entry in due):
        return
    if same_value(found, due[::-1]):
        yield "The entries are right, but the last stands first."
    for k in (k for k in range(1, len(due)) if same_value(found, due[-k:] + due[:-k])):
        yield f"The entries are right, but stand {k} to the right of where they belong."
        yield f"The entries are right, but stand {len(due) - k} to the left of where they belong."
    if as_often(found, due):
        yield from _of_moves(found, due)
        yield "The entries are right, but in another order."


def _of_moves(found: list[Any], due: list[Any]) -> Iterator[str]:
    """Sentences on a list with the entries that are due at other places, which do not tell where they belong."""
    if len(due) < ENOUGH_ENTRIES:
        return
    turns = [due[k:] + due[:k] for k in range(1, len(due))]
    if sum(not same_value(*pair) for pair in zip(found, due, strict=True)) == EXCHANGED:
        yield "The entries are right, but two of them stand in each other's place."
    elif any(same_value(found, turn) for turn in turns):
        yield "Counted round, the entries are right and follow one another as they should, but it begins with another."
    own = list(range(len(due)))
    if all(map(is_number, due)) and any(same_value(own, turn) for turn in turns) and not _are_turned(found):
        yield (
            "The entries are right, but held against the numbers of their places each should be moved as far as every "
            "other, counted round, and they are not."
        )


def _are_turned(places: list[Any]) -> bool:
    """Whether all entries are as far from the places of which they are the numbers, counted round."""
    return len({(place - k) % len(places) for k, place in enumerate(places)}) == 1


def of_one_cut_short(found: list[Any], due: list[Any]) -> Iterator[str]:
    """Where a list is the one that is due without its beginning, or without its end, and it shows which."""
    missing = len(due) - len(found)
    if missing <= 0 or (len(found) < 2 and len(_flat(found)) < ENOUGH_ENTRIES):
        return
    is_end, is_beginning = same_value(found, due[missing:]), same_value(found, due[:-missing])
    if is_end and not is_beginning:
        yield f"What is there is right: it is what is due from number {missing} on, counted from 0. What comes before?"
        yield "What is there is right, but the beginning is missing."
    if is_beginning and not is_end:
        last = f"last {missing} are" if missing > 1 else "last one is"
        yield f"What is there is right, but the {last} missing."
        yield "What is there is right, but the end is missing."


def _of_groups(found: list[Any], due: list[Any]) -> Iterator[str]:
    """Where each group is several others, joined."""
    sides = [list(map(_flat, side)) for side in (found, due)]
    if not (_nested(found) and _nested(due) and all(map(is_number, itertools.chain(*sides[0], *sides[1])))):
        return
    made, wanted = ([Counter(group) for group in side] for side in sides)
    if _are_joined(made, wanted):
        yield "Each group of it is made of several that are due. What is to keep those apart?"
    elif _are_joined(wanted, made):
        yield "Each group that is due has come apart into several. What do those have in common?"


def _are_joined(groups: Sequence[Counter[Any]], others: Sequence[Counter[Any]]) -> bool:
    """Whether each of these groups is several of the others, and each of those is in one."""
    inside = [[other for other in others if other <= group] for group in groups]
    return sum(map(len, inside)) == len(others) and all(
        len(some) > 1 and sum(some, Counter()) == group for group, some in zip(groups, inside, strict=True)
    )


def of_where_it_goes_wrong(found: Sequence[Any], due: Sequence[Any]) -> Iterator[str]:
    """From where on a list of numbers is wrong."""
    if all(map(is_number, (*found, *due))):
        yield from from_where_on(list(map(_nearly_same, found, due)))


def _nearly_same(one: Any, other: Any) -> bool:
    """Whether two numbers are the same, of fractions to the digits that another order of sums leaves."""
    whole = all(isinstance(number, int) for number in (one, other))
    return same_value(one, other) if whole else math.isclose(one, other, rel_tol=SAME_CURVE)


def from_where_on(right: Sequence[bool], least: int = 1) -> Iterator[str]:
    """From where on numbers are wrong, of which these are right, and `least` of them before."""
    if least <= (begun := sum(right)) < len(right) - 1 and all(right[:begun]):
        yield (
            f"It is right up to number {begun - 1}, counted from 0, and wrong from there on. What is done between "
            f"number {begun - 1} and number {begun}?"
        )
        yield "It begins right, and from some place on it is wrong to its end."
    if not any(right) and len(right) > 2:
        yield FIRST_IS_WRONG


def of_quotients(found: Sequence[Any], due: Sequence[Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Where found times due, entry by entry, is an argument: how many parts there are in place of how long each is."""
    for name, whole in given.items():
        if isinstance(whole, (list, tuple)) and len(whole) == len(found) == len(due) > 1:
            trios = list(zip(found, due, whole, strict=True))
            if not all(map(is_number, itertools.chain(*trios))):
                continue
            if all(d and is_ratio(f * d, w) for f, d, w in trios):
                yield f"It is `{name}`, each number of it divided by the one that is due."
            if not all(w and d and w % d == 0 for _, d, w in trios):
                continue
            if all(is_ratio(f * d, w * w) for f, d, w in trios):
                yield f"It is `{name}`, each number of it times what it should be divided by."
            if all(is_ratio(f, w - w // d) for f, d, w in trios):
                yield f"It is `{name}`, each number of it less what it should be divided by."
            if all(is_ratio(f, w + w // d) for f, d, w in trios):
                yield f"It is `{name}`, each number of it and what it should be divided by, added."


def of_each_alone(found: Sequence[Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Where each entry is a single number that is made of the entry of an argument in its place, or of all of them."""
    if len(found) < 2 or any(not _holds_numbers(one) or np.size(one) != 1 for one in found):
        return
    single = [float(np.ravel(one)[0]) for one in found]
    for name, entries in given.items():
        if not isinstance(entries, (list, tuple)) or any(
            not _holds_numbers(one) or np.ndim(one) == 0 for one in entries
        ):
            continue
        for words, made in (("sum", np.sum), ("mean", np.mean), ("largest", np.max), ("smallest", np.min)):
            if len(entries) == len(found) and close(single, [float(made(one)) for one in entries]):
                yield f"Each entry is a single number: the {words} of what is in the entry of `{name}` at its place."
            of_all = float(made(np.concatenate([np.ravel(one) for one in entries])))
            if close(single, [of_all] * len(single)):
                yield f"Each entry is a single number: the {words} of all that is in `{name}`."


def _holds_numbers(value: Any) -> bool:
    """Whether these are numbers, and any."""
    array = np.asarray(value) if isinstance(value, (int, float, np.ndarray, np.number)) else np.empty(0)
    return array.dtype.kind in "iuf" and array.size > 0


def of_one_entry(found: Any, due: list[Any]) -> Iterator[str]:
    """A value that is one entry of the list that is due."""
    yield from (
        f"It is entry {k} of what is due (counted from 0), alone."
        for k, entry in enumerate(due)
        if same_value(found, entry)
    )
    if is_number(found) and len(due) > 1 and all(map(is_number, due)):
        for words, made in (("product", math.prod), ("sum", sum), ("largest", max), ("smallest", min)):
            if same_value(found, made(due)):
                yield f"It is the {words} of the numbers that are due as a list or a tuple."
    if not isinstance(found, (list, tuple)):
        yield f"A list or a tuple of {len(due)} is due."


def _within(some: list[Any], values: list[Any]) -> bool:
    """Whether these are among the values, in their order."""
    rest = iter(values)
    return all(any(same_value(entry, value) for value in rest) for entry in some)


def as_often(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists hold the same, in whatever order."""
    if len(one) != len(other):
        return False
    if all(map(is_number, (*one, *other))):
        return same_value(sorted(one), sorted(other))
    return all(sum(same_value(a, b) for a in one) == sum(same_value(a, b) for a in other) for b in other)


def _turned(rows: list[Any]) -> list[Any]:
    return [list(column) for column in zip(*rows, strict=False)]


def _form(values: Any) -> Any:
    """How lists, and arrays as lists, are put into one another."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    return list(map(_form, values)) if isinstance(values, (list, tuple)) else None


def _nested(values: list[Any]) -> bool:
    return any(isinstance(value, (list, tuple)) or np.ndim(value) > 0 for value in values)


def _flat(values: Any) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return [entry for value in values for entry in _flat(value)]
    return np.ravel(values).tolist() if isinstance(values, np.ndarray) else [values]
