"""Functions that run in several processes: all have to end, and to return what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.arrays.described import built
from grader.arrays.numbers import same_value
from grader.exercises.answers import Problem, Script
from grader.exercises.case import Case
from grader.exercises.errors import stopped
from grader.exercises.exercise import Exercise
from grader.exercises.forms import ProcessExercise
from grader.exercises.plain import plain
from grader.findings.finding import Finding
from grader.findings.processes import DidNotEnd, NoMain, NotKilled, ProcessesSilent, WrongInProcess
from grader.judging import together
from grader.judging.differing import first_difference, short, shown_whole, wrong_value
from grader.judging.judgment import Check, Judgment
from grader.judging.miss import Miss
from grader.judging.values import same_answer
from grader.processes.launch import Launch


class ProcessJudgment(Judgment):
    """Two checks: all processes end; each returns what the reference says for it."""

    exercise: ProcessExercise
    runs = Script

    @property
    def checks(self) -> Sequence[Check]:
        return [Check("ends", 0.0, self._ends), Check("values", self.exercise.points, self._returned)]

    def witnesses(self, failing: int) -> Sequence[int]:
        return range(failing)  # those that are right; each of the others takes seconds to run

    def _ends(self, k: int) -> Miss | None:
        launch, step = self.behaviors[k], self.cases[k].mesh.get("killed_at", 0)
        if isinstance(launch, Problem):
            return Miss((stopped(launch),))
        if not isinstance(launch, Launch):
            return Miss((NoMain(),))
        if launch.went_well:
            return Miss((NotKilled(step),)) if launch.survived else None
        return Miss((DidNotEnd(launch.headline, again=bool(step) and not launch.survived),))

    def _returned(self, k: int) -> Miss | None:
        case, launch = self.cases[k], self.behaviors[k]
        assert isinstance(launch, Launch)  # the check before saw to it
        returned, expected = together.returned(launch), expected_of_all(self.exercise, case)
        if len(returned) != len(expected):
            return Miss((ProcessesSilent(len(expected), len(returned)),))
        for process, pair in enumerate(zip(returned, expected, strict=True)):
            if not same_answer(self.exercise, case, *pair):
                return Miss((_wrong_in(process, *pair, self.exercise.parts),))
        return None


def expected_of_all(exercise: Exercise, case: Case) -> list[Any]:
    """What each process has to return."""
    count = case.mesh["processes"]
    return [plain(exercise.reference(number, count, **built(dict(case.arguments)))) for number in range(count)]


def _wrong_in(process: int, found: Any, expected: Any, parts: Sequence[str]) -> Finding:
    """How what a process returns differs from what is expected; `parts` are what the elements of a tuple are called."""
    if parts and isinstance(found, (list, tuple)) and len(found) == len(parts):
        each = zip(parts, found, expected, strict=True)
        wrong = tuple((part, short(due), short(one)) for part, one, due in each if not same_value(one, due))
        return WrongInProcess(process, None, wrong)
    if shown_whole(found, expected):
        return WrongInProcess(process, wrong_value("", found, expected))
    return WrongInProcess(process, first_difference(found, expected) or wrong_value("", found, expected))
