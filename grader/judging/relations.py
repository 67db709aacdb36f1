"""What a wrong value has to do with the one that is due: evidence, for a value that no mistake explains.

A relation is a sentence without the case's own numbers, so that it can be held against other cases: only what is so in
every case that came out wrong is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.arrays.numbers import same_value
from grader.arrays.words import number

SAME_RATIO = 1e-5  # relative: how near a ratio has to be to the one it is taken for
LARGEST_RATIO = 10_000  # that anybody recognizes
TOLD_APART = 4  # entries that are told apart by their places
LAST_COUNT = 4  # up to here a difference is one of counting
UNITS = (100, 1000, 1024, 10**6, 2**20, 10**9, 2**30)  # percent, kilo, kibi, mega, mebi, giga, gibi
VAGUE = (
    "too large.",
    "too small.",
    "others are not.",
    "wrong.",
    "entries than are due.",
    "shape is another than is due.",
)
ASKED = "Is it a factor where it should be a divisor, or the other way round?"
COMPARABLE = (int, float, list, tuple, np.ndarray)


@dataclass(frozen=True, eq=False)
class Tried:
    """What a function returned in one case, what is due, and what it was given."""

    found: Any
    due: Any
    given: Mapping[str, Any]
    right: bool = False


def evidence(tried: Sequence[Tried], otherwise: Callable[[], str] = str, among: str = "cases") -> str:
    """What all wrong cases have in common, and the right ones have not. "" where nothing is seen.

    `otherwise` finds words where what they have in common says little; `among` says what is tried, if not cases.
    """
    wrong, right = [one for one in tried if not one.right], [one for one in tried if one.right]
    common = _in_common(wrong)
    said = (otherwise() if _says_little(common) else "") or common
    return " ".join(filter(None, (said, _divide(right, wrong, among))))


def _says_little(words: str) -> bool:
    return not words or words.startswith("In this case") or any(vague in words for vague in VAGUE)


def _in_common(wrong: Sequence[Tried]) -> str:
    """What is so in all wrong cases; of something that is no number, else what is so in the first of them."""
    sizes = _that_differ([dict(sizes_in(one.given)) for one in wrong])
    relations = [
        list(relations_of(one.found, one.due, one.given, told)) for one, told in zip(wrong, sizes, strict=True)
    ]
    if (words := _shared(relations)) or not relations or _is_number(wrong[0].found):
        return words
    return f"In this case: {relations[0][0][:1].lower()}{relations[0][0][1:]}" if relations[0] else ""


def _that_differ(sizes: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Of each case the numbers that are others elsewhere: a factor may be one that never changes by chance."""
    return [{name: n for name, n in some.items() if len({other.get(name) for other in sizes}) > 1} for some in sizes]


def _shared(relations: Sequence[list[str]]) -> str:
    """The most telling sentence that is among all of these; "" if none is."""
    first = relations[0] if relations else []
    return next((words for words in first if all(words in others for others in relations)), "")


def _divide(right: Sequence[Tried], wrong: Sequence[Tried], among: str) -> str:
    """An argument, or an answer, by which right cases and wrong ones differ."""
    if not right:
        return ""
    how_many = f"Right in {len(right)} of {len(right) + len(wrong)} {among}"
    for some, others, words in ((wrong, right, "in none of those"), (right, wrong, "only in those")):
        if by := _only_in(some, others):
            return f"{how_many}: {words} with {' and '.join(by)}."
    good, bad = (_values(one.due for one in some) for some in (right, wrong))
    if good and bad and not good & bad and len(bad) == 1 and _tells(bad, wrong):
        return f"{how_many}: in none of those where {next(iter(bad))} is due."
    return f"{how_many}."


def _only_in(some: Sequence[Tried], others: Sequence[Tried]) -> list[str]:
    """Every argument that has one value in some cases, and never this one in the others."""
    found = []
    for name in some[0].given if some else ():
        here, there = (_values(one.given.get(name) for one in cases) for cases in (some, others))
        if len(here) == 1 and there and not here & there and _tells(here, some):
            found.append(f"`{name}` = {next(iter(here))}")
    return found


def _tells(value: set[str], cases: Sequence[Tried]) -> bool:
    """Whether it is no chance that these cases have a value in common: a single one has its own numbers."""
    return len(cases) > 1 or not next(iter(value))[0].isdigit()


def _values(values: Iterator[Any]) -> set[str]:
    """Plain values as text, none where one of them is no number, truth value or word."""
    listed = list(values)
    return {repr(v) for v in listed} if all(isinstance(v, (bool, int, float, str)) for v in listed) else set()


def relations_of(
    found: Any, due: Any, given: Mapping[str, Any], sizes: Mapping[str, float] | None = None
) -> Iterator[str]:
    """Sentences on a wrong value, the most telling first. `sizes` are the numbers, by what they are called, of which
    one may be a factor; by default all that are among what was given."""
    if found is None or same_value(found, due):  # an exercise may ask for more than equal numbers
        return
    known = _Known(given, dict(sizes_in(given)) if sizes is None else sizes)
    yield from _of_one(found, due, known)
    if isinstance(found, Mapping) and isinstance(due, Mapping) and found.keys() == due.keys():
        yield from _of_entries([(f"`{key}`", found[key], due[key]) for key in due], known)
    elif isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(due) == len(found):
        pairs = enumerate(zip(found, due, strict=True))
        yield from _of_entries([(f"number {k}", one, other) for k, (one, other) in pairs], known)


@dataclass(frozen=True, eq=False)
class _Known:
    """What a function was given, and the numbers among that of which one may be a factor."""

    given: Mapping[str, Any]
    sizes: Mapping[str, float]


def _of_one(found: Any, due: Any, known: _Known) -> Iterator[str]:
    """Sentences on a value as a whole."""
    if isinstance(found, np.ndarray) and isinstance(due, (list, tuple)) and due and all(map(_is_number, due)):
        due = np.asarray(due)
    for name in (name for name, a in known.given.items() if isinstance(a, COMPARABLE) and same_value(found, a)):
        yield f"It is `{name}`, as it was given."
    if _is_number(found) and _is_number(due):
        yield from _of_numbers(float(found), float(due), known.sizes)
    elif isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)):
        yield from _of_sequences(list(found), list(due))
    elif isinstance(due, (list, tuple)) and not isinstance(found, np.ndarray):
        yield from _alone(found, list(due))
    elif isinstance(due, np.ndarray) and isinstance(found, COMPARABLE):
        yield from _of_arrays(np.asarray(found), due, known.sizes)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _of_numbers(found: float, due: float, sizes: Mapping[str, float]) -> Iterator[str]:
    if not (math.isfinite(found) and math.isfinite(due)):
        return
    if due and found:
        if _is(found, -due):
            yield "It has the wrong sign."
        yield from (
            f"It is {words} times too large." for words, n in sizes.items() if n not in (0, 1) and _is(found, due * n)
        )
        yield from (
            f"It is what is due, divided by {words}." for words, n in sizes.items() if n > 1 and _is(found * n, due)
        )
        yield from (f"{words} {ASKED}" for words in _by_squares(found, due, sizes))
        if _is(found * due, 1):
            yield "It is 1 divided by what is due."
        ratio = found / due
        if any(_is(ratio, unit) or _is(ratio * unit, 1) for unit in UNITS):
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


def _by_squares(found: float, due: float, sizes: Mapping[str, float]) -> Iterator[str]:
    for words, n in sizes.items():
        if n > 1 and _is(found, due * n**2):
            yield f"It is the square of {words} times too large."
        elif n > 1 and _is(found * n**2, due):
            yield f"It is what is due, divided by the square of {words}."


def sizes_in(given: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Numbers that a function was given, in words: themselves, how many entries a list has, the sizes of a mesh."""
    for name, value in given.items():
        sizes = getattr(value, "sizes", value)
        if _is_number(value):
            yield f"`{name}`", float(value)
        elif isinstance(sizes, Mapping) and sizes and all(map(_is_number, sizes.values())):
            yield "the number of all devices", float(math.prod(sizes.values()))
            yield from ((f"the size of {axis}", float(size)) for axis, size in sizes.items())
        elif isinstance(value, (list, tuple)) and value:
            yield f"the number of `{name}`", float(len(value))


def _is(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME_RATIO)


def _of_sequences(found: list[Any], due: list[Any]) -> Iterator[str]:
    if len(found) != len(due):
        if found and same_value(_flat(found), _flat(due)):
            yield "The entries are right, but they are not grouped as they should be."
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


def _flat(values: Any) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return [entry for value in values for entry in _flat(value)]
    return np.ravel(values).tolist() if isinstance(values, np.ndarray) else [values]


def _of_entries(entries: Sequence[tuple[str, Any, Any]], known: _Known) -> Iterator[str]:
    """Which entries are wrong, and what is so of all of those."""
    wrong = [(name, found, due) for name, found, due in entries if not same_value(found, due)]
    parts = [pair for _, found, due in wrong for pair in _parts(found, due)]
    common = _shared([list(_of_one(found, due, known)) for found, due in parts])
    if len(wrong) < len(entries) and len(wrong) <= TOLD_APART:
        places = ", ".join(name for name, _, _ in wrong)
        yield from ([f"Of the entries only {places} {_is_or_are(wrong)} wrong. {common}"] if common else [])
        yield f"Of the entries only {places} {_is_or_are(wrong)} wrong."
    if common:
        yield common if len(entries) == 1 else f"The same is so of every wrong entry: {common[0].lower()}{common[1:]}"
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


def _of_arrays(found: np.ndarray, due: np.ndarray, sizes: Mapping[str, float]) -> Iterator[str]:
    if found.dtype.kind not in "biuf":
        return
    if found.shape != due.shape:
        if found.shape == due.T.shape and same_value(found, due.T):
            yield "It is the transpose of what is due."
        if found.size == due.size and same_value(found.ravel(), due.ravel()):
            yield "The numbers are right, and in order, but the shape is another."
        if found.size == due.size and same_value(np.sort(found, axis=None), np.sort(due, axis=None)):
            yield "The numbers are right, but the shape is another."
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
    if same_value(np.sort(found, axis=None), np.sort(due, axis=None)):
        yield "The numbers are right, but they stand in other places."
    if not found.any():
        yield "It is all zeros."
    numbers = [(f, d) for f, d in zip(found.ravel().tolist(), due.ravel().tolist(), strict=True) if d or f]
    if common := _shared([list(_of_numbers(float(f), float(d), sizes)) for f, d in numbers]):
        yield f"The same is so of every number in it: {common[0].lower()}{common[1:]}"
    if any(same_value(f, d) for f, d in zip(found.ravel(), due.ravel(), strict=True)):
        yield "Some numbers are right, others are not."
