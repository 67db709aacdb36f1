"""What a wrong value has to do with the one that is due: evidence, for a value that no mistake explains.

A relation is a sentence without the case's own numbers, so that it can be held against other cases: only what is so in
every case that came out wrong is said.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.arrays.described import HELD, OnDevices, is_observed
from grader.arrays.numbers import close_entries, same_value
from grader.arrays.words import numbered
from grader.judging.lists import (
    as_often,
    from_where_on,
    of_each_alone,
    of_one_entry,
    of_quotients,
    of_two_lists,
    of_where_it_goes_wrong,
)
from grader.judging.proportions import beside_what_was_given, by_rows, made_of_what_was_given
from grader.judging.shapes import Shaped, shape_relations
from grader.judging.siblings import of_right_ones, wrong_places
from grader.judging.single_numbers import is_number, of_two_numbers, sizes_in
from grader.judging.wording import in_all, lower_first, most_telling

TOLD_APART = 4  # entries that are told apart by their places
ENOUGH_IN_ORDER = 3  # different numbers: fewer stand in another order by chance
MOST_BLOCKS = 64  # of an array, that a smaller one is held against
TELLS_LITTLE = ("t is too large.", "t is too small.", "others are not.", " is wrong.", " are wrong.")  # ends
SOME_ENTRIES = "Some entries are right, others are not."
NOTHING_WRONG_IN_IT = "Nothing in it is wrong, but keys are missing."
OF_EVERY_NUMBER = "The same is so of every number in it:"
ONLY_SOME = "Of the entries only"
OF_EVERY_ENTRY = "The same is so of every wrong entry:"
NUMBER_DUE, TRUTH_DUE, WORD_DUE = "A single number is due", "True or False is due", "Text is due"
NONE_DUE = "None is due there, and this is something."
ONE_ANOTHERS = (
    "It is cut into the parts that are due, but devices hold one another's. Which axis is to cut what, and in which "
    "order?"
)
AS_GIVEN = ", as it was given."
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
    yield from _before_little(_of_whole(found, due, known), of_where_it_goes_wrong(found, due) if listed else ())


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
    if isinstance(found, np.ndarray) and isinstance(due, (list, tuple)) and due and _is_plain_array(due):
        due = np.asarray(due)
    for name in (name for name, a in known.given.items() if isinstance(a, COMPARABLE) and same_value(found, a)):
        yield f"It is `{name}`{AS_GIVEN}"
    if is_number(found) and is_number(due):
        yield from of_two_numbers(float(found), float(due), known.sizes)
    elif isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)):
        yield from of_two_lists(list(found), list(due))
        yield from of_quotients(found, due, known.given)
        yield from of_each_alone(found, known.given)
    elif isinstance(due, (list, tuple)) and not isinstance(found, np.ndarray):
        yield from of_one_entry(found, list(due))
    elif isinstance(due, np.ndarray):
        yield from _of_array(found, due, known)
    else:
        if isinstance(found, (list, tuple)):
            yield from (
                f"What is due is entry {k} of it, alone." for k, one in enumerate(found) if same_value(one, due)
            )
        yield from _of_kind(found, due)


def _is_plain_array(due: Sequence[Any]) -> bool:
    """Whether these are all numbers, or all truth values."""
    return all(map(is_number, due)) or all(isinstance(one, bool) for one in due)


def _of_kind(found: Any, due: Any) -> Iterator[str]:
    """That something of another kind is due: a number, a truth value, a word."""
    if is_number(due) and not is_number(found):
        kinds = {(bool,): "True or False", (str,): "text", (Mapping,): "a dict", (list, tuple): "a list or tuple"}
        other = "None" if found is None else "an array"
        plain = next((words for types, words in kinds.items() if isinstance(found, types)), other)
        kind = "an array" if is_observed(found) else plain
        yield f"{NUMBER_DUE}, and this is {kind}."
    elif isinstance(due, bool) and not isinstance(found, bool):
        yield f"{TRUTH_DUE}."
    elif due is None:
        yield NONE_DUE
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
        if len(due) > 1 and as_often(list(found.values()), list(due.values())):
            yield "What stands under its keys is right, but none of the keys is among those that are due."
        yield "None of its keys is among those that are due."
    if there and all(same_value(found[key], due[key]) for key in there):
        missing, extra = ([one[key] for key in one if key not in other] for one, other in ((due, found), (found, due)))
        if missing and len(missing) == len(extra) and as_often(extra, missing):
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
        yield from (f"{only} {words}" for words in _of_the_only_one(wrong, entries))
        inside = any(pair[0] is not found for pair, (_, found, _) in zip(parts, wrong, strict=False))
        said = [f"{only} {_of_those(words, len(wrong), inside)}" for words in telling]
        where = [f"{only} {words}" for words in _where_it_goes_wrong(*wrong[0][1:])] if len(wrong) == 1 else []
        yield from _before_little(said, where)
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
            of_it += of_where_it_goes_wrong(found, due)
        yield from (f"Of {name}: {lower_first(words)}" for words in of_it)
    if len(wrong) < len(entries):
        yield SOME_ENTRIES


def _where_it_goes_wrong(found: Any, due: Any) -> Iterator[str]:
    """From where on an entry is wrong, where that is a list as long as the one that is due."""
    if isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(due) == len(found):
        yield from of_where_it_goes_wrong(found, due)


def _of_the_only_one(wrong: Sequence[tuple[str, Any, Any]], entries: Sequence[tuple[str, Any, Any]]) -> Iterator[str]:
    """What the right entries say of the only wrong one; where in it something is wrong."""
    if len(wrong) != 1:
        return
    name, found, due = wrong[0]
    yield from of_right_ones(found, due, [(other, value) for other, value, _ in entries if other != name])
    yield from filter(None, [wrong_places(found, due)])


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
        besides = beside_what_was_given([found], [due], alike) or made_of_what_was_given([found], alike)
        yield from filter(None, [besides, by_rows([found], [due])])
        yield from _of_ones(found, due)
    yield from _of_bounded(found, due, known)
    order = from_where_on(close_entries(found, due).tolist()) if due.ndim == 1 else ()
    yield from _before_little(_number_by_number(found, due, known), order)


def _of_ones(found: np.ndarray, due: np.ndarray) -> Iterator[str]:
    """That rows should add up to 1, and do not."""
    if due.ndim < 2 or due.shape[-1] < 2:
        return
    ones = np.ones(due.shape[:-1], np.float32)
    if same_value(due.sum(-1), ones) and not close_entries(found.sum(-1), ones).any():
        yield "Its rows should add up to 1, and none of them does."


def _of_bounded(found: np.ndarray, due: np.ndarray, known: _Known) -> Iterator[str]:
    """Where no number goes beyond one that was given, and else it is what is due."""
    for name, n in known.sizes.items():
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
        yield from _where_wrong(found, due, right, known)
        yield from _of_rows(right)
        yield "Some numbers are right, others are not."


def _where_wrong(found: np.ndarray, due: np.ndarray, right: np.ndarray, known: _Known) -> Iterator[str]:
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
        if not float(given).is_integer() and given and np.allclose(times := (wrong - wanted) / given, np.round(times)):
            yield f"Wherever a number in it is wrong, it is off by `{name}`, once or several times."
    places = np.flatnonzero(~right).tolist()
    if due.ndim == 1 and 0 < len(places) <= TOLD_APART and right.sum() >= len(places):
        which = f"{numbered('number', places)} (counted from 0) {_is_or_are(places)}"
        yield f"Of its {due.size} numbers only {which} not right."
    if len(wrong) > 1 and len(np.unique(wrong)) == 1 and len(np.unique(wanted)) > 1:
        yield "Wherever a number in it is wrong, it is one and the same, and others are due."


def _of_all_numbers(found: np.ndarray, due: np.ndarray, known: _Known) -> str:
    pairs = zip(found.tolist(), due.tolist(), strict=True)
    return most_telling([list(of_two_numbers(float(f), float(d), known.sizes)) for f, d in pairs])


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
