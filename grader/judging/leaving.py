"""What a function leaves out of a list: the entries, or the end of it, without which what is due is what it returns."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grader.arrays.described import HELD, built, is_observed
from grader.exercises.answers import Answer, Value
from grader.exercises.case import Case
from grader.exercises.forms import FunctionExercise
from grader.exercises.plain import plain
from grader.judging.differing import short
from grader.judging.single_numbers import is_number
from grader.judging.values import same_answer

MOST_KINDS = 32  # of entries, that are tried
TOLD_ENTRIES = 3  # of those that are passed over
SECONDS_FOR_ENDS = 0.5  # of computing, after which no other end is tried: somebody waits
PARTS_LEFT: Mapping[str, slice] = {
    "without the last of `{}`": slice(None, -1),
    "without the first of `{}`": slice(1, None),
    "for the first of `{}` alone": slice(1),
    "for the last of `{}` alone": slice(-1, None),
    "for `{}` in the opposite order": slice(None, None, -1),
}


def passed_over(exercise: FunctionExercise, cases: Sequence[Case], answers: Sequence[Answer], failing: int) -> str:
    """Which entries of an argument a function leaves out of account, in every case; "" where there are none.

    Where what is due is a dict of numbers: there it is seen which entries may be left out, one by one.
    """
    tried = [(case, answer) for case, answer in zip(cases, answers, strict=True) if isinstance(answer, Value)]
    if len(tried) < len(cases):
        return ""
    for name, entries in cases[failing].arguments.items():
        kinds = list(dict.fromkeys(one for case in cases for one in _listed(case.arguments.get(name))))
        if not isinstance(entries, (list, tuple)) or not 1 < len(kinds) <= MOST_KINDS:
            continue
        left = [one for one in kinds if all(_may_lack(exercise, *pair, name, one) for pair in tried)]
        for one in list(left):  # those that need not be left out are put back
            fewer = [other for other in left if other != one]
            if _away(exercise, tried, name, fewer) <= _away(exercise, tried, name, left):
                left = fewer
        if left and all(_comes_to(exercise, *pair, name, left) for pair in tried):
            told = ", ".join(short(one) for one in left[:TOLD_ENTRIES])
            more = f" and {len(left) - TOLD_ENTRIES} more" if len(left) > TOLD_ENTRIES else ""
            return (
                f"In every case yours is what is due without these entries of `{name}`: {told}{more}. By what are they "
                "passed over?"
            )
    return ""


def cut_short(exercise: FunctionExercise, cases: Sequence[Case], answers: Sequence[Answer], failing: int) -> str:
    """What is left out of a list that was given, in every case, wherever its devices then are; "" where nothing is."""
    tried = [(case, answer.value) for case, answer in zip(cases, answers, strict=True) if isinstance(answer, Value)]
    begun = time.process_time()
    if len(tried) < max(2, len(cases)):
        return ""
    for name, entries in cases[failing].arguments.items():
        if not isinstance(entries, (list, tuple)) or any(len(case.arguments[name]) < 2 for case, _ in tried):
            continue
        for words, end in PARTS_LEFT.items():
            if time.process_time() - begun > SECONDS_FOR_ENDS:
                return ""
            if all(_numbers(value) == _numbers(_due_of(exercise, case, name, end)) for case, value in tried):
                return (
                    f"In every case yours has the numbers that are due {words.format(name)}. How do you go through it?"
                )
    return ""


def _due_of(exercise: FunctionExercise, case: Case, name: str, end: slice) -> Any:
    given = copy.deepcopy(dict(case.arguments))
    given[name] = given[name][end]
    try:
        return plain(exercise.reference(**built(given)))
    except Exception:  # a reference may ask for more
        return None


def _numbers(value: Any) -> Any:
    """The numbers of a value, of arrays on devices by their parts, wherever these are; None where there are none."""
    if is_observed(value):
        return {part: block.tolist() for parts in value[HELD].values() for part, block in parts.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_numbers(one) for one in value]
    return value if isinstance(value, (int, float, str)) else object()  # which is like no other


def _listed(entries: Any) -> Sequence[Any]:
    """The entries of a list of words or numbers."""
    plain_ones = isinstance(entries, (list, tuple)) and all(isinstance(one, (str, int)) for one in entries)
    return entries if plain_ones else ()


def _may_lack(exercise: FunctionExercise, case: Case, answer: Value, name: str, one: Any) -> bool:
    """Whether each number of an answer is between what is due without an entry and none: then it may be left out."""
    if one not in case.arguments[name]:
        return True
    due, found = _due_without(exercise, case, name, [one]), answer.value
    if not isinstance(due, Mapping) or not isinstance(found, Mapping) or not {*found} <= {*due}:
        return False
    return all(is_number(n) for n in (*due.values(), *found.values())) and all(
        found.get(key, 0) <= due[key] for key in due
    )


def _away(exercise: FunctionExercise, tried: Sequence[tuple[Case, Value]], name: str, left: Sequence[Any]) -> float:
    """How far answers are, all together, from what is due without these entries."""
    pairs = ((_due_without(exercise, case, name, left) or {}, answer.value) for case, answer in tried)
    return sum(abs(found.get(key, 0) - due.get(key, 0)) for due, found in pairs for key in {**due, **found})


def _comes_to(exercise: FunctionExercise, case: Case, answer: Value, name: str, left: Sequence[Any]) -> bool:
    due = _due_without(exercise, case, name, left)
    return due is not None and same_answer(exercise, case, answer.value, due)


def _due_without(exercise: FunctionExercise, case: Case, name: str, left: Sequence[Any]) -> Any:
    given = copy.deepcopy(dict(case.arguments))
    given[name] = type(given[name])(one for one in given[name] if one not in left)
    try:
        return plain(exercise.reference(**built(given)))
    except Exception:  # a reference may ask for what is left out
        return None
