"""What a wrong value has to do with the one that is due: evidence, for a value that no mistake explains.

A relation is a sentence without the case's own numbers, so that it can be held against other cases: only what is so in
every case that came out wrong is said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.arrays.described import HELD, is_observed
from grader.arrays.numbers import same_value
from grader.arrays.words import number, numbered
from grader.judging.proportions import beside_what_was_given, by_rows
from grader.judging.shapes import Shaped, shape_relations
from grader.judging.wording import in_all, lower_first, most_telling

SAME_RATIO = 1e-5  # relative: how near a ratio has to be to the one it is taken for
ROUNDED = 5e-3  # relative: how near, where somebody has written three digits
LARGEST_RATIO = 10_000  # that anybody recognizes
TOLD_APART = 4  # entries that are told apart by their places
LAST_COUNT = 4  # up to here a difference is one of counting
UNITS = (100, 1000, 1024, 10**6, 2**20, 10**9, 2**30)  # percent, kilo, kibi, mega, mebi, giga, gibi
TELLS_LITTLE = ("t is too large.", "t is too small.", "others are not.", " is wrong.", " are wrong.")  # ends
OF_EVERY_NUMBER = "The same is so of every number in it:"
OF_EVERY_ENTRY = "The same is so of every wrong entry:"
ASKED_OF_SQUARES = "Is it a factor where it should be a divisor, or the other way round?"
COMPARABLE = (int, float, list, tuple, np.ndarray)


@dataclass(frozen=True, eq=False)
class _Known:
    """What a function was given, and the numbers among that of which one may be a factor."""

    given: Mapping[str, Any]
    sizes: Mapping[str, float]


def relations_of(
    found: Any, due: Any, given: Mapping[str, Any], sizes: Mapping[str, float] | None = None
) -> Iterator[str]:
    """Sentences on a wrong value, the most telling first. `sizes` are the numbers, by what they are called, of which
    one may be a factor; by default all that are among what was given."""
    if found is None or same_value(found, due):  # an exercise may ask for more than equal numbers
        return
    known = _Known(given, dict(sizes_in(given)) if sizes is None else sizes)
    if is_observed(found) and is_observed(due):
        yield from _of_held(found[HELD], due[HELD], known)
        return
    words = list(_of_whole(found, due, known))
    yield from (said for said in words if not said.endswith(TELLS_LITTLE))
    if isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(due) == len(found):
        yield from _of_order(found, due)
    yield from (said for said in words if said.endswith(TELLS_LITTLE))


def _of_whole(found: Any, due: Any, known: _Known) -> Iterator[str]:
    """Sentences on a value as a whole, then on its parts."""
    yield from _of_one(found, due, known)
    if isinstance(due, Mapping) and not is_observed(due):
        yield from _of_keys(found, due)
    if isinstance(found, Mapping) and isinstance(due, Mapping):
        counts = all(map(is_number, (*found.values(), *due.values())))  # what does not occur may be left out
        if counts or found.keys() == due.keys():
            keys = dict.fromkeys((*due, *found))
            yield from _of_entries([(f"`{key}`", found.get(key, 0), due.get(key, 0)) for key in keys], known)
    elif isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(due) == len(found):
        pairs = enumerate(zip(found, due, strict=True))
        yield from _of_entries([(f"number {k}", one, other) for k, (one, other) in pairs], known)
    if _plain_list(found) and _plain_list(due) and not {*found} & {*due}:
        yield "None of the entries is among those that are due."


def _of_held(found: Mapping[str, Any], due: Mapping[str, Any], known: _Known) -> Iterator[str]:
    """Sentences on the numbers of an array that is on devices, where each holds the part that it should."""
    if {device: [*parts] for device, parts in found.items()} == {device: [*parts] for device, parts in due.items()}:
        sides = ([block for parts in held.values() for block in parts.values()] for held in (found, due))
        one, other = (np.concatenate([np.ravel(block) for block in side]) for side in sides)
        if one.shape == other.shape and one.dtype.kind in "biuf":
            yield from _number_by_number(one, other, known)


def _plain_list(value: Any) -> bool:
    """Whether it is a list of several numbers or words."""
    return isinstance(value, (list, tuple)) and len(value) > 1 and all(isinstance(v, (int, float, str)) for v in value)


def _of_one(found: Any, due: Any, known: _Known) -> Iterator[str]:
    """Sentences on a value as a whole."""
    if isinstance(found, np.ndarray) and isinstance(due, (list, tuple)) and due and all(map(is_number, due)):
        due = np.asarray(due)
    for name in (name for name, a in known.given.items() if isinstance(a, COMPARABLE) and same_value(found, a)):
        yield f"It is `{name}`, as it was given."
    if is_number(found) and is_number(due):
        yield from _of_numbers(float(found), float(due), known.sizes)
    elif isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)):
        yield from _of_sequences(list(found), list(due))
        yield from _of_quotients(found, due, known.given)
    elif isinstance(due, (list, tuple)) and not isinstance(found, np.ndarray):
        yield from _alone(found, list(due))
    elif isinstance(due, np.ndarray) and isinstance(found, COMPARABLE):
        yield from _of_arrays(np.asarray(found), due, known)
    elif isinstance(found, (list, tuple)):
        yield from (f"What is due is entry {k} of it, alone." for k, one in enumerate(found) if same_value(one, due))


def _of_keys(found: Any, due: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on the keys of a dict that is due."""
    if not isinstance(found, Mapping):
        if isinstance(found, (list, tuple)) and sorted(map(str, found)) == sorted(due):
            yield "These are the keys alone: a dict is due, with what belongs to each of them."
        yield from (
            f"It is what is due under `{key}`, alone: a dict is due." for key in due if same_value(found, due[key])
        )
        yield "A dict is due."
        return
    there = [key for key in due if key in found]
    if found and due and not there:
        yield "None of its keys is among those that are due."
    if there and all(same_value(found[key], due[key]) for key in there):
        missing, extra = ([one[key] for key in one if key not in other] for one, other in ((due, found), (found, due)))
        if missing and len(missing) == len(extra) and _as_often(extra, missing):
            yield "It is right but for its keys: what is due is there under another name."
        if len(there) == len(found):
            yield from (["Missing are only keys for which 0 is due; the rest is right."] if _all_zero(missing) else [])
            yield "What is there is right, but keys are missing."
        elif len(there) == len(due):
            yield from (
                ["All that is due is there, and besides keys with 0, which are not."] if _all_zero(extra) else []
            )
            yield "All that is due is there, and keys besides that are not due."


def _all_zero(values: Sequence[Any]) -> bool:
    return all(is_number(value) and value == 0 for value in values)


def is_number(value: Any) -> bool:
    """Whether it is one, and no truth value."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _of_numbers(found: float, due: float, sizes: Mapping[str, float]) -> Iterator[str]:
    if not (math.isfinite(found) and math.isfinite(due)):
        return
    if due and found:
        if _is(found, -due):
            yield "It has the wrong sign."
        for words, n in sizes.items():
            yield from _by_factor(found, due, words, n)
        for words, n in sizes.items():
            yield from (f"{said} {ASKED_OF_SQUARES}" for said in _by_factor(found, due, f"the square of {words}", n**2))
        yield from (
            f"It is {words}, divided by what is due." for words, n in sizes.items() if n > 1 and _is(found * due, n)
        )
        if _is(found * due, 1):
            yield "It is 1 divided by what is due."
        ratio = found / due
        if any(math.isclose(ratio * times, 1, rel_tol=ROUNDED) for unit in UNITS for times in (unit, 1 / unit)):
            yield "It is off by the factor between two units. Which one is asked for?"
        if abs(ratio) < LARGEST_RATIO and _is(ratio, round(ratio, 3)):
            yield f"It is {number(ratio)} times what is due."
        elif abs(1 / ratio) < LARGEST_RATIO and _is(1 / ratio, round(1 / ratio)):
            yield f"It is 1/{number(1 / ratio)} of what is due."
    if found - due == round(found - due) and 0 < abs(found - due) <= LAST_COUNT:
        yield f"It is {number(abs(found - due))} too {'large' if found > due else 'small'}."
    for words, n in sizes.items():
        if n and (times := round((found - due) / n, 2)) and _is(found - due, times * n):
            much = "" if abs(times) == 1 else f"{number(abs(times))} × "
            yield f"It is {much}{words} too {'much' if times > 0 else 'little'}."
    if found != due and found in (math.floor(due), math.ceil(due)):
        yield "What is due is no whole number, and this is the next one to it. Has it been rounded?"
    if not _is(found, due):
        yield f"It is too {'large' if found > due else 'small'}."


def _by_factor(found: float, due: float, words: str, n: float) -> Iterator[str]:
    if n not in (0, 1) and _is(found, due * n):
        yield f"It is {words} times too large."
    if n > 1 and _is(found * n, due):
        yield f"It is what is due, divided by {words}."


def sizes_in(given: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Numbers that a function was given, in words: themselves, how many entries a list has, the sizes of a mesh."""
    for name, value in given.items():
        sizes = getattr(value, "sizes", value)
        if isinstance(value, str):
            along = (getattr(mesh, "sizes", mesh) for mesh in given.values())
            yield from ((f"the size of `{name}`", float(one[value])) for one in along if _is_mesh(one) and value in one)
        if is_number(value):
            yield f"`{name}`", float(value)
        elif _is_mesh(sizes):
            yield "the number of all devices", float(math.prod(sizes.values()))
            yield from ((f"the size of {axis}", float(size)) for axis, size in sizes.items())
        elif isinstance(value, (list, tuple)) and value:
            yield f"the number of `{name}`", float(len(value))


def _is_mesh(sizes: Any) -> bool:
    """Whether these are the sizes of axes."""
    return isinstance(sizes, Mapping) and len(sizes) > 0 and all(map(is_number, sizes.values()))


def _is(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME_RATIO)


def _of_sequences(found: list[Any], due: list[Any]) -> Iterator[str]:
    if found and same_value(_flat(found), _flat(due)):
        yield "The entries are right, but they are not grouped as they should be."
    if len(found) != len(due):
        yield from _alone(found, due)
        if found and _within(found, due):
            yield "What is there is right, but entries are missing."
        if _within(due, found):
            yield "All that is due is there, and more besides."
        yield f"There are {'more' if len(found) > len(due) else 'fewer'} entries than are due."
    elif len(due) > 1:
        if same_value(found, due[::-1]):
            yield "The entries are right, but the last stands first."
        shifts = [k for k in range(1, len(due)) if same_value(found, due[-k:] + due[:-k])]
        for k in shifts:
            yield f"The entries are right, but stand {k} to the right of where they belong."
            yield f"The entries are right, but stand {len(due) - k} to the left of where they belong."
        if _as_often(found, due):
            yield "The entries are right, but in another order."
        if all(isinstance(row, (list, tuple)) for row in (*found, *due)) and same_value(_turned(found), due):
            yield "It is the transpose of what is due: rows stand for columns."
        if all(map(is_number, (*found, *due))) and math.prod(found) == math.prod(due) != 0:
            yield "The product of these numbers is right, and not each of them for itself."
    if _nested(due) and len(_flat(found)) == len(_flat(due)) and _as_often(_flat(found), _flat(due)):
        yield "All that is due is there, as often as it is due, but not in the groups in which it should be."


def _of_order(found: Sequence[Any], due: Sequence[Any]) -> Iterator[str]:
    """From where on a list of numbers is wrong."""
    if not all(map(is_number, (*found, *due))):
        return
    right = [same_value(one, other) for one, other in zip(found, due, strict=True)]
    if 0 < (begun := sum(right)) < len(due) - 1 and all(right[:begun]):
        yield (
            f"It is right up to number {begun - 1}, counted from 0, and wrong from there on. What is done between "
            f"number {begun - 1} and number {begun}?"
        )
        yield "It begins right, and from some place on it is wrong to its end."
    if not any(right) and len(due) > 2:
        yield "Already its first number is wrong. What goes into that one?"


def _of_quotients(found: Sequence[Any], due: Sequence[Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Where found times due, entry by entry, is an argument: how many parts there are in place of how long each is."""
    for name, whole in given.items():
        if isinstance(whole, (list, tuple)) and len(whole) == len(found) == len(due) > 1:
            trios = list(zip(found, due, whole, strict=True))
            if all(map(is_number, itertools.chain(*trios))) and all(_is(f * d, w) for f, d, w in trios):
                yield f"It is `{name}`, each number of it divided by the one that is due."


def _alone(found: Any, due: list[Any]) -> Iterator[str]:
    """A value that is one entry of the list that is due."""
    yield from (f"It is entry {k} of what is due, alone." for k, entry in enumerate(due) if same_value(found, entry))
    if not isinstance(found, (list, tuple)):
        yield f"A list or a tuple of {len(due)} is due."


def _within(some: list[Any], values: list[Any]) -> bool:
    """Whether these are among the values, in their order."""
    rest = iter(values)
    return all(any(same_value(entry, value) for value in rest) for entry in some)


def _as_often(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists of the same length hold the same, in whatever order."""
    return all(sum(same_value(a, b) for a in one) == sum(same_value(a, b) for a in other) for b in other)


def _turned(rows: list[Any]) -> list[Any]:
    return [list(column) for column in zip(*rows, strict=False)]


def _nested(values: list[Any]) -> bool:
    return any(isinstance(value, (list, tuple)) for value in values)


def _flat(values: Any) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return [entry for value in values for entry in _flat(value)]
    return np.ravel(values).tolist() if isinstance(values, np.ndarray) else [values]


def _of_entries(entries: Sequence[tuple[str, Any, Any]], known: _Known) -> Iterator[str]:
    """Which entries are wrong, and what is so of all of those."""
    wrong = [(name, found, due) for name, found, due in entries if not same_value(found, due)]
    if wrong and all(is_number(due) and is_number(found) and found == 1 < due for _, found, due in wrong):
        yield "Wherever more than 1 is due, it is 1. Is it asked whether there are any, or how many?"
    parts = [pair for _, found, due in wrong for pair in _parts(found, due)]
    alike = in_all([list(_of_one(found, due, known)) for found, due in parts])
    common = next(iter(alike), "")
    if len(wrong) < len(entries) and len(wrong) <= TOLD_APART:
        places = ", ".join(name for name, _, _ in wrong)
        telling = [words for words in alike if words == common or not words.endswith(TELLS_LITTLE)]
        yield from (f"Of the entries only {places} {_is_or_are(wrong)} wrong. {words}" for words in telling)
        yield f"Of the entries only {places} {_is_or_are(wrong)} wrong."
    if common:
        yield (
            common
            if len(entries) == 1
            else f"{OF_EVERY_ENTRY} {lower_first(common.removeprefix(OF_EVERY_NUMBER).strip())}"
        )
    elif len(wrong) > 1 and not is_number(wrong[0][2]):
        name, found, due = wrong[0]
        of_it = list(_of_one(found, due, known))
        if isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(due) == len(found):
            of_it += _of_order(found, due)
        yield from (f"Of {name}: {lower_first(words)}" for words in of_it)
    if len(wrong) < len(entries):
        yield "Some entries are right, others are not."


def _is_or_are(things: Sequence[Any]) -> str:
    return "are" if len(things) > 1 else "is"


def _parts(found: Any, due: Any) -> Iterator[tuple[Any, Any]]:
    """What differs in two values, down to where they have another form."""
    lists = isinstance(found, (list, tuple)) and isinstance(due, (list, tuple)) and len(found) == len(due)
    if not lists:
        yield found, due
        return
    for one, other in zip(found, due, strict=True):
        if not same_value(one, other):
            yield from _parts(one, other)


def _of_arrays(found: np.ndarray, due: np.ndarray, known: _Known) -> Iterator[str]:
    if found.dtype.kind not in "biuf":
        return
    if found.shape != due.shape:
        if found.shape == due.T.shape and same_value(found, due.T):
            yield "It is the transpose of what is due."
        if found.size == due.size and same_value(found.ravel(), due.ravel()):
            yield "The numbers are right, and in order, but the shape is another."
        if found.size == due.size and same_value(np.sort(found, axis=None), np.sort(due, axis=None)):
            yield "The numbers are right, but the shape is another."
        counts = {words: int(n) for words, n in known.sizes.items() if n == int(n)}
        shapes = {name: a.shape for name, a in known.given.items() if isinstance(a, np.ndarray)}
        yield from shape_relations(Shaped(found.shape, due.shape, counts, shapes))
        if found.ndim != due.ndim:
            yield f"It has {'more' if found.ndim > due.ndim else 'fewer'} dimensions than are due."
        yield "The shape is another than is due."
        return
    if found.ndim == 2 and same_value(found, due.T):
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
        yield from filter(None, [beside_what_was_given([found], [due], alike), by_rows([found], [due])])
    words = list(_number_by_number(found, due, known))
    yield from (said for said in words if not said.endswith(TELLS_LITTLE))
    yield from _of_order(found.tolist(), due.tolist()) if due.ndim == 1 else ()
    yield from (said for said in words if said.endswith(TELLS_LITTLE))


def _number_by_number(found: np.ndarray, due: np.ndarray, known: _Known) -> Iterator[str]:
    """Sentences on arrays of one shape, whatever it is."""
    if same_value(np.sort(found, axis=None), np.sort(due, axis=None)):
        yield "The numbers are right, but they stand in other places."
    if not found.any():
        yield "It is all zeros."
    if (due >= 0).all() and (found < 0).any() and same_value(np.maximum(found, 0), due):
        yield "It would be right with 0 in the place of its negative numbers. Is a relu missing, at the end?"
    numbers = [(f, d) for f, d in zip(found.ravel().tolist(), due.ravel().tolist(), strict=True) if d or f]
    if common := most_telling([list(_of_numbers(float(f), float(d), known.sizes)) for f, d in numbers]):
        yield f"{OF_EVERY_NUMBER} {lower_first(common)}"
    if any(right := [same_value(f, d) for f, d in zip(found.ravel(), due.ravel(), strict=True)]):
        wrong = [pair for pair, well in zip(zip(found.flat, due.flat, strict=True), right, strict=True) if not well]
        if common := most_telling([list(_of_numbers(float(f), float(d), known.sizes)) for f, d in wrong]):
            yield f"Some numbers are right, and of all others the same is so: {lower_first(common)}"
        yield from _of_rows(found, due)
        yield "Some numbers are right, others are not."


def _of_rows(found: np.ndarray, due: np.ndarray) -> Iterator[str]:
    """Which rows are right, where some are wholly so."""
    rows = [same_value(one, other) for one, other in zip(found, due, strict=True)] if due.ndim > 1 else []
    few, whole = [k for k, well in enumerate(rows) if well], len(rows)
    if 0 < len(few) < whole and min(len(few), whole - len(few)) <= TOLD_APART:
        right = len(few) <= whole - len(few)
        named = few if right else [k for k in range(whole) if k not in few]
        which = f"{numbered('number', named)} {_is_or_are(named)} {'right' if right else 'wrong'}"
        yield f"Of the {whole} rows only {which}."
