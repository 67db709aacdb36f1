"""An argument, or an answer that is due, by which the cases in which a value is right differ from the others."""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import spelled
from grader.judging.differing import short
from grader.judging.traits import BY_CHANCE, apart
from grader.judging.tried import Tried

FEW_VALUES = 3  # of an argument, that are told as those of the wrong cases
TOLD_OTHERS = 100  # characters of what the wrong cases behind the first were given
FEW_APART = 2  # arguments by which two cases differ that are like one another
RARE = 4  # not more than one in so many
TOLD_WHOLE = 40  # characters of an argument that may be told as what cases have in common


def where_right(right: Sequence[Tried], wrong: Sequence[Tried], among: str = "cases") -> str:
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
    raises_well = well == {True, False} and not any(map(_is_error_due, wrong))
    if raises_well and (words := _of_two_numbers([r for r in right if not _is_error_due(r)], wrong)):
        return f"{how_many}: in none of those where {words}, but for those where an error is due."
    good, bad = (_values(one.due for one in some) for some in (right, wrong))
    if good and bad and not good & bad and len(bad) == 1 and _tells(bad, wrong):
        return f"{how_many}: in none of those where {next(iter(bad))} is due."
    if words := _the_only_one(right, wrong):
        return f"{how_many}: the one with {words}."
    for name in features:
        often, seldom = (Counter(_features(one.given)[name] for one in some) for some in (right, wrong))
        if value := _mostly(often, seldom):
            return f"{how_many}, among them all with {name} = {value}."
        if value := _mostly(seldom, often):
            return f"{how_many}: in none of those with {name} = {value}."
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
    return f"{how_many}.{_seldom(right, wrong, features) or _the_others(wrong) or _most_alike(right, wrong)}"


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


def _most_alike(right: Sequence[Tried], wrong: Sequence[Tried]) -> str:
    """What the right case was given that is most like the first wrong one, where that is soon told."""
    if not wrong or not wrong[0].given:
        return ""
    first = {name: short(value) for name, value in wrong[0].given.items()}
    told = [
        [f"{name}={short(value)}" for name, value in one.given.items() if short(value) != first.get(name)]
        for one in right
        if not _is_error_due(one) and not any(isinstance(value, np.ndarray) for value in one.given.values())
    ]
    soon = [words for words in told if 0 < len(words) <= FEW_APART and sum(map(len, words)) <= TOLD_OTHERS]
    if not soon:
        return ""
    words = min(soon, key=lambda words: (len(words), -_likeness(words, first)))
    besides = "and the rest as here, " if len(words) < len(first) else ""
    return f" With {', '.join(words)} {besides}it is right. In what do the two differ?"


def _likeness(words: Sequence[str], first: Mapping[str, str]) -> float:
    """How like these arguments are to those of a case, in their text."""
    return SequenceMatcher(None, ", ".join(words), ", ".join(f"{n}={v}" for n, v in first.items())).ratio()


def _where_empty(some: Sequence[Tried], others: Sequence[Tried]) -> str:
    """The empty value that is due in all of some cases, and in none of the others."""
    dues = [one.due for one in some]
    empty = all(isinstance(due, (Mapping, list, tuple)) and repr(due) == repr(dues[0]) and not due for due in dues)
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
        seldom = 1 < count == here.total() and there[value] < there.total() / 2
        if seldom and not _is_chance(value, count, count + there[value], here.total() + there.total()):
            found.append(f"{name} = {value}")
    return found


def _mostly(some: Counter[str], others: Counter[str]) -> str:
    """A value that most of some cases have, at least two, and none of the others."""
    value, count = some.most_common(1)[0]
    if not (count > 1 and count > some.total() / 2 and value not in others):
        return ""
    return "" if _is_chance(value, count, some.total(), some.total() + others.total()) else value


def _is_chance(value: str, count: int, among: int, cases: int) -> bool:
    """Whether so many cases may well all be among these, of all cases, without a reason. For words, for truth values
    and for 0 and 1 cases are made on purpose; other numbers are any."""
    if value[0] in "'TFN" or value in ("0", "1"):
        return False
    return math.comb(among, count) > BY_CHANCE * math.comb(cases, count)


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
