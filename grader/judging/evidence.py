"""What the cases in which a plain value is wrong have in common: evidence, where no mistake explains an answer."""

from __future__ import annotations

import itertools
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.described import HELD, is_observed
from grader.arrays.meshes import spelled
from grader.arrays.numbers import same_value
from grader.arrays.words import number
from grader.judging.differing import short
from grader.judging.relations import (
    AS_GIVEN,
    NOTHING_WRONG_IN_IT,
    NUMBER_DUE,
    ONLY_SOME,
    TELLS_LITTLE,
    TRUTH_DUE,
    WORD_DUE,
    relations_of,
)
from grader.judging.single_numbers import TOO_LARGE, TOO_SMALL, is_number, sizes_in
from grader.judging.traits import apart
from grader.judging.wording import lower_first, most_telling

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
ENOUGH_CASES = 3  # in which to answer the same is no chance
FEW_NUMBERS = 3  # that are told one by one
FEW_VALUES = 3  # of an argument, that are told as those of the wrong cases
TOLD_OTHERS = 100  # characters of what the wrong cases behind the first were given
OTHERS_ARE_NOT = "others are not."  # an end
RARE = 4  # not more than one in so many
WHICH_ONES = re.compile(rf"{ONLY_SOME} .*? (is|are) wrong\. ")
TOLD_WHOLE = 40  # characters of an argument that may be told as what cases have in common


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
    common = (
        _no_such_word(tried, wrong)
        or _always_the_one(tried, among)
        or _a_multiple(tried, among)
        or _always_in_it(tried, among)
        or _in_common([one for one in wrong if one.found is not None])
    )
    little = _says_little(common) or _is_of_mixed_kinds(common, tried)
    said = (otherwise() or _without_effect(tried) or _by_the_spec(tried) if little else "") or common
    if not said or (said.endswith(TELLS_LITTLE) and not _is_of_some(said)):
        said = (
            _off_by(wrong, bool(right))
            or _grows_with(wrong)
            or _to_one_side(wrong)
            or _to_both_sides(wrong)
            or _in_one_entry(wrong, bool(right))
            or _of_the_first(said, wrong)
            or said
            or _which_words(wrong)
        )
    return " ".join(filter(None, (said, _place_by_place(wrong), divided(right, wrong, among))))


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


def _of_the_first(said: str, wrong: Sequence[Tried]) -> str:
    """What is so of the first case, where of all of them only this is said: that some of it is right."""
    if not said.endswith(OTHERS_ARE_NOT):
        return ""
    (sizes, *_), first = _that_differ([dict(sizes_in(one.given)) for one in wrong]), wrong[0]
    words = next(relations_of(first.found, first.due, first.given, sizes), "")
    tells = words.startswith(ONLY_SOME) or (words and not words.endswith(TELLS_LITTLE))
    return f"In this case, {lower_first(words)}" if tells else ""


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
    if any(isinstance(value, np.ndarray) for one in tried for value in one.given.values()):
        return ""
    texts = [{name: repr(value) for name, value in one.given.items()} for one in tried]
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    for (one, a), (other, b) in itertools.combinations(zip(tried, texts, strict=True), 2):
        differ = [name for name in a if a[name] != b.get(name)]
        if len(differ) == 1 and one.found is not None and other.found is not None:
            alike = same_value(one.found, other.found), same_value(one.due, other.due)
            pairs.setdefault(differ[0], []).append(alike)
    name = next((name for name, alike in pairs.items() if _is_kept(alike)), "")
    return f"Where cases differ in `{name}` alone, yours is the same. What is to depend on it?" if name else ""


def _is_kept(alike: Sequence[tuple[bool, bool]]) -> bool:
    """Whether in all pairs of cases the same was found, and in enough of them another was due."""
    return all(found for found, _ in alike) and sum(not due for _, due in alike) >= ENOUGH_CASES


def _off_by(wrong: Sequence[Tried], some_right: bool) -> str:
    """By how much numbers are off, where that is always the same; else on which arguments it depends: wherever the
    others differ alone, that stays."""
    if not wrong or not all(is_number(value) for one in wrong for value in (one.found, one.due)):
        return ""
    if any(isinstance(value, np.ndarray) for one in wrong for value in one.given.values()):
        return ""
    texts = [{name: repr(value) for name, value in one.given.items()} for one in wrong]
    vary = [name for name in texts[0] if len({text.get(name) for text in texts}) > 1]
    where = "Where it is wrong, by" if some_right else "By"
    for measure, by in (
        (f"{where} what factor it is off", [one.found / one.due if one.due else np.inf for one in wrong]),
        (f"{where} how much it is off", [one.found - one.due for one in wrong]),
    ):
        if not np.isfinite(by).all():
            continue
        if _stays(by, (), texts):
            return _always_off_by(wrong)
        few = (some for n in range(1, len(vary)) for some in itertools.combinations(vary, n))
        if found := next((some for some in few if _follows(by, some, vary, texts)), ()):
            others = " or ".join(f"`{name}`" for name in vary if name not in found)
            return f"{measure} depends on {' and '.join(f'`{name}`' for name in found)}, and never on {others}."
    return ""


def _grows_with(wrong: Sequence[Tried]) -> str:
    """The arguments with which the factor grows by which numbers are off, wherever one of them alone is another."""
    if not all(is_number(value) and value > 0 for one in wrong for value in (one.found, one.due)):
        return ""
    larger = [one.found > one.due for one in wrong]
    if len(set(larger)) != 1:
        return ""
    off = [max(one.found / one.due, one.due / one.found) for one in wrong]
    grows: dict[str, list[bool]] = {}
    for (one, a), (other, b) in itertools.combinations(zip(wrong, off, strict=True), 2):
        differ = [name for name in one.given if repr(one.given[name]) != repr(other.given.get(name))]
        if len(differ) == 1 and is_number(one.given[differ[0]]) and is_number(other.given[differ[0]]):
            more = other.given[differ[0]] > one.given[differ[0]]
            grows.setdefault(differ[0], []).append(bool(b > a if more else a > b))
    names = [f"`{name}`" for name in wrong[0].given if len(grows.get(name, ())) >= ENOUGH_CASES and all(grows[name])]
    how = "large" if larger[0] else "small"
    return f"Of the wrong ones: the larger {' or '.join(names)}, the more times too {how}." if names else ""


def _always_off_by(wrong: Sequence[Tried]) -> str:
    """By what all numbers are off that are wrong, where several are due and this is always the same."""
    first = wrong[0]
    if len({one.due for one in wrong}) < 2:
        return ""
    if not any(one.found for one in wrong):
        return "Wherever it is wrong, it is 0."
    if _stays([one.found - one.due for one in wrong], (), [{} for _ in wrong]):
        how = "large" if first.found > first.due else "small"
        return f"Wherever it is wrong, it is {number(abs(first.found - first.due))} too {how}."
    return f"Wherever it is wrong, it is {number(first.found / first.due)} times what is due."


def _to_one_side(wrong: Sequence[Tried]) -> str:
    """That all numbers that are wrong in dicts or lists are too large, or all too small, in several cases. Of what may
    be negative, or is no number, that would lead away."""
    made_alike = [
        list(_numbers(one.found, one.due))
        for one in wrong
        if isinstance(one.found, (Mapping, list, tuple)) and _is_counted(one.due)
    ]
    pairs = [pair for each in made_alike for pair in each if pair is None or not same_value(*pair)]
    if len(made_alike) < len(wrong) or min(len(wrong), len(pairs)) < ENOUGH_CASES or None in pairs:
        return ""
    counts = all(isinstance(one.due, Mapping) for one in wrong)
    larger = [found > due for found, due in filter(None, pairs)]
    if all(larger):
        asked = " What is counted that is not due?" if counts else ""
        return f"Wherever a number in it is wrong, it is too large, and never too small.{asked}"
    if not any(larger):
        asked = " What is left out?" if counts else ""
        return f"Wherever a number in it is wrong, it is too small, and never too large.{asked}"
    return ""


def _place_by_place(wrong: Sequence[Tried]) -> str:
    """Of pairs, triples and the like of numbers: which of these are always too large, and which always too small."""
    if len(wrong) < ENOUGH_CASES or not all(_are_few_numbers(value) for one in wrong for value in (one.found, one.due)):
        return ""
    if len({len(value) for one in wrong for value in (one.found, one.due)}) != 1:
        return ""
    told = []
    for place in range(len(wrong[0].due)):
        off = {bool(one.found[place] > one.due[place]) for one in wrong if one.found[place] != one.due[place]}
        if len(off) > 1:
            return ""
        told += [f"number {place} is too {'large' if side else 'small'}" for side in off]
    directions = {words.rpartition(" ")[2] for words in told}
    return f"Wherever it is wrong, {' and '.join(told)}, counted from 0." if len(directions) > 1 else ""


def _are_few_numbers(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and 1 < len(value) <= FEW_NUMBERS and all(map(is_number, value))


def _to_both_sides(wrong: Sequence[Tried]) -> str:
    """Of numbers that are too large in some cases and too small in others, by what these differ."""
    if not all(is_number(value) for one in wrong for value in (one.found, one.due)):
        return ""
    large, small = ([one.given for one in wrong if (one.found > one.due) is side] for side in (True, False))
    if min(len(large), len(small)) < 2 or not (where := apart(small, large)):
        return ""
    return f"Of {len(wrong)} wrong numbers {len(large)} are too large, {where}; the others are too small."


def _in_one_entry(wrong: Sequence[Tried], some_right: bool) -> str:
    """What is so of the one entry by which all wrong values differ from those that are due."""
    names = {_wrong_entry(one.found, one.due) for one in wrong}
    if len(wrong) < 2 or len(names) > 1 or None in names:
        return ""
    (key,) = names
    alone = [Tried(one.found[key], one.due[key], one.given) for one in wrong]
    words = (
        _off_by(alone, some_right) or _grows_with(alone) or _to_both_sides(alone) or _number_to_one_side(alone)
    ) or _of_truths(alone)
    return f"{ONLY_SOME} `{f'[{key}]' if isinstance(key, int) else key}` is wrong. {words}" if words else ""


def _wrong_entry(found: Any, due: Any) -> Any:
    """The place of the only entry by which two values differ that are made alike; None where that is not so."""
    both = found, due
    if all(isinstance(value, (list, tuple)) for value in both) and len(found) == len(due):
        keys = [k for k, pair in enumerate(zip(found, due, strict=True)) if not same_value(*pair)]
    elif all(isinstance(value, Mapping) for value in both) and found.keys() == due.keys():
        keys = [key for key in due if not same_value(found[key], due[key])]
    else:
        return None
    return keys[0] if len(keys) == 1 and len(due) > 1 else None


def _number_to_one_side(wrong: Sequence[Tried]) -> str:
    """That all of these numbers are too large, or all too small."""
    if not all(is_number(value) for one in wrong for value in (one.found, one.due)):
        return ""
    larger = {bool(one.found > one.due) for one in wrong}
    if len(larger) > 1:
        return ""
    how, never = ("large", "small") if larger == {True} else ("small", "large")
    return f"Wherever it is wrong, it is too {how}, and never too {never}."


def _of_truths(wrong: Sequence[Tried]) -> str:
    """That all of these are one truth value, where the other one is due."""
    if not all(isinstance(value, bool) for one in wrong for value in (one.found, one.due)):
        return ""
    found = {one.found for one in wrong}
    if len(found) > 1:
        return ""
    (value,) = found
    return f"Wherever it is wrong, it is {value}, where {not value} is due."


def _is_counted(due: Any) -> bool:
    """Whether it is made of numbers that are not negative, and of nothing else."""
    if isinstance(due, (Mapping, list, tuple)):
        return all(map(_is_counted, due.values() if isinstance(due, Mapping) else due))
    return bool(is_number(due) and due >= 0)


def _numbers(found: Any, due: Any) -> Iterator[tuple[float, float] | None]:
    """The numbers in two values, None where these are not made alike; what does not occur in a dict is 0."""
    if is_number(found) and is_number(due):
        yield found, due
    elif isinstance(found, Mapping) and isinstance(due, Mapping):
        for key in (*due, *(key for key in found if key not in due)):
            yield from _numbers(found.get(key, 0), due.get(key, 0))
    elif isinstance(found, (list, tuple)) and isinstance(due, (list, tuple)) and len(found) == len(due):
        for one, other in zip(found, due, strict=True):
            yield from _numbers(one, other)
    else:
        yield None


def _follows(by: Sequence[float], some: Sequence[str], vary: Sequence[str], texts: Sequence[Mapping[str, str]]) -> bool:
    """Whether what it is off by is always the same where these arguments are, which is not so without one of them,
    and each other argument has differed there, in enough cases."""
    fewer = itertools.combinations(some, len(some) - 1)
    if not _stays(by, some, texts) or any(_stays(by, less, texts) for less in fewer):
        return False
    groups = _groups(some, texts)
    return all(
        sum(len({texts[k][name] for k in ks}) - 1 for ks in groups) >= ENOUGH_CASES - 1
        for name in vary
        if name not in some
    )


def _stays(by: Sequence[float], some: Sequence[str], texts: Sequence[Mapping[str, str]]) -> bool:
    """Whether these numbers are the same wherever some arguments are."""
    return all(np.allclose([by[k] for k in ks], by[ks[0]], rtol=1e-6, atol=0) for ks in _groups(some, texts))


def _groups(some: Sequence[str], texts: Sequence[Mapping[str, str]]) -> Sequence[Sequence[int]]:
    """The numbers of the cases that have these arguments in common."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for k, text in enumerate(texts):
        groups.setdefault(tuple(text.get(name, "") for name in some), []).append(k)
    return list(groups.values())


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
    return words.startswith("In this case") or is_vague(words)


def is_vague(words: str) -> bool:
    """Whether words say nothing of what is wrong, or little."""
    return not words or any(vague in words for vague in VAGUE)


def _in_common(wrong: Sequence[Tried]) -> str:
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
    first = relations[0][0]
    tells = words != "" and not is_vague(_besides_which(words))
    return words if tells or (words and is_vague(_besides_which(first))) else f"In this case, {lower_first(first)}"


def _besides_which(words: str) -> str:
    """What is said besides which entries are wrong; all of it where that is all."""
    return WHICH_ONES.sub("", words) or words


def _is_chance(words: str, wrong: Sequence[Tried]) -> bool:
    """Whether it is said that an answer is an argument, and all of those are one and the same small number, or truth
    value."""
    first = wrong[0].found
    is_plain = isinstance(first, int) and abs(first) <= SMALL and all(same_value(one.found, first) for one in wrong)
    return is_plain and words.endswith(AS_GIVEN)


def _that_differ(sizes: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Of each case the numbers that are others elsewhere: a factor may be one that never changes by chance."""
    return [{name: n for name, n in some.items() if len({other.get(name) for other in sizes}) > 1} for some in sizes]


def divided(right: Sequence[Tried], wrong: Sequence[Tried], among: str = "cases") -> str:
    """An argument, or an answer, by which right cases and wrong ones differ."""
    if not right:
        return ""
    how_many = f"Right in {len(right)} of {len(right) + len(wrong)} {among}"
    features = [
        name for name in _features(right[0].given) if all(name in _features(one.given) for one in (*right, *wrong))
    ]
    for some, others, words in ((wrong, right, "in none of those"), (right, wrong, "only in those")):
        if by := _only_in(some, others, features):
            return f"{how_many}: {words} with {' and '.join(by)}."
    if (well := {_is_error_due(one) for one in right}) != {_is_error_due(one) for one in wrong}:
        if well == {True}:
            return f"{how_many}: only where an error is due."
        if well == {False}:
            return f"{how_many}: in none of those where an error is due."
    if words := _of_two_numbers(right, wrong):
        return f"{how_many}: in none of those where {words}."
    if well == {True, False} and (words := _of_two_numbers([r for r in right if not _is_error_due(r)], wrong)):
        return f"{how_many}: in none of those where {words}, but for those where an error is due."
    good, bad = (_values(one.due for one in some) for some in (right, wrong))
    if good and bad and not good & bad and len(bad) == 1 and _tells(bad, wrong):
        return f"{how_many}: in none of those where {next(iter(bad))} is due."
    if words := _the_only_one(right, wrong):
        return f"{how_many}: the one with {words}."
    for name in features:
        often, seldom = (Counter(_features(one.given)[name] for one in some) for some in (right, wrong))
        if words := _mostly(often, seldom, "in all of those") or _mostly(seldom, often, "in none of those"):
            return f"{how_many}: {words.format(name)}."
        if words := _one_of_several(seldom, often):
            return f"{how_many}: in none of those with {name} = {words}."
    for whose, some, others in (("all of these", right, wrong), ("all others", wrong, right)):
        if with_ := _mostly_in(some, others, features):
            return f"{how_many}, {whose} with {' and '.join(with_)}."
    for some, others, which in ((right, wrong, "only"), (wrong, right, "in none of those")):
        if some and (empty := _where_empty(some, others)):
            return f"{how_many}: {which} where {empty} is due."
    which = apart([one.given for one in wrong], [one.given for one in right]) if wrong else ""
    if which:
        return f"{how_many}: {which}."
    return f"{how_many}.{_seldom(right, wrong, features) or _the_others(wrong)}"


def _seldom(right: Sequence[Tried], wrong: Sequence[Tried], features: Sequence[str]) -> str:
    """What the only wrong case has in common with few of the right ones, where these have few values."""
    if len(wrong) > 1:
        return ""
    told = []
    for name in features:
        value, values = _features(wrong[0].given)[name], Counter(_features(one.given)[name] for one in right)
        if len(values) <= FEW_VALUES and 0 < values[value] <= len(right) / RARE:
            told.append((values[value], f"{name} = {value}"))
    if not told:
        return ""
    alike, words = min(told)
    return f" The wrong one has {words}, as only {alike} of the right ones {'has' if alike == 1 else 'have'}."


def _the_others(wrong: Sequence[Tried]) -> str:
    """What the wrong cases behind the first were given, where that is soon told."""
    given = [value for one in wrong[1:] for value in one.given.values()]
    each = (", ".join(f"{name}={short(value)}" for name, value in one.given.items()) for one in wrong[1:])
    words = "; with ".join(each)
    soon = 0 < len(words) <= TOLD_OTHERS and not any(isinstance(value, np.ndarray) for value in given)
    return f" It is wrong, too, with {words}." if soon else ""


def _where_empty(some: Sequence[Tried], others: Sequence[Tried]) -> str:
    """The empty value that is due in all of some cases, and in none of the others."""
    dues = [one.due for one in some]
    empty = all(isinstance(due, (Mapping, list, tuple)) and not due for due in dues)
    return (
        repr(dues[0]) if empty and all(one.due for one in others if isinstance(one.due, (Mapping, list, tuple))) else ""
    )


def _is_error_due(one: Tried) -> bool:
    return isinstance(one.due, Exception)


def _of_two_numbers(right: Sequence[Tried], wrong: Sequence[Tried]) -> str:
    """How two whole numbers that were given stand to one another in all wrong cases, and in none of the right ones."""
    if min(len(right), len(wrong)) < 2:
        return ""
    cases = (*right, *wrong)
    names = [
        name for name in cases[0].given if all(type(one.given.get(name)) is int and one.given[name] for one in cases)
    ]
    for one, other in itertools.permutations(names, 2):
        for words, holds in (("is larger than", operator.gt), ("does not divide", lambda a, b: b % a != 0)):
            here = all(holds(case.given[one], case.given[other]) for case in wrong)
            if here and not any(holds(case.given[one], case.given[other]) for case in right):
                return f"`{one}` {words} `{other}`"
    return ""


def _only_in(some: Sequence[Tried], others: Sequence[Tried], features: Sequence[str]) -> list[str]:
    """Every feature that has one value in some cases, and never this one in the others."""
    found = []
    for name in features:
        here, there = ({_features(one.given)[name] for one in cases} for cases in (some, others))
        if len(here) == 1 and not here & there and _tells(here, some):
            found.append(f"{name} = {next(iter(here))}")
    return found


def _mostly_in(some: Sequence[Tried], others: Sequence[Tried], features: Sequence[str]) -> list[str]:
    """Every feature that has one value in some cases, several of them, and seldom this one in the others."""
    found = []
    for name in features:
        here, there = (Counter(_features(one.given)[name] for one in cases) for cases in (some, others))
        value, count = here.most_common(1)[0]
        if 1 < count == here.total() and there[value] < there.total() / 2:
            found.append(f"{name} = {value}")
    return found


def _mostly(some: Counter[str], others: Counter[str], whose: str) -> str:
    """A value that most of some cases have, at least two, and none of the others."""
    value, count = some.most_common(1)[0]
    most = count > 1 and count > some.total() / 2 and value not in others
    return f"{whose} with {{}} = {value.replace('{', '{{').replace('}', '}}')}" if most else ""


def _one_of_several(some: Counter[str], others: Counter[str]) -> str:
    """The few values that cases have, each of them at least two, where the others have none of these."""
    apart = len(some) <= FEW_VALUES and min(some.values()) > 1 and not some.keys() & others.keys()
    return " or ".join(some) if apart else ""


def _the_only_one(right: Sequence[Tried], wrong: Sequence[Tried]) -> str:
    """What the only right case was given besides arrays, where no wrong case was given the same."""
    if len(right) > 1:
        return ""
    given = right[0].given
    plain = _features(given)
    whole = len(plain) == sum(not isinstance(value, np.ndarray) for value in given.values())
    alone = whole and plain and all(_features(one.given) != plain for one in wrong)
    return ", ".join(" = ".join(one) for one in plain.items()) if alone else ""


def _features(given: Mapping[str, Any]) -> dict[str, str]:
    """What cases may have in common, as text: plain arguments, short ones that are made of such, lengths of lists."""
    found = {}
    for name, value in given.items():
        if isinstance(value, list):
            found[f"the number of `{name}`"] = str(len(value))
        elif not isinstance(value, np.ndarray):
            text = spelled(value) if isinstance(value, P) else repr(value)
            found |= {f"`{name}`": text} if len(text) <= TOLD_WHOLE else {}
    return found


def _tells(value: set[str], cases: Sequence[Tried]) -> bool:
    """Whether it is no chance that these cases have a value in common: a single one has its own numbers."""
    return len(cases) > 1 or next(iter(value))[0] in "'TF"


def _values(values: Iterator[Any]) -> set[str]:
    """Plain values as text, none where one of them is no number, truth value or word."""
    listed = list(values)
    return {repr(v) for v in listed} if all(isinstance(v, (bool, int, float, str)) for v in listed) else set()
