"""Programs for a pod: their values are compared with one device's in small cases; on the pod they have to fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from grader.chips.compiling import NoCompiler
from grader.exercises.verdict import Outcome
from grader.findings.programs import FitUnknown, PodRefusal
from grader.judging.compilations import Compilation
from grader.judging.judgment import Behavior, Check, Explained
from grader.judging.miss import Miss
from grader.judging.programs import ProgramJudgment

POD = "pod"  # the check on which a compiler decides


class PodJudgment(ProgramJudgment):
    """Half of the points are for the values, half for what the pod's compiler says. How the results are sharded is
    up to the program."""

    @property
    def checks(self) -> Sequence[Check]:
        small = [
            replace(check, miss=self._where_it_is_run(check.miss))
            for check in super().checks
            if check.name in ("runs", "shape", "values")
        ]
        return [*small, Check(POD, self.exercise.points * 0.5, self._on_pod)]

    def _where_it_is_run(self, missed: Callable[[int], Miss | None]) -> Callable[[int], Miss | None]:
        return lambda k: None if isinstance(self.behaviors[k], Compilation) else missed(k)

    def _on_pod(self, k: int) -> Miss | None:
        behavior = self.behaviors[k]
        if not isinstance(behavior, Compilation):
            return None
        if isinstance(behavior.said, NoCompiler):
            return Miss((FitUnknown(str(behavior.said)),))
        if behavior.said.refusal:
            return Miss((PodRefusal(behavior.case.pod, behavior.said.refusal),))
        flops = behavior.said.flops
        return next((Miss((found,)) for limit in behavior.case.limits if (found := limit.of_chip(flops))), None)

    def missed(self, check: Check, why: Miss, explained: Explained) -> Outcome:
        """If nobody could compile it, the check is left open."""
        if check.name == POD and any(is_unknown(behavior) for behavior in self.behaviors):
            return Outcome.left_open(self.exercise.name, POD, check.points, why.findings)
        return super().missed(check, why, explained)

    def witnesses(self, failing: int) -> Sequence[int]:
        """Cases that are run; a refusal needs none, for the values have been right."""
        if self.cases[failing].pod:
            return []
        return [k for k in super().witnesses(failing) if not self.cases[k].pod]


def is_unknown(behavior: Behavior) -> bool:
    """Whether nobody knows what the compiler says."""
    return isinstance(behavior, Compilation) and isinstance(behavior.said, NoCompiler)
