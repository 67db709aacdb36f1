"""What a wrong value has to do with the one that is due: evidence, for a value that no mistake explains.

A relation is a sentence without the case's own numbers, so that it can be held against other cases: only what is so in
every case that came out wrong is said.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grader.arrays.described import HELD, OnDevices, is_observed
from grader.arrays.numbers import close_entries, same_value
from grader.judging.cuts import bounds, of_cuts, of_slices
from grader.judging.lists import (
    as_often,
    of_each_alone,
    of_one_entry,
    of_quotients,
    of_two_lists,
    of_where_it_goes_wrong,
)
from grader.judging.proportions import beside_what_was_given, made_of_what_was_given
from grader.judging.siblings import of_right_ones, wrong_places
from grader.judging.single_numbers import is_number, of_two_numbers, sizes_in
from grader.judging.whole_arrays import (
    COMPARABLE,
    NUMBERS,
    OF_EVERY_NUMBER,
    SOME_ENTRIES,
    TOLD_APART,
    WasGiven,
    number_by_number,
    of_array,
)
from grader.judging.wording import TELLS_LITTLE, before_little, in_all, is_or_are, lower_first, right_along

NOTHING_WRONG_IN_IT = "Nothing in it is wrong, but keys are missing."
ONLY_SOME = "Of the entries only"
ONLY_THERE = "All else in it is right."
OF_EVERY_ENTRY = "The same is so of every wrong entry:"
OF_ALL_INSIDE = "The same is so of all that is wrong in it:"
NUMBER_DUE, TRUTH_DUE, WORD_DUE = "A single number is due", "True or False is due", "Text is due"
NONE_DUE = "None is due there, and this is something."
AS_GIVEN = ", as it was given."
RENAMED = "It is right but for its keys: what is due is there under another name."
FEW_COLUMNS = 16  # of a block, that are told by their numbers
A_MESH = {"axes", "devices", "axis_types"}  # what is kept of a mesh that was returned


def relations_of(
    found: Any, due: Any, given: Mapping[str, Any], sizes: Mapping[str, float] | None = None
) -> Iterator[str]:
    """Sentences on a wrong value, the most telling first. `sizes` are the numbers, by what they are called, of which
    one may be a factor; by default all that are among what was given."""
    if found is None or same_value(found, due):  # an exercise may ask for more than equal numbers
        return
    if _of_lines(due):  # a line may be right in other words
        return
    known = WasGiven(given, dict(sizes_in(given)) if sizes is None else sizes)
    if is_observed(found) and is_observed(due):
        yield from _of_held(found[HELD], due[HELD], known)
        return
    listed = isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(due) == len(found)
    yield from before_little(_of_whole(found, due, known), of_where_it_goes_wrong(found, due) if listed else ())


def _of_whole(found: Any, due: Any, known: WasGiven) -> Iterator[str]:
    """Sentences on a value as a whole, then on its parts."""
    yield from _of_one(found, due, known)
    if isinstance(due, Mapping) and not is_observed(due):
        yield from _of_keys(found, due)
    if isinstance(found, Mapping) and isinstance(due, Mapping):
        yield from of_slices(found, due)
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


def _of_held(found: Mapping[str, Any], due: Mapping[str, Any], known: WasGiven) -> Iterator[str]:
    """Sentences on the numbers of an array that is on devices, where each holds the part that it should."""
    if {device: [*parts] for device, parts in found.items()} == {device: [*parts] for device, parts in due.items()}:
        sides = ([block for parts in held.values() for block in parts.values()] for held in (found, due))
        # a row of them: none has a place of its own, for devices may hold copies, or columns
        numbers, wanted = (np.concatenate([np.ravel(block) for block in side])[np.newaxis] for side in sides)
        if numbers.shape == wanted.shape and numbers.dtype.kind in NUMBERS and wanted.dtype.kind in NUMBERS:
            yield from filter(None, [_of_given_parts(found, numbers, wanted, known)])
            yield from before_little(number_by_number(numbers, wanted, known), _of_columns(found, due))
    elif found.keys() == due.keys():
        one_of_several = "num_processes" in known.given  # processes, and each sees nothing but its own devices
        one, other = ([bounds(part) for parts in held.values() for part in parts] for held in (found, due))
        yield from of_cuts(one, other, " of a process" * one_of_several)


def _of_columns(found: Mapping[str, Any], due: Mapping[str, Any]) -> Iterator[str]:
    """Which entries along the last dimension are right in every block, where others are due in different ones."""
    sides = [[np.asarray(block) for parts in held.values() for block in parts.values()] for held in (found, due)]
    counts = {block.shape[-1] if block.ndim > 1 else 0 for blocks in sides for block in blocks}
    if len(counts) != 1 or not 1 < (count := counts.pop()) <= FEW_COLUMNS:
        return
    made, wanted = (np.concatenate([block.reshape(-1, count) for block in blocks]) for blocks in sides)
    right = np.flatnonzero(close_entries(made, wanted).all(axis=0))
    if 0 < len(right) < count and all(len(np.unique(wanted[:, k])) > 1 for k in right):
        yield right_along(sides[1][0].ndim - 1, right.tolist())


def _of_given_parts(held: Mapping[str, Any], found: np.ndarray, due: np.ndarray, known: WasGiven) -> str:
    """What numbers on devices have to do with those of arguments that are on devices, in the same parts."""
    parts = [tuple(slice(*pair) for pair in bounds(part)) for blocks in held.values() for part in blocks]
    arrays = {name: a.value for name, a in known.given.items() if isinstance(a, OnDevices)}
    given = {name: [a[part] for part in parts] for name, a in arrays.items() if _has_parts(a, parts)}
    alike = {name: blocks for name, blocks in given.items() if sum(map(np.size, blocks)) == found.size}
    return beside_what_was_given([found], [due], alike) or made_of_what_was_given([found], [due], alike)


def _has_parts(array: np.ndarray, parts: Sequence[tuple[slice, ...]]) -> bool:
    """Whether these are parts of the array, and come to its end."""
    if any(len(part) != array.ndim for part in parts):
        return False
    return array.shape == tuple(max(one.stop for one in dimension) for dimension in zip(*parts, strict=True))


def _of_entry(found: Any, due: Any, known: WasGiven) -> Iterator[str]:
    """Sentences on an entry of a value."""
    if is_observed(found) and is_observed(due):
        return _of_held(found[HELD], due[HELD], known)
    return _of_one(found, due, known)


def _of_lines(value: Any) -> bool:
    """Whether it is a script: text in lines, of which one has several words."""
    listed = isinstance(value, (list, tuple)) and bool(value)
    return listed and all(isinstance(v, str) for v in value) and any(" " in v for v in value)


def _plain_list(value: Any) -> bool:
    """Whether it is a list of several numbers or words; of what was measured two are never the same by themselves."""
    if not isinstance(value, (list, tuple)) or len(value) < 2:
        return False
    measured = all(isinstance(v, float) and not v.is_integer() for v in value)
    return not measured and all(isinstance(v, (int, float, str)) for v in value)


def _of_one(found: Any, due: Any, known: WasGiven) -> Iterator[str]:
    """Sentences on a value as a whole."""
    if isinstance(found, np.ndarray) and isinstance(due, (list, tuple)) and due and _is_plain_array(due):
        due = np.asarray(due)
    for name, a in known.given.items():
        if isinstance(a, COMPARABLE) and isinstance(a, bool) is isinstance(found, bool) and same_value(found, a):
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
        yield from of_array(found, due, known)
    else:
        if isinstance(found, (list, tuple)):
            yield from (
                f"What is due is entry {k} of it (counted from 0), alone."
                for k, one in enumerate(found)
                if same_value(one, due)
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
            yield RENAMED
        if len(there) == len(found):
            yield from (["Missing are only keys for which 0 is due; the rest is right."] if _all_zero(missing) else [])
            yield "What is there is right, but keys are missing."
            yield NOTHING_WRONG_IN_IT
        elif len(there) == len(due):
            yield from (
                ["All that is due is there, and besides keys with 0, which are not."] if _all_zero(extra) else []
            )
            yield "All that is due is there, and keys besides that are not due."
    elif there and found.keys() != due.keys() and all(map(is_number, due.values())):
        wrong_keys = [key for key in found if key not in due]
        if not _all_zero([found[key] for key in wrong_keys]):
            named = ", ".join(map(repr, wrong_keys))
            yield from ([f"It has keys that are not due: {named}."] if len(wrong_keys) <= TOLD_APART else [])
            yield "It has keys that are not due."


def _all_zero(values: Sequence[Any]) -> bool:
    return all(is_number(value) and value == 0 for value in values)


def _of_entries(entries: Sequence[tuple[str, Any, Any]], known: WasGiven) -> Iterator[str]:
    """Which entries are wrong, and what is so of all of those."""
    wrong = [(name, found, due) for name, found, due in entries if not same_value(found, due)]
    numbers = all(is_number(value) for _, *pair in entries for value in pair)
    counted = bool(wrong) and all(isinstance(found, int) for _, found, _ in wrong)  # 1.0 is a size that came to that
    if counted and numbers and all((found == 1 < due) if due > 1 else found == due for _, found, due in entries):
        yield "Wherever more than 1 is due, it is 1. Is it asked whether there are any, or how many?"
    for given, one in ((name, one) for name, one in known.given.items() if isinstance(one, (list, tuple))):
        if len(wrong) > 1 and all(any(same_value(found, entry) for entry in one) for _, found, _ in wrong):
            yield f"Every wrong entry is one of `{given}`, as it was given."
    parts = [pair for _, found, due in wrong for pair in _parts(found, due)]
    alike = in_all([list(_of_entry(found, due, known)) for found, due in parts])
    common = next(iter(alike), "")
    inside = any(pair[0] is not found for pair, (_, found, _) in zip(parts, wrong, strict=False))
    if len(wrong) < len(entries) and len(wrong) <= TOLD_APART:
        places = ", ".join(name for name, _, _ in wrong)
        telling = [words for words in alike if words == common or not words.endswith(TELLS_LITTLE)]
        only = f"{ONLY_SOME} {places} {is_or_are(wrong)} wrong."
        yield from (f"{only} {words}" for words in _of_the_only_one(wrong, entries))
        said = [f"{only} {_of_those(words, len(wrong), inside)}" for words in telling]
        where = [f"{only} {words}" for words in _where_it_goes_wrong(*wrong[0][1:])] if len(wrong) == 1 else []
        yield from before_little(said, where)
        # Of a tree the difference itself says where it is, deeper than by the outermost key.
        deep = len(wrong) == 1 and isinstance(wrong[0][2], Mapping) and _differ_once(*wrong[0][1:])
        yield ONLY_THERE if deep else only
    if common:
        of_which = OF_ALL_INSIDE if inside else OF_EVERY_ENTRY
        rest = lower_first(common.removeprefix(OF_EVERY_NUMBER).strip())
        yield common if len(entries) == 1 else f"{of_which} {rest}"
    elif len(wrong) > 1 and not is_number(wrong[0][2]):
        name, found, due = wrong[0]
        of_it = list(_of_one(found, due, known))
        if isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(due) == len(found):
            of_it += of_where_it_goes_wrong(found, due)
        said = [f"Of {name}: {lower_first(words)}" for words in of_it]
        if len(wrong) < len(entries) and len(wrong) <= TOLD_APART:
            places = ", ".join(name for name, _, _ in wrong)
            yield from (f"{ONLY_SOME} {places} are wrong. {words}" for words in said)
        yield from said
    if len(wrong) < len(entries):
        yield SOME_ENTRIES


def _differ_once(found: Any, due: Any) -> bool:
    """Whether two values that are made alike differ in a single part, at any depth."""
    if isinstance(due, Mapping) and isinstance(found, Mapping) and found.keys() == due.keys():
        pairs = [(found[key], due[key]) for key in due]
    elif isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)) and len(found) == len(due):
        pairs = list(zip(found, due, strict=True))
    else:
        return not isinstance(due, (Mapping, list, tuple))
    wrong = [pair for pair in pairs if not same_value(*pair)]
    return len(wrong) == 1 and _differ_once(*wrong[0])


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


def _parts(found: Any, due: Any) -> Iterator[tuple[Any, Any]]:
    """What differs in two values, down to where they have another form."""
    if isinstance(found, Mapping) and isinstance(due, Mapping) and found.keys() == due.keys() and not is_observed(due):
        for key in (key for key in due if not same_value(found[key], due[key])):
            yield from _parts(found[key], due[key])
        return
    lists = isinstance(found, (list, tuple)) and isinstance(due, (list, tuple)) and len(found) == len(due)
    if not lists:
        yield found, due
        return
    for one, other in zip(found, due, strict=True):
        if not same_value(one, other):
            yield from _parts(one, other)
