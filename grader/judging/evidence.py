"""What the cases in which a plain value is wrong have in common: evidence, where no mistake explains an answer."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.described import HELD, OnDevices, is_observed
from grader.arrays.numbers import same_value
from grader.arrays.words import number
from grader.judging.relations import (
    AS_GIVEN,
    NOTHING_WRONG_IN_IT,
    NUMBER_DUE,
    ONLY_SOME,
    RENAMED,
    TRUTH_DUE,
    WORD_DUE,
    relations_of,
)
from grader.judging.right_cases import FEW_VALUES, where_right
from grader.judging.single_numbers import TIMES_DUE, TOO_LARGE, TOO_SMALL, is_number, sizes_in
from grader.judging.tried import ENOUGH_CASES, Tried
from grader.judging.wording import TELLS_LITTLE, lower_first, most_telling
from grader.judging.wrong_numbers import place_by_place, what_numbers_are_off

VAGUE = (
    "too large.",
    "too small.",
    "others are not.",
    "A dict is due.",
    "It is empty.",
    NOTHING_WRONG_IN_IT,
    "wrong.",
    "among those that are due.",
    "not in the groups in which it should be.",
    "entries than are due.",
    "shape is another than is due.",
)
SMALL = 20  # up to here a number is a count: two are the same by chance
IN_THIS = {"cases": "In this case", "processes": "In this process"}  # the first that is wrong
OTHERS_ARE_NOT = "others are not."  # an end
IS_ARGUMENT = re.compile(rf"`(\w+)`{re.escape(AS_GIVEN)}$")
WHICH_ONES = re.compile(rf"{ONLY_SOME} .*? (is|are) wrong\. ")


def evidence(tried: Sequence[Tried], otherwise: Callable[[], str] = str, among: str = "cases") -> str:
    """What all wrong cases have in common, and the right ones have not. "" where nothing is seen.

    `otherwise` finds words where what they have in common says little; `among` says what is tried, if not cases.
    """
    wrong, right = [one for one in tried if not one.right], [one for one in tried if one.right]
    common = (
        _no_such_word(tried, wrong)
        or _always_the_one(tried, among)
        or _a_multiple(tried, among)
        or _always_in_it(tried, among)
        or _in_common([one for one in wrong if one.found is not None], among)
    )
    little = _says_little(common) or _is_of_mixed_kinds(common, tried)
    said = (otherwise() or _without_effect(tried) or _by_the_spec(tried) if little else "") or common
    if not said or (said.endswith(TELLS_LITTLE) and not _is_of_some(said)):
        said = (
            what_numbers_are_off(wrong, bool(right)) or _of_the_first(said, wrong, among) or said or _which_words(wrong)
        )
    return " ".join(filter(None, (said, place_by_place(wrong), where_right(right, wrong, among))))


def _is_of_mixed_kinds(words: str, tried: Sequence[Tried]) -> bool:
    """Whether it is said that something of another kind is due, which is due in other cases: it was no slip."""
    kinds = {str if isinstance(one.due, str) else bool if isinstance(one.due, bool) else float for one in tried}
    return len(kinds) > 1 and words.startswith((NUMBER_DUE, TRUTH_DUE, WORD_DUE))


def _is_of_some(said: str) -> bool:
    """Whether it is said which entries are wrong, and to which side."""
    return said.startswith(ONLY_SOME) and said.endswith((TOO_LARGE, TOO_SMALL))


def _by_the_spec(tried: Sequence[Tried]) -> str:
    """For which entries of a spec the entries of a list are wrong, one for each dimension, and for which never."""
    name = next((name for name, value in tried[0].given.items() if isinstance(value, P)), "")
    kinds: dict[bool, set[str]] = {True: set(), False: set()}
    for one in tried if name else ():
        spec = tuple(one.given[name])
        if not all(isinstance(side, (list, tuple)) for side in (one.found, one.due)):
            return ""
        if not len(spec) <= len(one.found) == len(one.due):
            return ""
        entries = (*spec, *(None,) * (len(one.due) - len(spec)))
        for entry, found, due in zip(entries, one.found, one.due, strict=True):
            kinds[same_value(found, due)].add(_how_many_axes(entry))
    if len(kinds[False]) != 1 or not kinds[True] or kinds[False] & kinds[True]:
        return ""
    return f"Wrong are the numbers of the dimensions for which `{name}` names {kinds[False].pop()}, and no others."


def _how_many_axes(entry: Any) -> str:
    """How many axes an entry of a spec names, in words."""
    count = 0 if entry is None else 1 if isinstance(entry, str) else len(entry)
    return ("no axis", "one axis")[count] if count < 2 else "several axes"


def _which_words(wrong: Sequence[Tried]) -> str:
    """Of words: which one is given wherever it is wrong, or which one with each value of an argument."""
    if len(wrong) < ENOUGH_CASES or not all(isinstance(value, str) for one in wrong for value in (one.found, one.due)):
        return ""
    if _all_the_same([one.found for one in wrong]):
        return f"Wherever it is wrong, yours is {wrong[0].found!r}."
    for name in wrong[0].given:
        by_value: dict[str, list[str]] = {}
        for one in wrong:
            by_value.setdefault(repr(one.given.get(name)), []).append(one.found)
        if 1 < len(by_value) <= FEW_VALUES and all(len({*found}) == 1 for found in by_value.values()):
            each = ", ".join(f"{found[0]!r} with `{name}` = {value}" for value, found in sorted(by_value.items()))
            return f"Wherever it is wrong, yours is {each}."
    return ""


def _of_the_first(said: str, wrong: Sequence[Tried], among: str) -> str:
    """What is so of the first case, where of all of them only this is said: that some of it is right."""
    if not said.endswith(OTHERS_ARE_NOT):
        return ""
    (sizes, *_), first = _that_differ([dict(sizes_in(one.given)) for one in wrong]), wrong[0]
    words = next(_in_the_first(list(relations_of(first.found, first.due, first.given, sizes)), wrong), "")
    tells = words.startswith(ONLY_SOME) or (words and not words.endswith(TELLS_LITTLE))
    return f"{IN_THIS[among]}, {lower_first(words)}" if tells else ""


def _always_the_one(tried: Sequence[Tried], among: str) -> str:
    """One and the same answer in several cases in which others are due."""
    found, due = (
        [_place(value) for value in side] for side in zip(*((one.found, one.due) for one in tried), strict=True)
    )
    on_devices = [is_observed(value) for value in (tried[0].found, tried[0].due)]
    if len(tried) < ENOUGH_CASES or on_devices[0] != on_devices[1]:
        return ""
    if not _all_the_same(found) or _all_the_same(due) or all(_is_part(one.found, one.due) for one in tried):
        return ""
    return f"{'It is on the same devices' if on_devices[0] else 'It is the same'} in all {among}, whatever was given."


def _without_effect(tried: Sequence[Tried]) -> str:
    """An argument on which nothing depends: wherever cases differ in it alone, the answer is the same, and should not
    always be."""
    if any(isinstance(value, (np.ndarray, OnDevices)) for one in tried for value in one.given.values()):
        return ""
    texts = [{name: repr(value) for name, value in one.given.items()} for one in tried]
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    for (one, a), (other, b) in itertools.combinations(zip(tried, texts, strict=True), 2):
        differ = [name for name in a if a[name] != b.get(name)]
        if len(differ) == 1:
            returned = one.found is not None and other.found is not None
            alike = returned and same_value(one.found, other.found), same_value(one.due, other.due)
            pairs.setdefault(differ[0], []).append(alike)
    name = next((name for name, alike in pairs.items() if _is_kept(alike)), "")
    return f"Where cases differ in `{name}` alone, yours is the same. What is to depend on it?" if name else ""


def _is_kept(alike: Sequence[tuple[bool, bool]]) -> bool:
    """Whether in all pairs of cases the same was found, and in enough of them another was due."""
    return all(found for found, _ in alike) and sum(not due for _, due in alike) >= ENOUGH_CASES


def _a_multiple(tried: Sequence[Tried], among: str) -> str:
    """One and the same number times one argument, whatever the others are."""
    if len(tried) < ENOUGH_CASES or not all(is_number(value) for one in tried for value in (one.found, one.due)):
        return ""
    plain = [name for name in tried[0].given if all(is_number(one.given.get(name)) for one in tried)]
    vary = [name for name in plain if len({one.given[name] for one in tried}) > 1]
    for name in vary if len(vary) > 1 else []:
        if any(not one.given[name] for one in tried):
            continue
        times, due = ([getattr(one, side) / one.given[name] for one in tried] for side in ("found", "due"))
        if times[0] not in (0, 1) and np.ptp(times) == 0 and np.ptp(due):
            others = " and ".join(f"`{other}`" for other in vary if other != name)
            return f"It is {number(times[0])} × `{name}` in all {among}, whatever stands for {others}."
    return ""


def _always_in_it(tried: Sequence[Tried], among: str) -> str:
    """An entry of a dict that is the same in several cases, in some of which another is due."""
    pairs = [(one.found, one.due) for one in tried]
    if len(tried) < ENOUGH_CASES or not all(isinstance(value, Mapping) for pair in pairs for value in pair):
        return ""
    for key in (key for key in pairs[0][1] if all(key in value for pair in pairs for value in pair)):
        found, due = ([pair[side][key] for pair in pairs] for side in (0, 1))
        if isinstance(found[0], (bool, int, float, str)) and _all_the_same(found) and not _all_the_same(due):
            return f"Its `{key}` is {found[0]!r} in all {among}, whatever was given."
    return ""


def _is_part(found: Any, due: Any) -> bool:
    """Whether a dict lacks nothing but keys."""
    both = isinstance(found, Mapping) and isinstance(due, Mapping) and len(found) > 0
    return both and all(key in due and same_value(found[key], due[key]) for key in found)


def _all_the_same(values: Sequence[Any]) -> bool:
    return all(same_value(one, values[0]) for one in values[1:])


def _place(value: Any) -> Any:
    """Of an array that is on devices these; of anything else itself."""
    return list(value[HELD]) if is_observed(value) else value


def _no_such_word(tried: Sequence[Tried], wrong: Sequence[Tried]) -> str:
    """Which words are due, where one that is not among them was given: where to list them gives nothing away."""
    words = {one.due if isinstance(one.due, str) else None for one in tried}
    if not wrong or None in words or len(words) > len(tried) / 2:
        return ""
    if isinstance(wrong[0].found, str) and wrong[0].found in words:
        return ""
    return f"The answer is one of these words: {', '.join(sorted(map(repr, words)))}."


def _says_little(words: str) -> bool:
    return words.startswith(tuple(IN_THIS.values())) or is_vague(words)


def is_vague(words: str) -> bool:
    """Whether words say nothing of what is wrong, or little."""
    return not words or any(vague in words for vague in VAGUE)


def _in_common(wrong: Sequence[Tried], among: str) -> str:
    """What is so in all wrong cases; of something that is no number, else what is so in the first of them."""
    sizes = _that_differ([dict(sizes_in(one.given)) for one in wrong])
    relations = [
        [words for words in relations_of(one.found, one.due, one.given, told) if not _is_chance(words, wrong)]
        for one, told in zip(wrong, sizes, strict=True)
    ]
    words = most_telling(relations)
    numbers = wrong != [] and is_number(wrong[0].found) and is_number(wrong[0].due)
    if not relations or not relations[0] or numbers or not is_vague(words):
        return words
    here = [one for one in relations[0] if one != RENAMED or not _are_small(wrong[0].found)]
    first = next(_in_the_first(here, wrong), "")
    tells = words != "" and not is_vague(_besides_which(words))
    if tells or not first or (words and is_vague(_besides_which(first))):
        return words
    return f"{IN_THIS[among]}, {lower_first(first)}"


def _besides_which(words: str) -> str:
    """What is said besides which entries are wrong; all of it where that is all."""
    return WHICH_ONES.sub("", words) or words


def _is_chance(words: str, wrong: Sequence[Tried]) -> bool:
    """Whether it is said that an answer, or an entry of it, is an argument, and all of those are one and the same small
    number, or truth value; or how many times what is due, where that is a single 1: so is every number."""
    if words.endswith(TIMES_DUE) and len(wrong) == 1 and is_number(wrong[0].due) and wrong[0].due == 1:
        return True
    odd = [entry for one in wrong for entry in _wrong_entries(one)]
    first: Any = odd[0] if odd else None
    return _is_small(first) and words.endswith(AS_GIVEN) and all(same_value(entry, first) for entry in odd)


def _wrong_entries(one: Tried) -> list[Any]:
    """The entries of a list that are wrong; of anything else the whole."""
    if not all(isinstance(side, (list, tuple)) for side in (one.found, one.due)) or len(one.found) != len(one.due):
        return [one.found]
    return [found for found, due in zip(one.found, one.due, strict=True) if not same_value(found, due)]


def _in_the_first(relations: Sequence[str], wrong: Sequence[Tried]) -> Iterator[str]:
    """What is so of the first of several wrong cases, without that it is an argument which is a small number, or some
    number of times one, or off by one: in one case that is chance."""
    first = wrong[0].given
    sizes = [name for name, n in sizes_in(first) if _is_small(n)]
    for words in relations:
        name = IS_ARGUMENT.search(words)
        of_a_number = _is_of_a_number(words, first) or any(size in words for size in sizes)
        chance = _is_small(first.get(name[1])) if name else of_a_number
        if len(wrong) == 1 or not chance:
            yield words


def _is_of_a_number(words: str, given: Mapping[str, Any]) -> bool:
    """Whether an argument that is a number is named."""
    return any(is_number(given.get(name)) for name in re.findall(r"`(\w+)`", words))


def _is_small(value: Any) -> bool:
    """Whether it is a truth value, or a number such as two may be by chance."""
    return isinstance(value, bool) or (is_number(value) and abs(value) <= SMALL and float(value).is_integer())


def _are_small(value: Any) -> bool:
    """Whether these are small numbers under keys: two of these are alike under other keys by chance."""
    return isinstance(value, Mapping) and all(map(_is_small, value.values()))


def _that_differ(sizes: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Of each case the numbers that are others elsewhere: a factor may be one that never changes by chance."""
    return [{name: n for name, n in some.items() if len({other.get(name) for other in sizes}) > 1} for some in sizes]
