"""Evaluators run students' programs: one may hang or die, and that costs only the program that did it."""

from __future__ import annotations

import contextlib
import json
import select
import signal
import time

import jax
import psutil
import pytest

from grader.classroom.verdicts.judge import Judge
from grader.classroom.verdicts.records import VERDICT
from grader.exercises.as_json import to_json
from grader.exercises.collecting import asks, collect
from grader.findings.verdicts import Deadlocked, TooLong
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
    return jax.shard_map(
        lambda a, b: jax.lax.psum(a @ b, "x"),
        mesh=mesh,
        check_vma=False,
        in_specs=(jax.P(None, "x"), jax.P("x", None)),
        out_specs=jax.P(),
    )(a, b)


def test_a_program_that_never_ends_is_stopped_and_the_next_is_judged():
    judge = Judge(seconds=6)
    try:
        stuck = judge(find("case3"), 3, _answers("case3", 3, never_ends)).verdict
        assert stuck.points == 0
        assert stuck.failure.findings == (TooLong(6.0),)
        assert judge(find("case3"), 3, _answers("case3", 3, right)).verdict.points == 4
    finally:
        judge.close()


def test_a_sum_that_is_not_made_is_told_in_grading_as_in_the_notebook(judge):
    exercise = find("one_all_reduce")
    unfinished = next(mistake for mistake in exercise.mistakes if mistake.name == "never_reduced")
    found = judge(exercise, 3, _answers(exercise.name, 3, exercise.mistaken(unfinished))).verdict
    assert found.failure.check == "runs" and found.mistake == "never_reduced"


def test_an_evaluator_that_was_killed_between_two_answers_costs_nobody_anything(judge):
    question = find("case3"), 3, _answers("case3", 3, right)
    assert judge(*question).verdict.points == 4
    judge.evaluators.process.kill()
    judge.evaluators.process.wait()
    assert judge(*question).verdict.points == 4


def _forked(outermost: psutil.Process) -> psutil.Process | None:
    """The youngest generation below: what the template has forked, once there is it."""
    inside = outermost.children(recursive=True)
    template = next((p for p in [outermost, *inside] if p.name().startswith("python")), None)
    return next(iter(template.children()), None) if template else None


class Dying(Judge):
    """Its evaluator ends while it works, by this signal: the first one, or every one."""

    signal, times = signal.SIGABRT, 99

    def _verdict(self, *question):
        fork = self.evaluators.fork

        @contextlib.contextmanager
        def doomed():
            with fork() as one:
                if self.times:
                    self.times -= 1
                    outermost = psutil.Process(self.evaluators.process.pid)
                    while not (forked := _forked(outermost)):
                        time.sleep(0.01)
                    forked.send_signal(self.signal)
                    select.select([one.wire], [], [], 20)  # until it has ended
                yield one

        self.evaluators.fork = doomed
        try:
            return super()._verdict(*question)
        finally:
            self.evaluators.fork = fork


def test_a_program_that_ends_its_evaluator_is_told_why():
    judge = Dying()
    verdict = judge(find("case3"), 3, _answers("case3", 3, right)).verdict
    judge.close()
    assert (verdict.points, verdict.worth) == (0, 4)
    assert verdict.failure.findings == (Deadlocked(),)


def test_an_evaluator_that_somebody_else_kills_costs_nobody_anything():
    judge = Dying()
    judge.signal, judge.times = signal.SIGKILL, 1
    verdict = judge(find("case3"), 3, _answers("case3", 3, right)).verdict
    judge.close()
    assert verdict.points == 4


def test_a_right_program_is_held_against_the_compilers_and_its_score_travels(judge):
    verdict = judge(find("case3"), 3, _answers("case3", 3, right)).verdict
    assert verdict.score is not None and verdict.score.yours == verdict.score.compilers
    assert VERDICT.read(json.loads(json.dumps(VERDICT.write(verdict)))) == verdict


def test_answers_that_make_no_sense_get_a_message_not_a_crash(judge):
    verdict = judge(find("case3"), 3, [{"program": "AAAA"}] * 5).verdict
    assert verdict.points == 0 and verdict.failure.findings
