"""Functions that run in several processes: everybody has to come to an end, and to return what is due."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from grader.arrays.described import built, difference, lies_on_devices
from grader.arrays.numbers import close
from grader.exercises.answers import Problem, Script
from grader.exercises.case import Case
from grader.exercises.errors import in_plain_words
from grader.exercises.exercise import Exercise
from grader.exercises.plain import plain
from grader.judging import together
from grader.judging.differing import first_difference, short, shown_whole
from grader.judging.ladder import Alike, Done, Ladder, Rung
from grader.judging.miss import Miss
from grader.judging.values import same_answer, worded
from grader.processes.launch import Launch


class ProcessLadder(Ladder):
    """Two rungs: all processes end; each returns what the reference says for it."""

    runs = Script

    @property
    def rungs(self) -> Sequence[Rung]:
        return [Rung("ends", 0.0, self._ends), Rung("values", self.exercise.points, self._returned)]

    def likenesses(self, check: str) -> Sequence[Alike]:
        return [_alike]

    def witnesses(self, failing: int) -> Sequence[int]:
        return []  # each takes seconds to run: the first mistake that fits

    def _ends(self, k: int) -> Miss | None:
        launch = self.done[k]
        if isinstance(launch, Problem):
            return Miss(f"{launch.error}: {launch.message}" if launch.error else in_plain_words(launch))
        if not isinstance(launch, Launch):
            return Miss("The answer should be a function `main(process_id, num_processes)`.")
        step = self.cases[k].mesh.get("killed_at")
        if launch.went_well and launch.survived:
            return Miss(
                f"The run was to be killed at its line `step {step} …`, and it came to its end without printing one. "
                "Print a line for every step, with its number, as soon as the step is done."
            )
        again = "Killed, and started again: " if step and not launch.survived else ""
        return None if launch.went_well else Miss(again + launch.headline)

    def _returned(self, k: int) -> Miss | None:
        case, launch = self.cases[k], self.done[k]
        assert isinstance(launch, Launch)  # the rung before saw to it
        returned, expected = together.returned(launch), _expected(self.exercise, case)
        if len(returned) != len(expected):
            return Miss(f"{len(expected)} processes were to return something, and {len(returned)} are heard of.")
        pairs = zip(returned, expected, strict=True)
        for number, (value, due) in enumerate(pairs):
            if not same_answer(self.exercise, case, value, due):
                return Miss(worded(functools.partial(_difference, number, value, due)))
        return None


def _alike(case: Case, one: Done, other: Done) -> bool:
    return isinstance(one, Launch) and isinstance(other, Launch) and together.same_course(one, other)


def _expected(exercise: Exercise, case: Case) -> list[Any]:
    """What each process has to return."""
    count = case.mesh["processes"]
    return [plain(exercise.reference(number, count, **built(dict(case.arguments)))) for number in range(count)]


def _difference(number: int, value: Any, expected: Any) -> str:
    if lies_on_devices(expected):
        return f"Process {number}: {difference(value, expected, close)}"
    if shown_whole(value, expected) or not (differs := first_difference(value, expected)):
        return f"Process {number} should return {short(expected)}; it returns {short(value)}."
    return f"Of what process {number} returns, {differs.words}"
