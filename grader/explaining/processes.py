"""What went wrong in several processes: why one failed, and what all those with a wrong result have in common."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

from grader.arrays.described import HELD, given_to, is_observed
from grader.arrays.numbers import same_value
from grader.exercises.answers import Problem
from grader.exercises.case import Case
from grader.exercises.errors import meaning
from grader.exercises.forms import ProcessExercise
from grader.explaining.cases.evidence import evidence
from grader.explaining.cases.tried import Tried
from grader.explaining.explainer import Alike, Explainer
from grader.findings.finding import Finding
from grader.findings.processes import ProcessesAgree
from grader.judging import together
from grader.judging.judgment import Behavior
from grader.judging.processes import ProcessJudgment, expected_of_all
from grader.judging.values import same_answer
from grader.processes.launch import Launch


class ProcessExplainer(Explainer[ProcessJudgment]):
    """Evidence from what the processes return."""

    exercise: ProcessExercise

    def likenesses(self, check: str) -> Sequence[Alike]:
        return [_alike]

    def evidence(self, check: str, case: int) -> tuple[Finding, ...]:
        """What the error means with which the first of them failed; what all processes with a wrong result share."""
        launch = self.behaviors[case]
        if not isinstance(launch, Launch):
            return ()
        if check == "ends":
            raised = launch.first is not None and launch.processes[launch.first].raised
            found = meaning(Problem("error", raised[0], raised[1])) if raised else None
            return (found,) if found else ()
        pairs = zip(together.returned(launch), expected_of_all(self.exercise, self.cases[case]), strict=True)
        tried = [self._tried(case, process, *pair) for process, pair in enumerate(pairs)]
        return evidence(tried, functools.partial(_agreed, tried), processes=True)

    def _tried(self, case: int, process: int, found: Any, expected: Any) -> Tried:
        one = self.cases[case]
        known = {"process_id": process, "num_processes": one.mesh["processes"]}
        given = {**known, **given_to(process, one.arguments)}
        return Tried(found, expected, given, same_answer(self.exercise, one, found, expected))


def _alike(case: Case, one: Behavior, other: Behavior) -> bool:
    return isinstance(one, Launch) and isinstance(other, Launch) and together.same_course(one, other)


def _agreed(tried: Sequence[Tried]) -> Finding | None:
    """That all processes have the same wrong value, if the same is expected of all."""
    first, *others = tried
    if not others or any(one.right or is_observed(one.found) != is_observed(one.expected) for one in tried):
        return None
    pairs = [pair for one in others for pair in ((one.found, first.found), (one.expected, first.expected))]
    return ProcessesAgree() if all(itertools.starmap(_same_in_both, pairs)) else None


def _same_in_both(one: Any, other: Any) -> bool:
    """Whether two processes have the same: of arrays on devices, equal copies of one whole."""
    if not is_observed(one) or not is_observed(other):
        return same_value(one, other)
    parts = [(bounds, block) for side in (one, other) for held in side[HELD].values() for bounds, block in held.items()]
    return all(bounds == parts[0][0] and same_value(block, parts[0][1]) for bounds, block in parts)
