"""Timetables of pipelines: played through, and held against others by what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from grader.arrays.words import numbered
from grader.exercises.answers import Problem, Value
from grader.exercises.case import Case
from grader.exercises.errors import stopped
from grader.exercises.exercise import Mistake
from grader.exercises.verdict import Verdict
from grader.judging.ladder import Alike, Done, Ladder, Rung
from grader.judging.miss import Miss
from grader.judging.values import NO_VALUE
from grader.timetables import Timetable, Work, simulate

WIDEST, LONGEST, MUCH = 16, 200, 2000  # devices, steps and pieces of work of a timetable that is drawn on a card
MOST_MISSING = 8  # microbatches that are named
NEARLY = 1e-9  # a bubble is a quotient
AS_SHORT = "as short as "  # and the name of a target


class TimetableLadder(Ladder):
    """It comes to an end; no device holds more than is allowed; and then target after target, by the bubble."""

    @property
    def rungs(self) -> Sequence[Rung]:
        targets = list(self._targets(0))
        share = self.exercise.points / (2 + len(targets))
        return [
            Rung("comes to an end", share, self._comes_to_an_end),
            Rung("memory", share, self._memory),
            *(Rung(f"{AS_SHORT}{name}", share, partial(self._as_short, name)) for name in targets),
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

    def is_exact(self, mistake: Mistake, k: int) -> bool:
        """Whether it gives these orders, and not others that cost as much."""
        return any(_same_orders(self.cases[k], self.done[k], wrong) for wrong in self.mistaken(mistake, k))

    def signature(self, check: str, k: int) -> str:
        """With which piece a device comes to hold too much; how many steps are idle where, and who waits for whom."""
        played = self._played(k)
        if not isinstance(played, Timetable) or played.wrong:
            return ""
        if check == "memory":
            return _first_beyond(played, self._allowed(k))
        name = check.removeprefix(AS_SHORT)
        return _idle_words(played, name, self._targets(k)[name]) if name != check else ""

    def _allowed(self, k: int) -> float:
        """How many microbatches a device may hold."""
        return max(list(self._targets(k).values())[-1].held)

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
            between = [m for m in range(min(mine), max(mine)) if m not in mine]
            without = f", without {numbered('number', between)}" if between else ""
            if len(between) > MOST_MISSING:
                without = ", of which many are missing"
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
        most, allowed = max(played.held), self._allowed(k)
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


def _first_beyond(played: Timetable, allowed: float) -> str:
    """The forward pass with which the device that holds most comes to hold more than is allowed."""
    device = played.held.index(max(played.held))
    order = played.orders[device]
    room = allowed * len({work.stage for work in order})
    forwards = back = 0
    for work in order:
        if work.kind == "F" and forwards - back >= room:
            given = f"given back what {back} of them left" if back else "given nothing back"
            passes = f"{forwards} forward pass{'es' * (forwards > 1)}"
            return f"It first is beyond that with {work}: by then it has done {passes}, and {given}."
        forwards += work.kind == "F"
        back += played.frees(work)
    return ""


@dataclass(frozen=True)
class _Idle:
    """A device that has nothing to do for some steps before a piece of work, which needs one of another device."""

    device: int
    steps: int
    work: Work
    needs: Work | None


def _idle_words(played: Timetable, name: str, target: Timetable) -> str:
    """How many idle steps are before, between and behind the devices' work; and who waits longest in between."""
    mine, due = _idle_steps(played), _idle_steps(target)
    waits = list(_waits(played))
    words = (
        f"Of the idle steps of all devices {mine[0]} are before a device's first piece, {mine[1]} between its pieces "
        f"and {mine[2]} behind its last ({name}: {due[0]}, {due[1]} and {due[2]})."
    )
    if not waits or mine[1] <= due[1]:
        return words
    longest = max(waits, key=lambda idle: idle.steps)
    which = (
        "The longest wait" if [idle.steps for idle in waits].count(longest.steps) == 1 else "One of the longest waits"
    )
    for_whom = f", for {longest.needs}" if longest.needs else ""
    steps = f"{longest.steps} step{'s' * (longest.steps > 1)}"
    return f"{words} {which} in between: device {longest.device} before its {longest.work}, {steps}{for_whom}."


def _idle_steps(played: Timetable) -> tuple[int, int, int]:
    """The idle steps of all devices before their first piece of work, between their pieces, and behind the last."""
    before = behind = 0
    for device in range(len(played.orders)):
        placed = list(played.placed(device))
        before += placed[0][1] if placed else played.steps
        behind += played.steps - placed[-1][2] if placed else 0
    return before, sum(idle.steps for idle in _waits(played)), behind


def _waits(played: Timetable) -> Iterator[_Idle]:
    """The gaps between the devices' pieces of work, each with what was waited for there."""
    orders = [list(played.placed(device)) for device in range(len(played.orders))]
    ends = {work: end for placed in orders for work, _, end in placed}
    for device, placed in enumerate(orders):
        for (_, _, end), (work, start, _) in pairwise(placed):
            if start > end:
                yield _Idle(device, start - end, work, next((n for n in played.needs(work) if ends[n] == start), None))


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
