"""Functions: called case by case; what they return or raise is compared with what the reference does."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from grader.exercises.answers import Answer, Problem, Value
from grader.exercises.case import Case
from grader.exercises.errors import stopped
from grader.exercises.forms import FunctionExercise
from grader.findings.finding import Finding
from grader.findings.problems import Refusal
from grader.findings.values import BarredWay, NotPlain, ShouldRaise, WrongCount
from grader.judging.differing import first_difference, short, shown_whole, wrong_value
from grader.judging.judgment import Check, Judgment
from grader.judging.miss import Miss
from grader.judging.values import expected_value, same_answer


class FunctionJudgment(Judgment):
    """The value that is returned; then, if a way is barred, that none of its arrays came by it.

    The way is told. It earns nothing unless it counts (`way_counts`), and then half of the points: only the process in
    which the function ran can see it, and there the function may change what is seen.
    """

    exercise: FunctionExercise

    @property
    def checks(self) -> Sequence[Check]:
        way = self.exercise.points / 2 if self.exercise.way_counts else 0.0
        values = Check("values", self.exercise.points - way, self._value)
        return [values, Check("way", way, self._way)] if self.exercise.barred else [values]

    def _value(self, k: int) -> Miss | None:
        wrong = wrong_result(self.exercise, self.cases[k], self.answers[k])
        return Miss((wrong,)) if wrong else None

    def _way(self, k: int) -> Miss | None:
        answer = self.answers[k]
        if not isinstance(answer, Value) or not answer.moved:
            return None
        return Miss((BarredWay(self.exercise.barred, answer.moved),))  # type: ignore[arg-type] # one of the ways


def wrong_result(exercise: FunctionExercise, case: Case, answer: Answer) -> Finding | None:
    """What is wrong with the answer to a case, if anything is."""
    expected = expected_value(exercise, case)
    if isinstance(expected, ValueError):
        return _should_raise(answer, expected)
    if isinstance(answer, Problem):
        return stopped(answer)
    if not isinstance(answer, Value):
        return NotPlain()
    if same_answer(exercise, case, answer.value, expected):
        return None
    return _difference(exercise, case, answer.value, expected)


def _should_raise(answer: Answer, expected: ValueError) -> Finding | None:
    if isinstance(answer, Value):
        return ShouldRaise(str(expected), returned=short(answer.value))
    if not isinstance(answer, Problem):
        return NotPlain()
    if answer.error in ("ValueError", type(expected).__name__):
        return None  # JAX's own error has its own name in some versions
    if not answer.error and answer.refusal != Refusal("returns nothing"):
        return stopped(answer)
    return ShouldRaise(str(expected), raised=answer.error or None)


def _difference(exercise: FunctionExercise, case: Case, value: Any, expected: Any) -> Finding:
    if shown_whole(value, expected):
        return wrong_value("", value, expected)
    if exercise.same and all(isinstance(one, (list, tuple)) for one in (value, expected)):
        differs = _first_in_list(exercise, case, value, expected)
    else:
        differs = first_difference(*_wrong_items(exercise, case, value, expected))
    return differs or wrong_value("", value, expected)


def _wrong_items(exercise: FunctionExercise, case: Case, value: Any, expected: Any) -> tuple[Any, Any]:
    """Two values, of two dicts only the items by which they differ: an exercise may call unequal ones the same."""
    if exercise.same is None or not isinstance(expected, Mapping) or not isinstance(value, Mapping):
        return value, expected
    each = {key: [{key: one[key]} if key in one else {} for one in (value, expected)] for key in (*expected, *value)}
    wrong = {key for key, pair in each.items() if not same_answer(exercise, case, *pair)}
    found, due = ({key: one[key] for key in one if key in wrong} for one in (value, expected))
    return found, due


def _first_in_list(
    exercise: FunctionExercise, case: Case, value: Sequence[Any], expected: Sequence[Any]
) -> Finding | None:
    """The first element with which a list no longer begins as expected, compared as the exercise compares. If that
    cannot compare beginnings, the first element that is unequal."""
    alike = functools.partial(same_answer, exercise, case)
    counts = range(1, min(len(value), len(expected)) + 1)
    if not all(alike(expected[:n], expected[:n]) for n in counts):
        return first_difference(value, expected)
    k = next((n - 1 for n in counts if not alike(value[:n], expected[:n])), None)
    if k is None:
        return WrongCount("", len(expected), len(value))
    return first_difference(value[k], expected[k], f"[{k}]")
