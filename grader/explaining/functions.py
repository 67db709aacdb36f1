"""What went wrong in a function: in what it returns, or in when it stops."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from grader.arrays.described import lies_on_devices
from grader.arrays.numbers import same_value
from grader.exercises.answers import Answer, Problem, Value
from grader.exercises.case import Case
from grader.exercises.errors import meaning
from grader.exercises.forms import FunctionExercise
from grader.explaining.cases.evidence import evidence
from grader.explaining.cases.right_cases import right_in
from grader.explaining.cases.tried import Tried
from grader.explaining.changed.nearest import nearest_function
from grader.explaining.compared.relations import sort_of
from grader.explaining.explainer import Alike, Explainer, same_problem
from grader.findings.finding import Finding
from grader.findings.problems import Refusal
from grader.findings.values import OtherKind, UnlikeOthers, WrongFacts
from grader.judging.functions import FunctionJudgment, wrong_result
from grader.judging.judgment import Behavior
from grader.judging.values import expected_value, same_answer

OF_PYTHON = re.compile(  # messages of a ValueError that no code raised on purpose: Python or NumPy did
    "values to unpack|invalid literal|could not convert|not in list|empty sequence|argument is empty|math domain error|"
    "zero-size array"
)


class FunctionExplainer(Explainer[FunctionJudgment]):
    """Evidence from what a function returns in all cases."""

    exercise: FunctionExercise

    def likenesses(self, check: str) -> Sequence[Alike]:
        """If it stops in some cases only, those tell as much as its values in the others."""
        only_some = any(isinstance(answer, Value) for answer in self.answers)
        return [self._alike, self._stops_or_alike] if only_some else [self._alike]

    def _stops_or_alike(self, case: Case, one: Behavior, other: Behavior) -> bool:
        if isinstance(one, Problem) and isinstance(other, Problem):
            return one.error == other.error
        return self._alike(case, one, other)

    def _alike(self, case: Case, one: Behavior, other: Behavior) -> bool:
        if isinstance(one, Problem) and isinstance(other, Problem):  # each may word the expected error its own way
            return not any(wrong_result(self.exercise, case, problem) for problem in (one, other))
        return (
            isinstance(one, Value)
            and isinstance(other, Value)
            and bool(one.moved) == bool(other.moved)
            and same_answer(self.exercise, case, one.value, other.value)
        )

    def parts(self, k: int, done: Behavior) -> Sequence[Any]:
        """The elements of a tuple or a dict; of anything else the whole. Nothing of a truth value, or of one of a few
        words: of any two mistakes one is like it."""
        if isinstance(done, Value) and isinstance(done.value, (bool, str)):
            return []
        return self._elements(k, done.value) if isinstance(done, Value) else [done]

    def right_parts(self, k: int, done: Behavior) -> Sequence[bool]:
        found, expected = self.parts(k, done), self._elements(k, expected_value(self.exercise, self.cases[k]))
        if not wrong_result(self.exercise, self.cases[k], cast(Answer, done)):
            return [True] * len(found)
        if not found:
            return []
        return list(map(same_value, found, expected)) if len(expected) == len(found) > 1 else [False]

    def same_part(self, k: int, one: Any, other: Any) -> bool:
        if isinstance(one, Problem) or isinstance(other, Problem):
            return same_problem(one, other)
        return same_value(one, other)

    def _elements(self, k: int, value: Any) -> list[Any]:
        """The elements of a value that is made like the expected one; the value alone if it is not, or if the exercise
        has its own way to compare."""
        expected = expected_value(self.exercise, self.cases[k])
        if self.exercise.same is None:
            if isinstance(expected, Mapping) and isinstance(value, Mapping) and value.keys() == expected.keys():
                return [value[key] for key in expected]
            if isinstance(expected, tuple) and isinstance(value, (tuple, list)) and len(value) == len(expected):
                return list(value)
        return [value]

    def evidence(self, check: str, case: int) -> tuple[Finding, ...]:
        answer, tried = self.answers[case], [self._tried(k, one) for k, one in enumerate(self.answers)]
        if isinstance(answer, Problem):
            right, wrong = ([one for one in tried if one.right is well] for well in (True, False))
            said = meaning(answer) or self._of_problem(case, answer)
            return tuple(filter(None, (said, right_in(right, wrong))))
        if check != "values":
            return ()  # every value is right
        if facts := self._wrong_facts(case):
            return (facts,)
        return evidence(tried, functools.partial(nearest_function, self.exercise, self.cases, self.answers, case))

    def _wrong_facts(self, k: int) -> Finding | None:
        """Which facts a text has wrong in a case. One that is wrong because another is, as that is, is not told."""
        answer, facts = self.answers[k], self.exercise.facts
        if facts is None or not isinstance(answer, Value):
            return None
        try:
            said, expected = facts(answer.value), facts(expected_value(self.exercise, self.cases[k]))
        except Exception:  # a student's value may have any form
            return None
        apart = {repr((said[name], fact)): name for name, fact in reversed([*expected.items()]) if said[name] != fact}
        wrong = [name for name in expected if name in apart.values()]
        return WrongFacts(tuple((name, _as_said(said[name])) for name in wrong)) if wrong else None

    def _of_problem(self, k: int, problem: Problem) -> Finding | None:
        """What is known of a function that stops, or returns nothing, in some cases only."""
        expected = expected_value(self.exercise, self.cases[k])
        if isinstance(expected, ValueError):
            return None
        if problem.refusal and problem.refusal.reason == "holds type":
            return _sort_expected(expected)
        if problem.refusal == Refusal("returns nothing") and any(isinstance(one, Value) for one in self.answers):
            return UnlikeOthers("returns nothing")
        raised = problem.error == "ValueError" and not OF_PYTHON.search(problem.message)
        elsewhere = (expected_value(self.exercise, case) for case in self.cases)
        return UnlikeOthers("raises") if raised and any(isinstance(one, ValueError) for one in elsewhere) else None

    def _tried(self, k: int, answer: Answer) -> Tried:
        case, found = self.cases[k], answer.value if isinstance(answer, Value) else None
        return Tried(found, expected_value(self.exercise, case), case.arguments, not self.judgment.misses("values", k))


def _sort_expected(expected: Any) -> Finding | None:
    """Of what kind the expected value is, if none can be made of what was returned."""
    sort = sort_of(expected)
    in_it = "array on devices" if sort == "list" and lies_on_devices(expected) else None
    return OtherKind(sort, None, in_it) if sort and sort != "None" else None  # type: ignore[arg-type]


def _as_said(fact: Any) -> str | None:
    """What a text says of a fact, if that is a word or nothing."""
    return fact if isinstance(fact, str) else None
