"""What a wrong value has to do with the one that is due: evidence, for a value that no mistake explains.

A relation is a sentence without the case's own numbers, so that it can be held against other cases: only what is so in
every case that came out wrong is said.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.arrays.described import HELD, OnDevices, is_observed
from grader.arrays.numbers import close_entries, same_value
from grader.arrays.words import number, numbered
from grader.judging.proportions import beside_what_was_given, by_rows, made_of_what_was_given
from grader.judging.shapes import Shaped, shape_relations
from grader.judging.wording import in_all, lower_first, most_telling

SAME_RATIO = 1e-5  # relative: how near a ratio has to be to the one it is taken for
ROUNDED = 5e-3  # relative: how near, where somebody has written three digits
LARGEST_RATIO = 10_000  # that anybody recognizes
TOLD_APART = 4  # entries that are told apart by their places
ENOUGH_IN_ORDER = 3  # different numbers: fewer stand in another order by chance
QUARTERS, LARGEST_TIMES = 4, 16  # a difference is some number, so many times, or so many quarters of it
MOST_BLOCKS = 64  # of an array, that a smaller one is held against
LAST_COUNT = 4  # up to here a difference is one of counting
UNITS = (100, 1000, 1024, 10**6, 2**20, 10**9, 2**30)  # percent, kilo, kibi, mega, mebi, giga, gibi
TOO_LARGE, TOO_SMALL = "It is too large.", "It is too small."
BY_1024 = (1.024, 1.024**2, 1.024**3)  # kibi for kilo, mebi for mega, gibi for giga
SAME_BYTES = 1e-4  # relative: how near a ratio has to be to one of these
TELLS_LITTLE = ("t is too large.", "t is too small.", "others are not.", " is wrong.", " are wrong.")  # ends
FIRST_IS_WRONG = "Already its first number is wrong. What goes into that one?"
SOME_ENTRIES = "Some entries are right, others are not."
NOTHING_WRONG_IN_IT = "Nothing in it is wrong, but keys are missing."
OF_EVERY_NUMBER = "The same is so of every number in it:"
ONLY_SOME = "Of the entries only"
OF_EVERY_ENTRY = "The same is so of every wrong entry:"
ASKED_OF_SQUARES = "Is it a factor where it should be a divisor, or the other way round?"
ASKED_OF_SHARES = "What belongs to the share, and what to the rest?"
NUMBER_DUE, TRUTH_DUE, WORD_DUE = "A single number is due", "True or False is due", "Text is due"
ONE_ANOTHERS = (
    "It is cut into the parts that are due, but devices hold one another's. Which axis is to cut what, and in which "
    "order?"
)
AS_GIVEN = ", as it was given."
NOT_GROUPED = "they are not grouped as they should be."
IN_ANOTHER_MEMORY = "Each device holds the part that is due, but in another memory. Which kind is asked for?"
A_MESH = {"axes", "devices", "axis_types"}  # what is kept of a mesh that was returned
COMPARABLE = (int, float, list, tuple, np.ndarray)
NUMBERS = "biuf"  # kinds of dtypes


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
    listed = isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(due) == len(found)
    yield from _before_little(_of_whole(found, due, known), _of_order(found, due) if listed else ())


def _before_little(words: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    """Other sentences, in front of those that tell little."""
    said = list(words)
    yield from (one for one in said if not one.endswith(TELLS_LITTLE))
    yield from others
    yield from (one for one in said if one.endswith(TELLS_LITTLE))


def _of_whole(found: Any, due: Any, known: _Known) -> Iterator[str]:
    """Sentences on a value as a whole, then on its parts."""
    yield from _of_one(found, due, known)
    if isinstance(due, Mapping) and not is_observed(due):
        yield from _of_keys(found, due)
    if isinstance(found, Mapping) and isinstance(due, Mapping):
        yield from _of_slices(found, due)
        yield from _of_entries(list(_by_key(found, due)), known)
    elif isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(due) == len(found):
        pairs = enumerate(zip(found, due, strict=True))
        yield from _of_entries([(f"`[{k}]`", one, other) for k, (one, other) in pairs], known)
    if _plain_list(found) and _plain_list(due) and not any(same_value(*pair) for pair in itertools.product(found, due)):
        yield "None of the entries is among those that are due."


def _by_key(found: Mapping[str, Any], due: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What is and what should be under each key, where they have the same ones; a count of 0 may be left out."""
    in_one = [side[key] for side in (found, due) for key in side if key in found.keys() ^ due.keys()]
    if _all_zero(in_one):
        yield from ((f"`{key}`", found.get(key, 0), due.get(key, 0)) for key in dict.fromkeys((*due, *found)))


def _of_held(found: Mapping[str, Any], due: Mapping[str, Any], known: _Known) -> Iterator[str]:
    """Sentences on the numbers of an array that is on devices, where each holds the part that it should."""
    if {device: [*parts] for device, parts in found.items()} == {device: [*parts] for device, parts in due.items()}:
        sides = ([block for parts in held.values() for block in parts.values()] for held in (found, due))
        numbers, wanted = (np.concatenate([np.ravel(block) for block in side]) for side in sides)
        if numbers.shape == wanted.shape and numbers.dtype.kind in NUMBERS and wanted.dtype.kind in NUMBERS:
            yield from filter(None, [_of_given_parts(found, numbers, wanted, known)])
            yield from _number_by_number(numbers, wanted, known)
    elif found.keys() == due.keys():
        one_of_several = "num_processes" in known.given  # processes, and each sees nothing but its own devices
        one, other = ([_bounds(part) for parts in held.values() for part in parts] for held in (found, due))
        yield from _of_cuts(one, other, " of a process" * one_of_several)


def _of_given_parts(held: Mapping[str, Any], found: np.ndarray, due: np.ndarray, known: _Known) -> str:
    """What numbers on devices have to do with those of arguments that are on devices, in the same parts."""
    parts = [tuple(slice(*pair) for pair in _bounds(part)) for blocks in held.values() for part in blocks]
    arrays = {name: a.value for name, a in known.given.items() if isinstance(a, OnDevices)}
    given = {name: [a[part] for part in parts] for name, a in arrays.items() if _has_parts(a, parts)}
    alike = {name: blocks for name, blocks in given.items() if sum(map(np.size, blocks)) == found.size}
    return beside_what_was_given([found], [due], alike) or made_of_what_was_given([found], alike)


def _has_parts(array: np.ndarray, parts: Sequence[tuple[slice, ...]]) -> bool:
    """Whether these are parts of the array, and come to its end."""
    if any(len(part) != array.ndim for part in parts):
        return False
    return array.shape == tuple(max(one.stop for one in dimension) for dimension in zip(*parts, strict=True))


_Bounds = list[tuple[int, int]]


def _bounds(part: str) -> _Bounds:
    """Where a part of an array starts and stops in each dimension."""
    return [(int(start), int(stop)) for start, stop in re.findall(r"(\d+):(\d+)", part)]


def _of_cuts(found: Sequence[_Bounds], due: Sequence[_Bounds], of_which: str) -> Iterator[str]:
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
    """Which dimensions are cut into more parts than they should be, or fewer; of each device its part of each."""
    each = enumerate(zip(zip(*found, strict=True), zip(*due, strict=True), strict=True))
    words = [
        f"dimension {k} {how}" for k, (one, other) in each if (how := _how_cut(len({*one}), len({*other}), of_which))
    ]
    said = "; ".join(words)
    return f"{said[:1].upper()}{said[1:]}. Which axis of the mesh is to cut which dimension?" if said else ""


def _of_slices(found: Mapping[str, Any], due: Mapping[str, Any]) -> Iterator[str]:
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


def _is_sliced(part: Any) -> bool:
    """Whether these are slices."""
    return (
        isinstance(part, (list, tuple))
        and len(part) > 0
        and all(isinstance(one, str) and re.fullmatch(r"\d*:\d*", one) for one in part)
    )


def _how_cut(parts: int, due: int, of_which: str) -> str:
    """How a dimension is cut, where it is into another number of parts than is due."""
    if parts == due:
        return ""
    if parts == 1:
        return f"is the same on every device{of_which}, and should be cut"
    if due == 1:
        return f"is cut, and should be the same on every device{of_which}"
    where = f" on the devices{of_which}" if of_which else ""
    return f"is cut into {'more' if parts > due else 'fewer'} parts than it should be{where}"


def _of_entry(found: Any, due: Any, known: _Known) -> Iterator[str]:
    """Sentences on an entry of a value."""
    if is_observed(found) and is_observed(due):
        return _of_held(found[HELD], due[HELD], known)
    return _of_one(found, due, known)


def _plain_list(value: Any) -> bool:
    """Whether it is a list of several numbers or words; of what was measured two are never the same by themselves."""
    if not isinstance(value, (list, tuple)) or len(value) < 2:
        return False
    measured = all(isinstance(v, float) and not v.is_integer() for v in value)
    return not measured and all(isinstance(v, (int, float, str)) for v in value)


def _of_one(found: Any, due: Any, known: _Known) -> Iterator[str]:
    """Sentences on a value as a whole."""
    if isinstance(found, np.ndarray) and isinstance(due, (list, tuple)) and due and all(map(is_number, due)):
        due = np.asarray(due)
    for name in (name for name, a in known.given.items() if isinstance(a, COMPARABLE) and same_value(found, a)):
        yield f"It is `{name}`{AS_GIVEN}"
    if is_number(found) and is_number(due):
        yield from _of_numbers(float(found), float(due), known.sizes)
    elif isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)):
        yield from _of_sequences(list(found), list(due))
        yield from _of_quotients(found, due, known.given)
        yield from _of_each_alone(found, known.given)
    elif isinstance(due, (list, tuple)) and not isinstance(found, np.ndarray):
        yield from _alone(found, list(due))
    elif isinstance(due, np.ndarray):
        yield from _of_array(found, due, known)
    else:
        if isinstance(found, (list, tuple)):
            yield from (
                f"What is due is entry {k} of it, alone." for k, one in enumerate(found) if same_value(one, due)
            )
        yield from _of_kind(found, due)


def _of_kind(found: Any, due: Any) -> Iterator[str]:
    """That something of another kind is due: a number, a truth value, a word."""
    if is_number(due) and not is_number(found):
        kinds = {(bool,): "True or False", (str,): "text", (Mapping,): "a dict", (list, tuple): "a list or tuple"}
        plain = next((words for types, words in kinds.items() if isinstance(found, types)), "an array")
        kind = "an array" if is_observed(found) else plain
        yield f"{NUMBER_DUE}, and this is {kind}."
    elif isinstance(due, bool) and not isinstance(found, bool):
        yield f"{TRUTH_DUE}."
    elif isinstance(due, str) and not isinstance(found, str):
        yield f"{WORD_DUE}, and this is none."


def _of_keys(found: Any, due: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on the keys of a dict that is due."""
    if due.keys() >= A_MESH and (not isinstance(found, Mapping) or not found.keys() & A_MESH):
        is_dict = isinstance(found, Mapping) and not is_observed(found)
        no_more = ", which holds devices; this is no more than a dict" if is_dict else ""
        yield f"A mesh is due{no_more}. Which function makes a mesh?"
        return
    if not isinstance(found, Mapping) or is_observed(found):
        if isinstance(found, (list, tuple)) and found and sorted(map(str, found)) == sorted(due):
            yield "These are the keys alone: a dict is due, with what belongs to each of them."
        yield from (
            f"It is what is due under `{key}`, alone: a dict is due." for key in due if same_value(found, due[key])
        )
        yield "A dict is due."
        return
    there = [key for key in due if key in found]
    words_due = all(isinstance(value, str) for value in due.values())
    if (
        words_due
        and len(there) == len(due) == len(found) > 0
        and not any(same_value(found[key], due[key]) for key in there)
    ):
        other = not any(isinstance(value, str) for value in found.values())
        yield f"Its keys are right, and nothing under them is{': words are due there' * other}."
    if due and not found:
        yield "It is empty."
        yield NOTHING_WRONG_IN_IT
    if found and due and not there:
        if len(due) > 1 and _as_often(list(found.values()), list(due.values())):
            yield "What stands under its keys is right, but none of the keys is among those that are due."
        yield "None of its keys is among those that are due."
    if there and all(same_value(found[key], due[key]) for key in there):
        missing, extra = ([one[key] for key in one if key not in other] for one, other in ((due, found), (found, due)))
        if missing and len(missing) == len(extra) and _as_often(extra, missing):
            yield "It is right but for its keys: what is due is there under another name."
        if len(there) == len(found):
            yield from (["Missing are only keys for which 0 is due; the rest is right."] if _all_zero(missing) else [])
            yield "What is there is right, but keys are missing."
            yield NOTHING_WRONG_IN_IT
        elif len(there) == len(due):
            yield from (
                ["All that is due is there, and besides keys with 0, which are not."] if _all_zero(extra) else []
            )
            yield "All that is due is there, and keys besides that are not due."


def _all_zero(values: Sequence[Any]) -> bool:
    return all(is_number(value) and value == 0 for value in values)


def is_number(value: Any) -> bool:
    """Whether it is one, and no truth value; of whole numbers one that a float can be."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max
    return isinstance(value, (float, np.integer, np.floating))


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
            yield "It is off by a factor such as there is between two units. Which one is asked for?"
        if any(math.isclose(ratio * times, 1, rel_tol=SAME_BYTES) for unit in BY_1024 for times in (unit, 1 / unit)):
            yield "It is off by a factor such as there is between MB and MiB. Which are asked for?"
        if abs(ratio) < LARGEST_RATIO and _is(ratio, round(ratio, 3)):
            yield f"It is {number(ratio)} times what is due."
        elif abs(1 / ratio) < LARGEST_RATIO and _is(1 / ratio, round(1 / ratio)):
            yield f"It is 1/{number(1 / ratio)} of what is due."
    if 0 < found < 1 and 0 < due < 1 and (ratio_words := _small_ratio(found / (1 - found), due / (1 - due))):
        yield f"As a share against the rest, x / (1 − x), it is {ratio_words} what is due. {ASKED_OF_SHARES}"
    if found - due == round(found - due) and 0 < abs(found - due) <= LAST_COUNT:
        yield f"It is {number(abs(found - due))} too {'large' if found > due else 'small'}."
    for words, n in sizes.items():
        times = round(QUARTERS * (found - due) / n) / QUARTERS if n else 0.0
        if 0 < abs(times) <= LARGEST_TIMES and _is(found - due, times * n):
            much = "" if abs(times) == 1 else f"{number(abs(times))} × "
            yield f"It is {much}{words} too {'much' if times > 0 else 'little'}."
    if found in (math.floor(due), math.ceil(due)) and not _is(due, round(due)):
        yield "What is due is no whole number, and this is the next one to it. Has it been rounded?"
    if not _is(found, due):
        yield TOO_LARGE if found > due else TOO_SMALL


def _small_ratio(one: float, other: float) -> str:
    """How one number stands to another where that is by a small whole factor: `2 times` or `1/2 of`."""
    for times in range(2, LAST_COUNT + 1):
        if _is(one, times * other):
            return f"{times} times"
        if _is(one * times, other):
            return f"1/{times} of"
    return ""


def _by_factor(found: float, due: float, words: str, n: float) -> Iterator[str]:
    if n > 1 and _is(found, due * n):
        yield f"It is {words} times too large."
    elif n not in (0, 1) and _is(found, due * n):
        yield f"It is {words} times what is due."
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
    groups = _nested(due) and not (len(found) == len(due) and all(map(_as_often, map(_flat, found), map(_flat, due))))
    if groups and _as_often(one, other):
        yield "All that is due is there, as often as it is due, but not in the groups in which it should be."


def _of_fewer_or_more(found: list[Any], due: list[Any]) -> Iterator[str]:
    """Sentences on a list that has another length than is due."""
    yield from _alone(found, due)
    yield from _cut_short(found, due)
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
    if _as_often(found, due):
        yield "The entries are right, but in another order."


def _cut_short(found: list[Any], due: list[Any]) -> Iterator[str]:
    """Where a list is the one that is due without its beginning, or without its end, and it shows which."""
    missing = len(due) - len(found)
    if missing <= 0 or len(found) < 2:
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
    made, wanted = ([frozenset(group) for group in side] for side in sides)
    if _are_joined(made, wanted):
        yield "Each group of it is made of several that are due. What is to keep those apart?"
    elif _are_joined(wanted, made):
        yield "Each group that is due has come apart into several. What do those have in common?"


def _are_joined(groups: Sequence[frozenset[Any]], others: Sequence[frozenset[Any]]) -> bool:
    """Whether each of these groups is several of the others, and each of those is in one."""
    inside = [[other for other in others if other <= group] for group in groups]
    return sum(map(len, inside)) == len(others) and all(
        len(some) > 1 and frozenset().union(*some) == group for group, some in zip(groups, inside, strict=True)
    )


def _of_order(found: Sequence[Any], due: Sequence[Any]) -> Iterator[str]:
    """From where on a list of numbers is wrong."""
    if all(map(is_number, (*found, *due))):
        yield from _from_where_on(list(map(same_value, found, due)))


def _from_where_on(right: Sequence[bool]) -> Iterator[str]:
    """From where on numbers are wrong, of which these are right."""
    if 0 < (begun := sum(right)) < len(right) - 1 and all(right[:begun]):
        yield (
            f"It is right up to number {begun - 1}, counted from 0, and wrong from there on. What is done between "
            f"number {begun - 1} and number {begun}?"
        )
        yield "It begins right, and from some place on it is wrong to its end."
    if not any(right) and len(right) > 2:
        yield FIRST_IS_WRONG


def _of_quotients(found: Sequence[Any], due: Sequence[Any], given: Mapping[str, Any]) -> Iterator[str]:
    """Where found times due, entry by entry, is an argument: how many parts there are in place of how long each is."""
    for name, whole in given.items():
        if isinstance(whole, (list, tuple)) and len(whole) == len(found) == len(due) > 1:
            trios = list(zip(found, due, whole, strict=True))
            if all(map(is_number, itertools.chain(*trios))) and all(_is(f * d, w) for f, d, w in trios):
                yield f"It is `{name}`, each number of it divided by the one that is due."


def _of_each_alone(found: Sequence[Any], given: Mapping[str, Any]) -> Iterator[str]:
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
            if len(entries) == len(found) and np.allclose(single, [made(one) for one in entries]):
                yield f"Each entry is a single number: the {words} of what is in the entry of `{name}` at its place."
            if np.allclose(single, made([made(one) for one in entries])):
                yield f"Each entry is a single number: the {words} of all that is in `{name}`."


def _holds_numbers(value: Any) -> bool:
    """Whether these are numbers, and any."""
    array = np.asarray(value) if isinstance(value, (int, float, np.ndarray, np.number)) else np.empty(0)
    return array.dtype.kind in "iuf" and array.size > 0


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


def _of_entries(entries: Sequence[tuple[str, Any, Any]], known: _Known) -> Iterator[str]:
    """Which entries are wrong, and what is so of all of those."""
    wrong = [(name, found, due) for name, found, due in entries if not same_value(found, due)]
    numbers = all(is_number(value) for _, *pair in entries for value in pair)
    if wrong and numbers and all((found == 1 < due) if due > 1 else found == due for _, found, due in entries):
        yield "Wherever more than 1 is due, it is 1. Is it asked whether there are any, or how many?"
    for given, one in ((name, one) for name, one in known.given.items() if isinstance(one, (list, tuple))):
        if len(wrong) > 1 and all(any(same_value(found, entry) for entry in one) for _, found, _ in wrong):
            yield f"Every wrong entry is one of `{given}`, as it was given."
    parts = [pair for _, found, due in wrong for pair in _parts(found, due)]
    alike = in_all([list(_of_entry(found, due, known)) for found, due in parts])
    common = next(iter(alike), "")
    if len(wrong) < len(entries) and len(wrong) <= TOLD_APART:
        places = ", ".join(name for name, _, _ in wrong)
        telling = [words for words in alike if words == common or not words.endswith(TELLS_LITTLE)]
        only = f"{ONLY_SOME} {places} {_is_or_are(wrong)} wrong."
        inside = any(pair[0] is not found for pair, (_, found, _) in zip(parts, wrong, strict=False))
        yield from (f"{only} {_of_those(words, len(wrong), inside)}" for words in telling)
        yield only
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
        yield SOME_ENTRIES


def _of_those(words: str, count: int, inside: bool) -> str:
    """What is so of so many wrong entries, or of what is wrong inside them."""
    if not inside and count == 1:
        return words
    of_which = f"what is wrong in {'it' if count == 1 else 'them'}" if inside else "each of them"
    return f"Of {of_which} the same is so: {lower_first(words.removeprefix(OF_EVERY_NUMBER).strip())}"


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


def _of_array(found: Any, due: np.ndarray, known: _Known) -> Iterator[str]:
    """Sentences on what was found where an array is due."""
    is_array = isinstance(found, np.ndarray)
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


def _of_arrays(found: np.ndarray, due: np.ndarray, known: _Known) -> Iterator[str]:
    if found.shape != due.shape:
        if found.shape == due.T.shape and same_value(found, due.T):
            yield "It is the transpose of what is due."
        if found.size == due.size and same_value(found.ravel(), due.ravel()):
            yield "The numbers are right, and in order, but the shape is another."
        if found.size == due.size and same_value(np.sort(found, axis=None), np.sort(due, axis=None)):
            yield "The numbers are right, but the shape is another."
        if found.ndim == due.ndim == 1:
            yield from _cut_short(found.tolist(), due.tolist())
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
        besides = beside_what_was_given([found], [due], alike) or made_of_what_was_given([found], alike)
        yield from filter(None, [besides, by_rows([found], [due])])
    order = _from_where_on(close_entries(found, due).tolist()) if due.ndim == 1 else ()
    yield from _before_little(_number_by_number(found, due, known), order)


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


def _number_by_number(found: np.ndarray, due: np.ndarray, known: _Known) -> Iterator[str]:
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
        if common := _of_all_numbers(found[~right], due[~right], known):
            yield f"Some numbers are right, and of all others the same is so: {lower_first(common)}"
        yield from _of_rows(right)
        yield "Some numbers are right, others are not."


def _of_all_numbers(found: np.ndarray, due: np.ndarray, known: _Known) -> str:
    pairs = zip(found.tolist(), due.tolist(), strict=True)
    return most_telling([list(_of_numbers(float(f), float(d), known.sizes)) for f, d in pairs])


def _of_truths(found: np.ndarray, due: np.ndarray, right: np.ndarray) -> Iterator[str]:
    """Sentences on an array of truth values."""
    if found.dtype.kind == "b":
        if not right.any():
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
        which = f"{numbered('number', named)} {_is_or_are(named)} {'right' if is_right else 'wrong'}"
        yield f"Of the {whole} rows only {which}."
