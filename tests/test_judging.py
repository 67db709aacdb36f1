"""The judge's process runs students' programs: it may hang or die, and costs only the program that did it."""

from __future__ import annotations

import signal

import jax
import pytest

from grader.answers import asks, collect, to_json
from grader.classroom.judging import Judge
from grader.lessons import find


@pytest.fixture(scope="module")
def judge():
    judge = Judge()
    yield judge
    judge.close()


def _answers(name: str, seed: int, given) -> list:
    exercise = find(name)
    return to_json(collect(exercise.form, asks(exercise, exercise.draw_cases(seed, thorough=True)), given))


def never_ends(a, b, *, mesh):
    return jax.lax.while_loop(lambda c: c[0, 0] == c[0, 0], lambda c: c + 1, a @ b)


def right(a, b, *, mesh):
    return jax.shard_map(lambda a, b: jax.lax.psum(a @ b, "x"), mesh=mesh, check_vma=False,
                         in_specs=(jax.P(None, "x"), jax.P("x", None)), out_specs=jax.P())(a, b)


def test_a_program_that_never_ends_is_stopped_and_the_next_is_judged():
    judge = Judge(seconds=6)
    try:
        stuck = judge(find("case3"), 3, _answers("case3", 3, never_ends)).verdict
        assert stuck.points == 0
        assert "did not come to an end within 6 seconds" in stuck.words
        assert judge(find("case3"), 3, _answers("case3", 3, right)).verdict.points == 4
    finally:
        judge.close()


def test_a_judge_that_was_killed_meanwhile_costs_nobody_anything(judge):
    question = find("case3"), 3, _answers("case3", 3, right)
    assert judge(*question).verdict.points == 4
    judge.process.kill()
    assert judge(*question).verdict.points == 4


class Aborting(Judge):
    """Ends as XLA ends a process in which a collective waits too long."""

    def _ask(self, question):
        super()._ask(question)
        self.process.send_signal(signal.SIGABRT)
        self.process.wait()
        raise EOFError


def test_a_program_that_ends_the_judge_is_told_why():
    verdict = Aborting()(find("case3"), 3, _answers("case3", 3, right)).verdict
    assert (verdict.points, verdict.worth) == (0, 4)
    assert "wait for each other" in verdict.words


def test_answers_that_make_no_sense_get_a_message_not_a_crash(judge):
    verdict = judge(find("case3"), 3, [{"program": "AAAA"}] * 5).verdict
    assert verdict.points == 0 and verdict.words
