"""What went wrong in a timetable: with which piece a device holds too much, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from grader.exercises.case import Case
from grader.exercises.exercise import Mistake
from grader.explaining.explainer import Alike, Explainer
from grader.findings.finding import Finding
from grader.findings.schedules import FirstBeyond, IdleSteps
from grader.judging.judgment import Behavior
from grader.judging.timetables import MEMORY_CHECK, TimetableJudgment, as_short_as, played
from grader.timetables import Timetable, Work


class TimetableExplainer(Explainer[TimetableJudgment]):
    """Evidence from the idle steps of a timetable."""

    def likenesses(self, check: str) -> Sequence[Alike]:
        return [_same_orders, _same_cost]

    def is_exact(self, mistake: Mistake, k: int) -> bool:
        """Whether it gives these orders, and not others that cost as much."""
        return any(_same_orders(self.cases[k], self.behaviors[k], wrong) for wrong in self.mistaken(mistake, k))

    def evidence(self, check: str, case: int) -> tuple[Finding, ...]:
        """The piece with which a device holds too much; how many steps are idle, and what is waited for."""
        found = self.judgment.played(case)
        if not isinstance(found, Timetable) or found.wrong:
            return ()
        if check == MEMORY_CHECK:
            return tuple(_first_beyond(found, self.judgment.allowed(case)))
        targets = self.judgment.targets(case)
        return tuple(_idle(found, name, target) for name, target in targets.items() if as_short_as(name) == check)


def _first_beyond(played: Timetable, allowed: float) -> Iterator[Finding]:
    """The forward pass with which the device that holds most comes to hold more than is allowed."""
    order = played.orders[played.held.index(max(played.held))]
    room = allowed * len({work.stage for work in order})
    forward = freed = 0
    for work in order:
        if work.kind == "F" and forward - freed >= room:
            yield FirstBeyond(str(work), forward, freed)
            return
        forward += work.kind == "F"
        freed += played.frees(work)


@dataclass(frozen=True)
class _Idle:
    """A device that has nothing to do for some steps before a piece of work, which needs one of another device."""

    device: int
    steps: int
    work: Work
    needs: Work | None


def _idle(played: Timetable, name: str, target: Timetable) -> Finding:
    """How many idle steps are before, between and after the devices' work; and the longest wait in between."""
    found, expected, waits = _idle_steps(played), _idle_steps(target), list(_waits(played))
    if not waits or found[1] <= expected[1]:
        return IdleSteps(name, expected, found)
    longest = max(waits, key=lambda idle: idle.steps)
    needs = str(longest.needs) if longest.needs else ""
    return IdleSteps(name, expected, found, (longest.device, str(longest.work), longest.steps, needs))


def _idle_steps(played: Timetable) -> tuple[int, int, int]:
    """The idle steps of all devices before their first piece of work, between their pieces, and after the last."""
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


def _same_orders(case: Case, one: Behavior, other: Behavior) -> bool:
    found, wrong = played(one), played(other)
    if not isinstance(found, Timetable) or not isinstance(wrong, Timetable):
        return found == wrong
    return found.orders == wrong.orders


def _same_cost(case: Case, one: Behavior, other: Behavior) -> bool:
    """Two timetables that take as long and hold as much, or that come to a halt."""
    found, wrong = played(one), played(other)
    if not isinstance(found, Timetable) or not isinstance(wrong, Timetable):
        return False
    if found.wrong or wrong.wrong:
        return found.wrong is not None and found.wrong == wrong.wrong
    return (found.steps, found.held) == (wrong.steps, wrong.held)
