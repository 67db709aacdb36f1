"""What went wrong in a program: in its results, in what it sends, or in why it does not run."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from grader.exercises.case import Case
from grader.exercises.exercise import Mistake
from grader.exercises.verdict import Blamed
from grader.explaining.explainer import Alike, Explainer, mistaken_on
from grader.explaining.wrong_program import WrongProgram
from grader.explaining.wrong_results import evidence_of
from grader.findings.finding import Finding
from grader.judging import costs, results
from grader.judging.behaviour import (
    Execution,
    arrays_of,
    execution_of,
    same_behaviour,
    same_blocks,
    same_results,
)
from grader.judging.judgment import Behavior
from grader.judging.miss import Miss
from grader.judging.programs import ProgramJudgment
from grader.judging.references import expected_results, right_arrays
from grader.judging.refusals import meaning_of_refusal
from grader.programs.execution import Failed, Result

OF_DIVISION = "sharding", "communication"  # checks that hang on how arrays are divided


class ProgramExplainer(Explainer[ProgramJudgment]):
    """Evidence from the results of a program, and from what it sends."""

    def likenesses(self, check: str) -> Sequence[Alike]:
        """Where the result is wrong it decides; but a mistake that sends the same as well goes first."""
        if check == "work":
            return [self._held_alike]
        wrong = check in ("shape", "values")
        return [self._behave_alike, self._come_to_the_same] if wrong else [self._behave_alike]

    def _behave_alike(self, case: Case, one: Behavior, other: Behavior) -> bool:
        if not isinstance(one, Execution) or not isinstance(other, Execution):
            return False
        return same_behaviour(one, other, by_compiler=self.judgment.exercise.by_compiler)

    def misses(self, check: str, case: int, wrong: Behavior) -> bool:
        """Where too little is computed beside a transfer, it has to be such a one as in the answer."""
        if not super().misses(check, case, wrong):
            return False
        if check != "communication" or not isinstance(wrong, Execution):
            return True
        return costs.idle_transfers(wrong) == costs.idle_transfers(self.judgment.execution(case))

    def _held_alike(self, case: Case, one: Behavior, other: Behavior) -> bool:
        """Where memory counts, so does what is given away."""
        return self._behave_alike(case, one, other) and _donated(one) == _donated(other)

    def _come_to_the_same(self, case: Case, one: Behavior, other: Behavior) -> bool:
        return isinstance(one, Execution) and isinstance(other, Execution) and same_results(one, other)

    def parts(self, k: int, done: Behavior) -> Sequence[Any]:
        """The arrays of the result."""
        return arrays_of(done)

    def mistaken(self, mistake: Mistake, k: int, check: str = "") -> Iterable[Behavior]:
        """To compile a gradient takes most of the time, and most mistakes are told apart by their results."""
        differs = {"shape": self._begins_otherwise, "values": self._begins_otherwise, "": self._begins_wrong}.get(check)
        if differs and self.cases[k].cotangents is not None and arrays_of(self.behaviors[k]):
            # (Before gradients all spellings come to the same, if JAX makes a program of them.)
            before = mistaken_on(self.exercise, mistake, _without_gradients(self.cases[k]))
            made = next((arrays for wrong in before if (arrays := arrays_of(wrong))), ())
            if differs(k, made):
                return ()
        return super().mistaken(mistake, k, check)

    def _begins_otherwise(self, k: int, made: Sequence[Result]) -> bool:
        """Whether results without gradients are not those of the answer to a case."""
        own, case = self._before_gradients(k), self.cases[k]
        return len(own) != len(made) or any(_told_apart(a, b, case) for a, b in zip(own, made, strict=True))

    def _begins_wrong(self, k: int, made: Sequence[Result]) -> bool:
        """Whether one of them is wrong, and not as in the answer."""
        own, case = self._before_gradients(k), self.cases[k]
        if len(own) != len(made):
            return True
        expected = dict(list(expected_results(self.exercise, case).items())[: len(made)])
        each = zip(results.right(self.judgment.execution(k), made, expected), own, made, strict=True)
        return any(not well and _told_apart(a, b, case) for well, a, b in each)

    def _before_gradients(self, k: int) -> Sequence[Result]:
        run = self.judgment.execution(k)
        return [result for (place, _), result in zip(run.forms, run.results, strict=True) if place.startswith("[0]")]

    def right_parts(self, k: int, done: Behavior) -> Sequence[bool]:
        return right_arrays(self.exercise, self.cases[k], done)

    def same_part(self, k: int, one: Result, other: Result) -> bool:
        return same_blocks(one, other, self.cases[k].roundings)

    def _wrong(self, k: int) -> WrongProgram:
        """What is known of the program, which misses a check in this case."""
        return WrongProgram(self.exercise, self.cases, self.behaviors, k, self.judgment.witnesses(k))

    def evidence(self, check: str, case: int) -> tuple[Finding, ...]:
        """What a wrong result relates to; else, on which mesh this check is passed."""
        if check == "runs" and (meaning := meaning_of_refusal(self.behaviors[case])):
            return (meaning,)
        return evidence_of(check, self._wrong(case))

    def blamed(self, check: str, k: int, miss: Miss) -> Blamed | None:
        run = self.behaviors[k]
        if not isinstance(run, Execution):
            return super().blamed(check, k, miss)
        try:
            authored = run.structure.authored
        except Failed:
            return None
        kinds = tuple(c.kind for c in authored)
        if miss.about:
            return Blamed(k, miss.about, kinds, "most" if miss.most else "")
        return Blamed(k, () if check in OF_DIVISION else tuple(range(len(kinds))), kinds, "all")


@functools.lru_cache(maxsize=64)
def _without_gradients(case: Case) -> Case:
    """The case in which nothing is asked for but the result."""
    return replace(case, cotangents=None, limits=())


def _told_apart(one: Result, other: Result, case: Case) -> bool:
    """Whether two arrays are told apart by their blocks. The compiler may lay one out otherwise where it is alone."""
    if one.blocks.shape != other.blocks.shape:
        return True
    return one.blocks.indices == other.blocks.indices and not same_blocks(one, other, case.roundings)


def _donated(done: Behavior) -> tuple[int, ...]:
    return execution_of(done).structure.donated
