"""Functions: called case by case, and held against what the reference returns or raises."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from grader.arrays.described import (
    FROM_ANYWHERE,
    FROM_HOST,
    NOT_IN_PLACE,
    TO_THE_HOST,
    difference,
    lies_on_devices,
)
from grader.arrays.numbers import close, same_value
from grader.arrays.words import enumeration
from grader.exercises.answers import Answer, Problem, Value
from grader.exercises.calling import NOTHING
from grader.exercises.case import Case
from grader.exercises.errors import meaning, stopped
from grader.exercises.forms import FunctionExercise
from grader.exercises.plain import NO_PLAIN_VALUE
from grader.judging.differing import Difference, first_difference, how_many, short, shown_whole
from grader.judging.evidence import evidence
from grader.judging.ladder import Alike, Done, Ladder, Rung, same_problem
from grader.judging.leaving import cut_short, passed_over
from grader.judging.miss import Miss
from grader.judging.nearest import nearest_function
from grader.judging.right_cases import where_right
from grader.judging.tried import Tried
from grader.judging.values import NO_VALUE, expected_value, same_answer, worded

COSTS_NOTHING = "This costs no points, for only your own notebook sees it; on real chips it costs"
BARRED = {
    NOT_IN_PLACE: (
        "The values are right, but `{}` of the result is not in the memory of an array that was given: old and new "
        "have each their own. Which call did not give away what it was given? (That the old array is gone in the end "
        f"does not tell how.) {COSTS_NOTHING} memory."
    ),
    FROM_HOST: (
        "The result is laid out as it should be, but it came by way of the host: `{}` was put on devices from there. "
        "Did NumPy, or a list, stand in between? Or did `device_put` have to cut the array into other blocks for other "
        f"devices, which it does on the host? {COSTS_NOTHING} time."
    ),
    TO_THE_HOST: (
        "The result is right and where it should be, but on the way `{}` was in the host's memory, or came from there. "
        "Was something put there that was given on the devices, or did NumPy stand in between? The step is to be done "
        f"on the devices. Which arrays have to move at all? {COSTS_NOTHING} time."
    ),
    FROM_ANYWHERE: (
        "The result is right, but it was not made where it belongs: on the way `{}` was held by other devices, or by "
        f"the host, and was sent from there. {COSTS_NOTHING} time and memory."
    ),
}
NOT_RAISED = "The function returns nothing (`None`), and raises nothing: an error that is caught, or printed, is gone."
NOT_ALWAYS = (
    "In other cases it does return something. By which way does it come to its end without a `return` here, or to one "
    "of `None`?"
)
NO_ERROR_DUE = "A ValueError is due in some cases, and not in this one. By what do you tell them apart?"
OF_PYTHON = re.compile(  # texts of a ValueError that nobody raised: Python, or NumPy, stopped there
    "values to unpack|invalid literal|could not convert|not in list|empty sequence|argument is empty|math domain error|"
    "zero-size array"
)
IN_WORDS = 100  # characters of what a function was given that stand among the words on it


class FunctionLadder(Ladder):
    """The value that is returned; then, where a way is barred, that none of its arrays came by it.

    The way is told, and earns nothing: only the process in which the function ran can see it, and there the function
    may change what is seen.
    """

    exercise: FunctionExercise

    @property
    def rungs(self) -> Sequence[Rung]:
        values = Rung("values", self.exercise.points, self._value)
        return [values, Rung("way", 0.0, self._way)] if self.exercise.barred else [values]

    def likenesses(self, check: str) -> Sequence[Alike]:
        """Where it stops in some cases only, those in which it does tell as much as its values in the others."""
        only_some = any(isinstance(answer, Value) for answer in self.answers)
        return [self._alike, self._stops_or_alike] if only_some else [self._alike]

    def _stops_or_alike(self, case: Case, one: Done, other: Done) -> bool:
        if isinstance(one, Problem) and isinstance(other, Problem):
            return one.error == other.error
        return self._alike(case, one, other)

    def _alike(self, case: Case, one: Done, other: Done) -> bool:
        if isinstance(one, Problem) and isinstance(other, Problem):  # each may word the error that is due its own way
            return not any(_wrong_result(self.exercise, case, problem) for problem in (one, other))
        return (
            isinstance(one, Value)
            and isinstance(other, Value)
            and bool(one.moved) == bool(other.moved)
            and same_answer(self.exercise, case, one.value, other.value)
        )

    def parts(self, k: int, done: Done) -> Sequence[Any]:
        """The entries of a tuple or a dict that is due; of anything else the whole. Nothing of a truth value, or of one
        of a few words: of any two mistakes one is like it."""
        if isinstance(done, Value) and isinstance(done.value, (bool, str)):
            return []
        return self._entries(k, done.value) if isinstance(done, Value) else [done]

    def right_parts(self, k: int, done: Done) -> Sequence[bool]:
        found, due = self.parts(k, done), self._entries(k, expected_value(self.exercise, self.cases[k]))
        if not _wrong_result(self.exercise, self.cases[k], cast(Answer, done)):
            return [True] * len(found)
        if not found:
            return []
        return list(map(same_value, found, due)) if len(due) == len(found) > 1 else [False]

    def same_part(self, k: int, one: Any, other: Any) -> bool:
        if isinstance(one, Problem) or isinstance(other, Problem):
            return same_problem(one, other)
        return same_value(one, other)

    def _entries(self, k: int, value: Any) -> list[Any]:
        """The entries of a value that is made as the one that is due; the value alone where it is not, or where the
        exercise has its own way to compare."""
        due = expected_value(self.exercise, self.cases[k])
        if self.exercise.same is None:
            if isinstance(due, Mapping) and isinstance(value, Mapping) and value.keys() == due.keys():
                return [value[key] for key in due]
            if isinstance(due, tuple) and isinstance(value, (tuple, list)) and len(value) == len(due):
                return list(value)
        return [value]

    def signature(self, check: str, k: int) -> str:
        answer, tried = self.answers[k], [self._tried(j, a) for j, a in enumerate(self.answers)]
        if isinstance(answer, Problem):
            some, others = ([one for one in tried if one.right is right] for right in (True, False))
            return meaning(answer) or " ".join(filter(None, (self._of_problem(k, answer), where_right(some, others))))
        if check != "values":
            return ""  # every value is right
        return self._wrong_facts(k) or evidence(tried, functools.partial(self._nearest, k))

    def _wrong_facts(self, k: int) -> str:
        """Which facts a text has wrong in a case. One that is wrong because another is, as that is, is not told."""
        answer, facts = self.answers[k], self.exercise.facts
        if facts is None or not isinstance(answer, Value):
            return ""
        try:
            said, due = facts(answer.value), facts(expected_value(self.exercise, self.cases[k]))
        except Exception:  # a student's value may have any form
            return ""
        apart = {repr((said[name], due[name])): name for name in reversed(list(due)) if said[name] != due[name]}
        wrong = [name for name in due if name in apart.values()]
        names = [f"{name}{_as_said(said[name])}" for name in wrong]
        return f"Of what is read in the text, this is not as it should be: {enumeration(names)}." if names else ""

    def _nearest(self, k: int) -> str:
        """What the answers to all cases are the results of."""
        all_ = self.exercise, self.cases, self.answers, k
        return nearest_function(*all_) or passed_over(*all_) or cut_short(*all_)

    def _of_problem(self, k: int, problem: Problem) -> str:
        """What is said of a function that stops, or returns nothing, in some cases only."""
        error_due = isinstance(expected_value(self.exercise, self.cases[k]), ValueError)
        if problem.kind == "refused" and NO_PLAIN_VALUE in problem.message and not error_due:
            return _kind_due(expected_value(self.exercise, self.cases[k]))
        if problem.message == NOTHING and not error_due and any(isinstance(one, Value) for one in self.answers):
            return NOT_ALWAYS
        raised = problem.error == "ValueError" and not OF_PYTHON.search(problem.message)
        return NO_ERROR_DUE if raised and self._is_error_due_elsewhere(k) else ""

    def _is_error_due_elsewhere(self, k: int) -> bool:
        errors = [isinstance(expected_value(self.exercise, case), ValueError) for case in self.cases]
        return any(errors) and not errors[k]

    def _tried(self, k: int, answer: Answer) -> Tried:
        case, found = self.cases[k], answer.value if isinstance(answer, Value) else None
        return Tried(found, expected_value(self.exercise, case), case.arguments, self._value(k) is None)

    def where(self, k: int) -> str:
        given = _given(self.cases[k])
        return given if len(given) > IN_WORDS else ""  # else the words begin with it

    def _value(self, k: int) -> Miss | None:
        words = _wrong_result(self.exercise, self.cases[k], self.answers[k])
        return Miss(words) if words else None

    def _way(self, k: int) -> Miss | None:
        answer = self.answers[k]
        return (
            Miss(BARRED[self.exercise.barred].format(answer.moved))
            if isinstance(answer, Value) and answer.moved
            else None
        )


def _kind_due(expected: Any) -> str:
    """Of what kind the value is that is due, where none can be made of what was returned."""
    if isinstance(expected, (list, tuple)):
        return f"What is due is a list, or a tuple{', of arrays on devices' * lies_on_devices(expected)}."
    if lies_on_devices(expected):
        return "What is due is an array on devices, with its numbers. What says only where it is to be is not yet one."
    if isinstance(expected, bool):
        return "What is due is True or False."
    if isinstance(expected, (int, float)):
        return "What is due is a number."
    return "What is due is a word." if isinstance(expected, str) else ""


def _wrong_result(exercise: FunctionExercise, case: Case, answer: Answer) -> str:
    expected = expected_value(exercise, case)
    if isinstance(expected, ValueError):
        return _should_raise(case, answer, expected)
    if isinstance(answer, Problem):
        given = _given(case)
        return stopped(answer) + (f"\n\nIt was called with {given}." if len(given) <= IN_WORDS else "")
    if not isinstance(answer, Value):
        return NO_VALUE
    if same_answer(exercise, case, answer.value, expected):
        return ""
    value = answer.value
    return worded(lambda: _differing(exercise, case, value, expected))


def _differing(exercise: FunctionExercise, case: Case, value: Any, expected: Any) -> str:
    if lies_on_devices(expected):
        return _called(case, difference(value, expected, close), ":")
    if shown_whole(value, expected):
        return _called(case, f"it should return {short(expected)}; it returns {short(value)}.", ",")
    if exercise.same and isinstance(value, (list, tuple)) and isinstance(expected, (list, tuple)):
        differs = _first_in_list(exercise, case, value, expected)
    else:
        differs = first_difference(*_wrong_entries(exercise, case, value, expected))
    return _called(case, differs.words if differs else f"it returns {short(value)}, which is not right.", ":")


def _called(case: Case, words: str, mark: str) -> str:
    """What came of a call, and where that is short, what was given; else the verdict says it beside the words."""
    given = _given(case)
    return f"Called with {given}{mark} {words}" if len(given) <= IN_WORDS else words[:1].upper() + words[1:]


def _wrong_entries(exercise: FunctionExercise, case: Case, value: Any, expected: Any) -> tuple[Any, Any]:
    """Two values, of two dicts only the entries by which they differ: an exercise may call unequal ones the same."""
    if not isinstance(expected, Mapping) or not isinstance(value, Mapping):
        return value, expected
    each = {key: [{key: one[key]} if key in one else {} for one in (value, expected)] for key in (*expected, *value)}
    wrong = {key for key, pair in each.items() if not same_answer(exercise, case, *pair)}
    found, due = ({key: one[key] for key in one if key in wrong} for one in (value, expected))
    return found, due


def _first_in_list(
    exercise: FunctionExercise, case: Case, value: Sequence[Any], expected: Sequence[Any]
) -> Difference | None:
    """The first entry with which a list no longer begins as the one that is due, compared as the exercise compares.
    Where that cannot compare beginnings, the first entry that is unequal."""

    def alike(one: Sequence[Any], count: int) -> bool:
        return same_answer(exercise, case, one[:count], expected[:count])

    both = range(1, min(len(value), len(expected)) + 1)
    if not all(alike(expected, count) for count in both):
        return first_difference(value, expected)
    count = next((count for count in both if not alike(value, count)), None)
    if count is None:
        return Difference("", expected, value, how_many(len(value), len(expected)))
    return first_difference(value[count - 1], expected[count - 1], f"[{count - 1}]")


def _should_raise(case: Case, answer: Answer, expected: ValueError) -> str:
    if isinstance(answer, Problem):
        if answer.error in ("ValueError", type(expected).__name__):
            return ""  # JAX's own has a name of its own in some versions
        instead = NOT_RAISED if answer.message == NOTHING else stopped(answer)
    elif isinstance(answer, Value):
        value = answer.value
        instead = worded(lambda: f"It returns {short(value)}.")
    else:
        return NO_VALUE
    return _called(case, f"it should raise a ValueError ({expected}). {instead}", ",")


def _given(case: Case) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in case.arguments.items())


def _as_said(fact: Any) -> str:
    """What a text says of it, where that is a word, or nothing."""
    return f" (yours: {fact})" if isinstance(fact, str) else " (yours does not say it)" if fact is None else ""
