"""Programs: traced, never called; held against what one device computes, and against what they may cost.

The rungs: it runs; its shape; its values on every device; its layout; its communication; its work. Zeros with a right
layout earn nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from grader.exercises.case import Case
from grader.exercises.compilers import compilers_bytes, par
from grader.exercises.exercise import Mistake
from grader.exercises.forms import ProgramExercise
from grader.exercises.verdict import Blamed, Score
from grader.judging import costs, results
from grader.judging.behaviour import Execution, same_behaviour, same_blocks, same_results
from grader.judging.ladder import Alike, Done, Hint, Ladder, Rung, mistaken_on
from grader.judging.miss import Miss
from grader.judging.nothing import nothing_done
from grader.judging.references import expected_results
from grader.judging.refusals import meaning_of_refusal, why_not_run
from grader.judging.results import Expected
from grader.judging.right_repairs import repaired_collectives, right_collective, right_repair
from grader.judging.wrong_program import WrongProgram, arrays_of, execution_of, right_arrays
from grader.judging.wrong_results import shape_signature, value_deviation, value_remainder, value_signature
from grader.programs.execution import Failed, Result
from grader.programs.program import Program
from grader.programs.repairs import Repair

OF_DIVISION = "layout", "communication"  # checks that hang on how arrays are divided


class ProgramLadder(Ladder):
    """The values are worth a half, what they cost the rest."""

    exercise: ProgramExercise
    runs = Program

    @property
    def rungs(self) -> Sequence[Rung]:
        points = self.exercise.points
        sent = costs.sent_as_compiled if self.exercise.by_compiler else costs.sent_as_written
        return [
            Rung("runs", 0.0, lambda k: why_not_run(self.done[k])),
            Rung("shape", 0.0, self._compared(results.shape)),
            Rung("values", points * 0.5, self._compared(results.values)),
            Rung("layout", 0.0, self._compared(results.layout)),
            Rung("communication", points * 0.25, lambda k: sent(self._run(k))),
            Rung("work", points * 0.25, lambda k: costs.work_divided(self._run(k))),
        ]

    def _compared(self, miss: Callable[[Execution, Expected], Miss | None]) -> Callable[[int], Miss | None]:
        """The result on every device, held against what is expected there."""
        return lambda k: miss(self._run(k), expected_results(self.exercise, self.cases[k]))

    def _run(self, k: int) -> Execution:
        return execution_of(self.done[k])

    def likenesses(self, check: str) -> Sequence[Alike]:
        """Where the result is wrong it decides; but a mistake that sends the same as well goes first."""
        if check == "work":
            return [self._held_alike]
        wrong = check in ("shape", "values")
        return [self._behave_alike, self._come_to_the_same] if wrong else [self._behave_alike]

    def _behave_alike(self, case: Case, one: Done, other: Done) -> bool:
        if not isinstance(one, Execution) or not isinstance(other, Execution):
            return False
        return same_behaviour(one, other, by_compiler=self.exercise.by_compiler)

    def _misses(self, check: str, failing: int, wrong: Done) -> bool:
        """Where too little is computed beside a transfer, it has to be such a one as in the answer."""
        if not super()._misses(check, failing, wrong):
            return False
        if check != "communication" or not isinstance(wrong, Execution):
            return True
        return costs.idle_transfers(wrong) == costs.idle_transfers(self._run(failing))

    def _held_alike(self, case: Case, one: Done, other: Done) -> bool:
        """Where memory counts, so does what is given away."""
        return self._behave_alike(case, one, other) and _donated(one) == _donated(other)

    def _come_to_the_same(self, case: Case, one: Done, other: Done) -> bool:
        return isinstance(one, Execution) and isinstance(other, Execution) and same_results(one, other)

    def parts(self, k: int, done: Done) -> Sequence[Any]:
        """The arrays of the result."""
        return arrays_of(done)

    def mistaken(self, mistake: Mistake, k: int, check: str = "") -> Iterable[Done]:
        """To compile a gradient takes most of the time, and most mistakes are told apart by their results."""
        differs = {"shape": self._begins_otherwise, "values": self._begins_otherwise, "": self._begins_wrong}.get(check)
        if differs and self.cases[k].cotangents is not None and arrays_of(self.done[k]):
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
        due = dict(list(expected_results(self.exercise, case).items())[: len(made)])
        each = zip(results.right(self._run(k), made, due), own, made, strict=True)
        return any(not well and _told_apart(a, b, case) for well, a, b in each)

    def _before_gradients(self, k: int) -> Sequence[Result]:
        run = self._run(k)
        return [result for (place, _), result in zip(run.forms, run.results, strict=True) if place.startswith("[0]")]

    def right_parts(self, k: int, done: Done) -> Sequence[bool]:
        return right_arrays(self.exercise, self.cases[k], done)

    def same_part(self, k: int, one: Result, other: Result) -> bool:
        return same_blocks(one, other, self.cases[k].roundings)

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
        run, nothing = self.done[k], nothing_done(self.exercise, self.cases[k])
        return isinstance(run, Execution) and nothing is not None and same_behaviour(run, nothing, by_compiler=True)

    def score(self) -> Score | None:
        if not self.exercise.against_compiler:
            return None
        yours = sum(self._run(k).structure.bytes_sent for k in range(len(self.cases)))
        return Score(par(self.cases), yours, compilers_bytes(self.exercise, self.cases))

    def _wrong(self, k: int) -> WrongProgram:
        """What is known of the program, which misses a check in this case."""
        return WrongProgram(self.exercise, self.cases, self.done, k, self.witnesses(k))

    def signature(self, check: str, k: int) -> str:
        """What the wrong arrays of the result give away; else, on which mesh all was well."""
        wrong = self._wrong(k)
        if check == "values":
            return value_signature(wrong)
        if check == "runs" and (words := meaning_of_refusal(self.done[k])):
            return words
        if check == "shape" and (words := shape_signature(wrong)):
            return words
        if words := wrong.well_before(check):
            return words
        return results.how_laid_out(wrong.run, wrong.expected) if check == "layout" else ""

    def repairs(self, check: str, k: int) -> tuple[Repair | None, Mistake | None]:
        return right_repair(self._wrong(k)) if check == "values" else (None, None)

    def deviation(self, check: str, k: int) -> str:
        return value_deviation(self._wrong(k)) if check == "values" else ""

    def remaining(self, check: str, k: int) -> str:
        return value_remainder(self._wrong(k)) if check == "values" else ""

    def hint(self, check: str, k: int) -> Hint:
        """What explains the values does not say where: the collective that one would have to change does."""
        found = super().hint(check, k)
        if found.repair or not found.words or check != "values":
            return found
        return replace(found, repair=right_collective(self._wrong(k)))

    def blamed(self, check: str, k: int, miss: Miss, hint: Hint) -> Blamed | None:
        run = self.done[k]
        if not isinstance(run, Execution):
            return super().blamed(check, k, miss, hint)
        try:
            authored = run.structure.authored
        except Failed:
            return None
        kinds = tuple(c.kind for c in authored)
        if about := miss.about if hint.repair is None else repaired_collectives(hint.repair, authored):
            return Blamed(k, about, kinds, "most" if miss.most else "")
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


def _donated(done: Done) -> tuple[int, ...]:
    return execution_of(done).structure.donated
