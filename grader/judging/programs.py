"""Programs: traced, never called; compared with what one device computes, and with what they may cost.

The checks: it runs; its shape; its values on every device; its sharding; its communication; its work. Zeros with the
right sharding earn nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from grader.arrays.laid import holds_arrays
from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.compilers import compilers_bytes, par
from grader.exercises.exercise import Exercise
from grader.exercises.forms import ProgramExercise
from grader.exercises.verdict import Score
from grader.judging import costs, results
from grader.judging.behaviour import Execution, execution_of, leaves_all_to_the_compiler, same_behaviour
from grader.judging.judgment import Check, Judgment
from grader.judging.miss import Miss
from grader.judging.references import expected_results
from grader.judging.refusals import why_not_run
from grader.judging.results import Expected
from grader.programs.program import Program
from grader.programs.traceable import in_jax


class ProgramJudgment(Judgment):
    """The values are worth a half, what they cost the rest."""

    exercise: ProgramExercise
    runs = Program

    @property
    def checks(self) -> Sequence[Check]:
        points = self.exercise.points
        sent = costs.sent_as_compiled if self.exercise.by_compiler else costs.sent_as_written
        return [
            Check("runs", 0.0, lambda k: why_not_run(self.behaviors[k])),
            Check("shape", 0.0, self._compared(results.shape)),
            Check("values", points * 0.5, self._compared(results.values)),
            Check("sharding", 0.0, self._compared(results.layout)),
            Check("communication", points * 0.25, lambda k: sent(self.execution(k))),
            Check("work", points * 0.25, lambda k: costs.work_divided(self.execution(k))),
        ]

    def _compared(self, miss: Callable[[Execution, Expected], Miss | None]) -> Callable[[int], Miss | None]:
        """The result on every device, compared with what is expected there."""
        return lambda k: miss(self.execution(k), expected_results(self.exercise, self.cases[k]))

    def execution(self, k: int) -> Execution:
        return execution_of(self.behaviors[k])

    def witnesses(self, failing: int) -> Sequence[int]:
        """Three at most: the one drawn alike on another mesh, on its own the last, which is square, and the very first,
        on which nothing was missed. (To run a mistake on all would keep the student waiting.)"""
        own = [k for k, case in enumerate(self.cases) if case.mesh == self.cases[failing].mesh]
        others = [k for k in range(len(self.cases)) if k not in own]
        elsewhere = [k for k in others if self.cases[k].mesh == self.cases[others[0]].mesh]
        alike = [elsewhere[own.index(failing) % len(elsewhere)]] if elsewhere else []
        return list(dict.fromkeys([*alike, *[0][:failing], *[k for k in own if k != failing][-1:]]))

    def is_untouched(self, k: int) -> bool:
        return all(self._is_formula(j) for j in (k, *self.witnesses(k)))

    def _is_formula(self, k: int) -> bool:
        run, nothing = self.behaviors[k], _nothing_done(self.exercise, self.cases[k])
        if not isinstance(run, Execution) or nothing is None:
            return False
        return same_behaviour(run, nothing, by_compiler=True) or leaves_all_to_the_compiler(run, nothing)

    def score(self) -> Score | None:
        if not self.exercise.against_compiler:
            return None
        yours = sum(self.execution(k).structure.bytes_sent for k in range(len(self.cases)))
        return Score(par(self.cases), yours, compilers_bytes(self.exercise, self.cases))


@functools.lru_cache(maxsize=256)
def _nothing_done(exercise: Exercise, case: Case) -> Execution | None:
    """What doing nothing comes to: the formula of an exercise as it is, with no shardings; None if it is no program."""

    def formula(*arrays: Any, **_: Any) -> Any:
        each = iter(arrays)
        return in_jax(exercise.reference)(*(next(each) if holds_arrays(a) else a for a in case.arguments.values()))

    (answer,) = collect(exercise.form, asks(exercise, [case]), formula)
    return Execution(answer, case) if isinstance(answer, Program) else None
