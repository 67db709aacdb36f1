"""Timetables of pipelines: played through, and held against others by what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from grader.exercises.answers import Problem, Value
from grader.exercises.errors import stopped
from grader.exercises.verdict import Verdict
from grader.findings.finding import Finding
from grader.findings.schedules import NoBackward, NoTimetable, OtherPipeline, TooLongTimetable, TooManyHeld
from grader.findings.values import NotPlain
from grader.judging.judgment import Behavior, Check, Explain, Judgment, unexplained
from grader.judging.miss import Miss
from grader.timetables import Timetable, simulate

WIDEST, _LONGEST_STEPS, MUCH = 16, 200, 2000  # devices, steps and pieces of work of a timetable that is drawn on a card
NEARLY = 1e-9  # a bubble is a quotient
MEMORY_CHECK = "memory"  # a check


class TimetableJudgment(Judgment):
    """It comes to an end; no device holds more than is allowed; and then target after target, by the bubble."""

    @property
    def checks(self) -> Sequence[Check]:
        targets = list(self.targets(0))
        share = self.exercise.points / (2 + len(targets))
        return [
            Check("comes to an end", share, self._comes_to_an_end),
            Check(MEMORY_CHECK, share, self._memory),
            *(Check(as_short_as(name), share, partial(self._as_short, name)) for name in targets),
        ]

    def verdict(self, explain: Explain = unexplained) -> Verdict:
        found = super().verdict(explain)
        played = self.played(found.failing or 0)
        if not isinstance(played, Timetable) or not _drawable(played):
            return found
        return replace(found, orders=tuple(tuple(map(str, order)) for order in played.orders))

    def allowed(self, k: int) -> float:
        """How many microbatches a device may hold."""
        return max(list(self.targets(k).values())[-1].held)

    def targets(self, k: int) -> Mapping[str, Timetable]:
        return {name: simulate(o) for name, o in self.exercise.reference(**self.cases[k].arguments).items()}

    def played(self, k: int) -> Timetable | Finding:
        return played(self.answers[k])

    def _comes_to_an_end(self, k: int) -> Miss | None:
        found = self.played(k)
        if isinstance(found, Finding):
            return Miss((found,))
        expected = next(iter(self.targets(k).values()))
        if found.microbatches and (
            len(found.orders) != len(expected.orders) or found.microbatches != expected.microbatches
        ):
            devices = len(expected.orders), len(found.orders)
            microbatches = (tuple(sorted(one.microbatches)) for one in (expected, found))
            return Miss((OtherPipeline(*devices, *microbatches),))
        if found.wrong:
            return Miss((NoTimetable(str(found.wrong), found.wrong.kind == "deadlock"),))
        if not any(work.kind == "B" for order in found.orders for work in order):
            return Miss((NoBackward(),))
        return None

    def _memory(self, k: int) -> Miss | None:
        found = self.played(k)
        assert isinstance(found, Timetable)  # it came to an end
        most, allowed = max(found.held), self.allowed(k)
        return Miss((TooManyHeld(found.held.index(most), allowed, most),)) if most > allowed else None

    def _as_short(self, name: str, k: int) -> Miss | None:
        found, target = self.played(k), self.targets(k)[name]
        assert isinstance(found, Timetable)  # it came to an end
        if found.bubble <= target.bubble + NEARLY:
            return None
        return Miss((TooLongTimetable(name, found.steps, target.bubble, found.bubble),))


def as_short_as(target: str) -> str:
    """The name of the check that holds a timetable against this target."""
    return f"as short as {target}"


def _drawable(played: Timetable) -> bool:
    pieces = sum(map(len, played.orders))
    return len(played.orders) <= WIDEST and played.steps <= _LONGEST_STEPS and pieces <= MUCH


def played(answer: Behavior) -> Timetable | Finding:
    """What the orders come to, or why they cannot be played."""
    if isinstance(answer, Problem):
        return stopped(answer)
    if not isinstance(answer, Value):
        return NotPlain()
    try:
        return simulate(answer.value)
    except ValueError as error:
        return NoTimetable(str(error))
