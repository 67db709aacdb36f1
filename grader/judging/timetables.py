"""Timetables of pipelines: played through, and held against others by what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from grader.arrays.words import numbered
from grader.exercises.answers import Problem, Value
from grader.exercises.case import Case
from grader.exercises.errors import stopped
from grader.exercises.verdict import Verdict
from grader.judging.ladder import Alike, Done, Ladder, Rung
from grader.judging.miss import Miss
from grader.judging.values import NO_VALUE
from grader.timetables import Timetable, simulate

WIDEST, LONGEST, MUCH = 16, 200, 2000  # devices, steps and pieces of work of a timetable that is drawn on a card
NEARLY = 1e-9  # a bubble is a quotient


class TimetableLadder(Ladder):
    """It comes to an end; no device holds more than is allowed; and then target after target, by the bubble."""

    @property
    def rungs(self) -> Sequence[Rung]:
        targets = list(self._targets(0))
        share = self.exercise.points / (2 + len(targets))
        return [
            Rung("comes to an end", share, self._comes_to_an_end),
            Rung("memory", share, self._memory),
            *(Rung(f"as short as {name}", share, partial(self._as_short, name)) for name in targets),
        ]

    def verdict(self) -> Verdict:
        found = super().verdict()
        missed = None if found.passed else self.first_miss()
        played = self._played(missed[1] if missed else 0)
        if not isinstance(played, Timetable) or not _drawable(played):
            return found
        return replace(found, orders=tuple(tuple(map(str, order)) for order in played.orders))

    def likenesses(self, check: str) -> Sequence[Alike]:
        return [_same_orders, _same_cost]

    def _targets(self, k: int) -> Mapping[str, Timetable]:
        return {name: simulate(o) for name, o in self.exercise.reference(**self.cases[k].arguments).items()}

    def _played(self, k: int) -> Timetable | str:
        return _played(self.answers[k])

    def _comes_to_an_end(self, k: int) -> Miss | None:
        played = self._played(k)
        if isinstance(played, str):
            return Miss(played)
        due = next(iter(self._targets(k).values()))
        mine, last = played.microbatches, max(due.microbatches)
        if mine and (len(played.orders) != len(due.orders) or mine != due.microbatches):
            between = sorted(m for m in due.microbatches - mine if m < max(mine))
            without = f", without {numbered('number', between)}" if between else ""
            return Miss(
                f"{len(due.orders)} devices and microbatches 0 to {last} are due; these are orders for "
                f"{len(played.orders)} devices and microbatches {min(mine)} to {max(mine)}{without}."
            )
        if played.wrong:
            return Miss(played.wrong)
        if not any(work.kind == "B" for order in played.orders for work in order):
            return Miss("There are forward passes only. The backward passes belong into the orders, too.")
        return None

    def _memory(self, k: int) -> Miss | None:
        played = self._played(k)
        assert isinstance(played, Timetable)  # it came to an end
        most, allowed = max(played.held), max(list(self._targets(k).values())[-1].held)
        if most <= allowed:
            return None
        device = played.held.index(most)
        return Miss(
            f"Device {device} holds the activations of {most:g} microbatches at a time; {allowed:g} are enough. What "
            "a forward pass leaves is given back by its backward pass (by W, where that stands apart)."
        )

    def _as_short(self, name: str, k: int) -> Miss | None:
        played, target = self._played(k), self._targets(k)[name]
        assert isinstance(played, Timetable)  # it came to an end
        if played.bubble <= target.bubble + NEARLY:
            return None
        return Miss(
            f"The timetable comes to an end, in {played.steps} steps with a bubble of {played.bubble:.1%}; that of "
            f"{name} is {target.bubble:.1%}."
        )


def _drawable(played: Timetable) -> bool:
    pieces = sum(map(len, played.orders))
    return len(played.orders) <= WIDEST and played.steps <= LONGEST and pieces <= MUCH


def _played(answer: Done) -> Timetable | str:
    """What the orders come to, or why they cannot be played."""
    if isinstance(answer, Problem):
        return stopped(answer)
    if not isinstance(answer, Value):
        return NO_VALUE
    try:
        return simulate(answer.value)
    except ValueError as error:
        return str(error)


def _same_orders(case: Case, one: Done, other: Done) -> bool:
    mine, wrong = _played(one), _played(other)
    return mine == wrong if isinstance(mine, str) else isinstance(wrong, Timetable) and mine.orders == wrong.orders


def _same_cost(case: Case, one: Done, other: Done) -> bool:
    """Two timetables that take as long and hold as much, or that come to a halt."""
    mine, wrong = _played(one), _played(other)
    if isinstance(mine, str) or isinstance(wrong, str):
        return False
    if mine.wrong or wrong.wrong:
        return bool(mine.wrong) and mine.wrong == wrong.wrong
    return (mine.steps, mine.held) == (wrong.steps, wrong.held)
