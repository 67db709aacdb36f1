"""By how much numbers are off, to which side, and on which arguments that depends."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grader.arrays.numbers import same_value
from grader.arrays.words import number
from grader.judging.relations import ONLY_SOME
from grader.judging.single_numbers import is_number
from grader.judging.traits import EXACTLY, apart
from grader.judging.tried import ENOUGH_CASES, Tried

SAME_OFF = 1e-6  # relative: how near two numbers are that are off by the same
FEW_NUMBERS = 3  # that are told one by one


def _may_be_compared(value: Any) -> bool:
    """Whether it is one, and no nan, which is neither too large nor too small."""
    return is_number(value) and value == value


def what_numbers_are_off(wrong: Sequence[Tried], some_right: bool) -> str:
    """By how much, or to which side, the numbers of all wrong cases are off: those that were returned themselves, or
    those in them. "" where nothing is seen; `some_right` says that there are right cases beside them."""
    return (
        _off_by(wrong, some_right)
        or _grows_with(wrong)
        or _to_one_side(wrong)
        or _to_both_sides(wrong)
        or _in_one_entry(wrong, some_right)
    )


def _off_by(wrong: Sequence[Tried], some_right: bool) -> str:
    """By how much numbers are off, where that is always the same; else on which arguments it depends: wherever the
    others differ alone, that stays."""
    if not wrong or not all(_may_be_compared(value) for one in wrong for value in (one.found, one.due)):
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
    if not all(_may_be_compared(value) and value > 0 for one in wrong for value in (one.found, one.due)):
        return ""
    larger = [one.found > one.due for one in wrong]
    if len(set(larger)) != 1:
        return ""
    off = [max(one.found / one.due, one.due / one.found) for one in wrong]
    grows: dict[str, list[bool]] = {}
    for (one, a), (other, b) in itertools.combinations(zip(wrong, off, strict=True), 2):
        differ = [name for name in one.given if repr(one.given[name]) != repr(other.given.get(name))]
        if len(differ) == 1 and _may_be_compared(one.given[differ[0]]) and _may_be_compared(other.given[differ[0]]):
            less, more = (a, b) if other.given[differ[0]] > one.given[differ[0]] else (b, a)
            grows.setdefault(differ[0], []).append(bool(more > less * (1 + SAME_OFF)))
    names = [name for name in wrong[0].given if len(grows.get(name, ())) >= ENOUGH_CASES and all(grows[name])]
    if not names:
        return ""
    how, which = f"the more times too {'large' if larger[0] else 'small'}", " or ".join(f"`{name}`" for name in names)
    if _always_grows([[one.given[name] for name in names] for one in wrong], off):
        return f"Of the wrong ones: the larger {which}, {how}."
    return f"Of wrong ones that differ in {which} alone: the larger that is, {how}."


def _always_grows(given: Sequence[Sequence[float]], off: Sequence[float]) -> bool:
    """Whether it is off by more wherever one of these numbers is larger and none is smaller, whatever else differs."""
    both = itertools.permutations(zip(given, off, strict=True), 2)
    return all(b > a for (less, a), (more, b) in both if less != more and all(map(operator.le, less, more)))


def _always_off_by(wrong: Sequence[Tried]) -> str:
    """By what all numbers are off that are wrong, where several are due and this is always the same."""
    first = wrong[0]
    if len({one.due for one in wrong}) < 2:
        return ""
    if not any(one.found for one in wrong):
        return "Wherever it is wrong, it is 0."
    if _stays([one.found - one.due for one in wrong], (), [{} for _ in wrong]):
        how = "large" if first.found > first.due else "small"
        much = abs(first.found - first.due)
        return f"Wherever it is wrong, it is {number(much, EXACTLY if much == round(much) else 6)} too {how}."
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


def place_by_place(wrong: Sequence[Tried]) -> str:
    """Of pairs, triples and the like of numbers: which of these are always too large, and which always too small."""
    if len(wrong) < ENOUGH_CASES or not all(_are_few_numbers(value) for one in wrong for value in (one.found, one.due)):
        return ""
    if len({len(value) for one in wrong for value in (one.found, one.due)}) != 1:
        return ""
    sides: dict[int, str] = {}
    always = True
    for place in range(len(wrong[0].due)):
        pairs = [(one.found[place], one.due[place]) for one in wrong]
        off = {bool(found > due) for found, due in pairs if not same_value(found, due)}
        if len(off) > 1:
            return ""
        if off:
            sides[place] = f"too {'large' if off == {True} else 'small'}"
            always = always and not any(same_value(*pair) for pair in pairs)
    if len({*sides.values()}) < 2:
        return ""
    if always:
        each = " and ".join(f"number {place} is {how}" for place, how in sides.items())
        return f"Wherever it is wrong, {each}, counted from 0."
    each = "; ".join(f"where number {place} is wrong, it is {how}" for place, how in sides.items())
    return f"{each[:1].upper()}{each[1:]} (counted from 0)."


def _are_few_numbers(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and 1 < len(value) <= FEW_NUMBERS and all(map(_may_be_compared, value))


def _to_both_sides(wrong: Sequence[Tried]) -> str:
    """Of numbers that are too large in some cases and too small in others, by what these differ."""
    if not all(_may_be_compared(value) for one in wrong for value in (one.found, one.due)):
        return ""
    large, small = ([one.given for one in wrong if (one.found > one.due) is side] for side in (True, False))
    if min(len(large), len(small)) < 2 or not (where := apart(small, large)):
        return ""
    return f"Of {len(wrong)} wrong numbers {len(large)} are too large: {where}; the others are too small."


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
    if not all(_may_be_compared(value) for one in wrong for value in (one.found, one.due)):
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
    return bool(_may_be_compared(due) and due >= 0)


def _numbers(found: Any, due: Any) -> Iterator[tuple[float, float] | None]:
    """The numbers in two values, None where these are not made alike; what does not occur in a dict is 0."""
    if _may_be_compared(found) and _may_be_compared(due):
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
    return all(np.allclose([by[k] for k in ks], by[ks[0]], rtol=SAME_OFF, atol=0) for ks in _groups(some, texts))


def _groups(some: Sequence[str], texts: Sequence[Mapping[str, str]]) -> Sequence[Sequence[int]]:
    """The numbers of the cases that have these arguments in common."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for k, text in enumerate(texts):
        groups.setdefault(tuple(text.get(name, "") for name in some), []).append(k)
    return list(groups.values())
