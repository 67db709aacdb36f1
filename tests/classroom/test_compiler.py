"""A student's program is compiled for a pod behind the walls, within limits; nobody has compiled it before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from answering import answered

from grader.chips import compiling
from grader.classroom.verdicts.judge import COMPILER, Judge
from grader.classroom.walls.templates import Template
from grader.exercises.as_json import to_json
from grader.exercises.collecting import asks, collect
from grader.feedback import explanation
from grader.lessons import find

pytestmark = [pytest.mark.needs("libtpu"), pytest.mark.needs("walls"), pytest.mark.slow]


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch, tmp_path):
    monkeypatch.setenv(compiling.CACHE, str(tmp_path))
    monkeypatch.setattr(compiling, "STORED", tmp_path / "stored")


def verdict(**limits):
    """On the lesson's own solution, by a compiler with these limits."""
    exercise, work = find("it_fits"), answered("solutions", "21_real_chips")["it_fits"]
    judge = Judge()
    judge.compilers = Template("compiler", limits=replace(COMPILER, **limits))
    try:
        cases = exercise.draw_cases(3, thorough=True)
        return judge(exercise, 3, to_json(collect(exercise.form, asks(exercise, cases), work)))
    finally:
        judge.close()


def test_a_program_that_fits_earns_everything():
    found = verdict()
    assert found.verdict.passed, found.verdict.failure


def test_a_compilation_that_takes_too_long_is_stopped_and_may_be_tried_again():
    found = verdict(seconds=0.5)
    assert found.verdict.points == 2 and found.verdict.failure.open and found.doubtful
    assert "was not done after 0.5 seconds, and was stopped" in explanation(found.verdict)


def test_a_compilation_that_takes_too_much_memory_is_stopped():
    found = verdict(memory=100 << 20)
    assert found.verdict.points == 2 and found.verdict.failure.open
    assert "more than the 100 MiB of memory" in explanation(found.verdict)
