"""Programs for a pod: judged by their values here, and by what a compiler says, which these tests say in its place."""

import dataclasses

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.chips.compiling import NoCompiler
from grader.chips.report import Fit
from grader.exercises import Array, Case, ChipFlops, Layout, PodExercise
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.findings import costs, problems, programs
from grader.findings.mistakes import KnownMistake
from grader.judging.behaviour import Execution
from grader.judging.compilations import Compilation

TWICE = PodExercise("twice", points=4, reference=lambda a: 2 * a, by_compiler=True)
POD = Case({"a": Layout((1024,), "bfloat16", P("x"))}, {"x": 8}, limits=[ChipFlops(10, 20)], pod="v5e:2x4")
CASES = [Case({"a": Array(np.arange(8.0, dtype=np.float32), P("x"))}, {"x": 8}, P()), POD]


def judged(work, fit):
    """The verdict on an answer, of whose compilation somebody says `fit`, or raises it; and what was compiled."""
    asked = []

    def compiled(request):
        asked.append(request)
        if isinstance(fit, Exception):
            raise fit
        return fit

    def executed(program, case):
        return Compilation(program, case, compiled) if case.pod else Execution(program, case)

    return explained(TWICE, CASES, collect("pod", asks(TWICE, CASES), work), executed), asked


def doubled(a, *, mesh):
    return a + a


def test_a_right_program_that_fits_earns_everything():
    verdict, (asked,) = judged(doubled, Fit("", 100, 15))
    assert verdict.passed and verdict.points == 4
    assert (asked.pod, dict(asked.mesh), asked.arguments) == ("v5e:2x4", {"x": 8}, (([1024], "bfloat16", ["x"]),))


def test_a_refused_program_keeps_the_points_for_its_values():
    verdict, _ = judged(doubled, Fit("Ran out of memory", 17, 0))
    assert verdict.points == 2 and verdict.failure.check == "pod"
    assert verdict.failure.findings == (programs.PodRefusal("v5e:2x4", "Ran out of memory"),)
    assert "v5e:2x4" in verdict.where.pod and dict(verdict.where.mesh) == {"x": 8}


@pytest.mark.parametrize("flops, expected", [(5, 10), (25, 20)])
def test_too_little_and_too_much_work_are_told(flops, expected):
    verdict, _ = judged(doubled, Fit("", 100, flops))
    (amount,) = verdict.failure.findings
    assert verdict.points == 2 and (amount.expected, amount.found) == (expected, flops)
    assert isinstance(amount, costs.WrongAmount)


def test_without_a_compiler_half_of_the_points_stay_open():
    verdict, _ = judged(doubled, NoCompiler("there is none here"))
    assert verdict.points == 2 and verdict.failure.open
    assert verdict.failure.findings == (programs.FitUnknown("there is none here"),)


def test_wrong_values_are_told_before_anything_is_compiled():
    verdict, asked = judged(lambda a, *, mesh: 3 * a, Fit("", 100, 15))
    assert verdict.failure.check == "values" and not asked


def test_a_program_that_cannot_be_written_for_the_pod_is_told_why():
    def of_eight(a, *, mesh):
        if a.shape != (8,):
            raise ValueError("eight numbers are enough")
        return 2 * a

    verdict, asked = judged(of_eight, Fit("", 100, 15))
    assert verdict.failure.check == "runs" and not asked
    assert verdict.failure.findings[0] == problems.Raised("ValueError", "eight numbers are enough")


def test_a_mistake_explains_a_refusal_where_the_compiler_says_the_same_to_both(monkeypatch):
    """Both want as much, and are refused."""
    exercise = dataclasses.replace(TWICE, mistakes=[])

    @exercise.mistake
    def added(a, *, mesh):
        """Words on it."""
        return a + a

    wants = {"add": 1000, "multiply": 1300, "subtract": 1005}

    def compiled(request):
        text = jax.export.deserialize(bytearray(request.program)).mlir_module()
        return Fit("Ran out of memory", next(n for name, n in wants.items() if f"stablehlo.{name} " in text), 0)

    monkeypatch.setattr("grader.judging.compilations.answer", lambda asked: asked)
    monkeypatch.setattr("grader.judging.compilations.fit_of", lambda asked, found: compiled(asked))

    def executed(program, case):
        return Compilation(program, case, compiled) if case.pod else Execution(program, case)

    for work, known in (
        (doubled, [KnownMistake("added", exactly=True)]),
        (lambda a, *, mesh: a - (-a), [KnownMistake("added", exactly=False)]),
        (lambda a, *, mesh: 2 * a, []),
    ):
        answers = collect("pod", asks(exercise, CASES), work)
        found = explained(exercise, CASES, answers, executed)
        assert [one for one in found.failure.findings if isinstance(one, KnownMistake)] == known


def test_a_wrong_value_that_nothing_explains_is_told_though_a_case_is_not_run():
    verdict, _ = judged(lambda a, *, mesh: a * a + 1, Fit("", 100, 15))
    assert verdict.failure.check == "values" and isinstance(verdict.failure.findings[0], programs.WrongElement)
