"""Programs of any bytes: the judge never reads one in its own process, and an evaluator that does may end."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import pytest
from answering import answered
from fuzzing import fuzz
from hypothesis import strategies as st
from jax import export

from grader.exercises.as_json import to_json
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.lessons import find
from grader.programs.execution import Failed
from grader.programs.program import Program, trace

pytest.importorskip("nbgrader", reason="the instructor's side is not installed")
from grader.classroom.verdicts.judge import Evaluated, Judge  # noqa: E402

VALID = trace(lambda a: 2 * a, jnp.ones(4)).artefact


@st.composite
def mutated(draw) -> bytes:
    """A valid artefact with some bytes changed, left out or put in."""
    data = bytearray(VALID)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8))
    return bytes(data)


def test_the_judge_reads_no_program_in_its_own_process(monkeypatch):
    """What an evaluator says is all it has: here, that it could not read them either."""

    def never(*_: object) -> None:
        raise AssertionError("a student's bytes were read in the process that decides")

    def fails(_: object) -> None:
        raise Failed("ValueError", "no program")

    exercise = find("case3")
    cases = exercise.draw_cases(1)

    def judged(data: bytes) -> None:
        answers = [Program(data)] * len(cases)
        found = explained(exercise, cases, answers, lambda program, case: Evaluated(program, case, fails))
        assert found.points == 0 and found.failure is not None and found.failure.check == "runs"

    judged(VALID)  # the mistakes, which are ours, are read once
    monkeypatch.setattr(export, "deserialize", never)
    fuzz("programs", mutated() | st.binary(max_size=64), judged)


@pytest.fixture(scope="module")
def judging():
    judge_ = Judge()
    yield judge_
    judge_.close()


@pytest.mark.parametrize("keep", [0, 0.5, 0.99])
def test_what_is_left_of_a_program_earns_nothing_and_the_next_is_judged(judging, keep):
    exercise = find("case3")
    given = collect(
        exercise.form,
        asks(exercise, exercise.draw_cases(1, thorough=True)),
        answered("solutions", "07_matmul")["case3"],
    )
    cut = [Program(a.artefact[: int(keep * len(a.artefact))]) for a in given]
    found = functools.partial(judging, exercise, 1)
    assert found(to_json(cut)).verdict.points == 0
    assert found(to_json(given)).verdict.points == exercise.points
