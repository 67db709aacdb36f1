"""The same answer gets the same findings, however fast the machine is, and whether it is graded or asked about."""

import contextlib
import time
from dataclasses import replace

import pytest

from grader.exercises.as_json import to_json
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.findings.finding import finding_to_json
from grader.judging.values import expected_value
from grader.lessons import EXERCISES

PROGRAMS = "ring_all_gather", "case3_layer", "constrain"
FUNCTIONS = "block_matmul", "count_shardings", "bubble", "axis_groups", "device_grid", "capacity_numbers"
OTHERS = "bytes_sent", "predict_moves", "one_f_one_b"  # tables, and a timetable


def here(exercise, seed, answers):
    return explained(exercise, exercise.draw_cases(seed, thorough=True), answers)


def findings(name, number, judged=here):
    """What is found of a declared mistake, if nobody had declared any."""
    exercise = EXERCISES[name]
    mistake = exercise.mistakes[number % len(exercise.mistakes)]
    undeclared = replace(exercise, mistakes=[])
    cases, answer = undeclared.draw_cases(1, thorough=True), mistake.spellings()[0]
    if exercise.form == "table":
        made = {case.key: mistake.wrong(**case.arguments) for case in cases}
        answer = {
            case.key: expected_value(exercise, case) if made[case.key] is None else made[case.key] for case in cases
        }
    found = judged(undeclared, 1, collect(exercise.form, asks(undeclared, cases), answer))
    return [[finding_to_json(one) for one in outcome.findings] for outcome in found.outcomes]


@pytest.mark.parametrize("name", PROGRAMS + FUNCTIONS + OTHERS)
def test_no_finding_depends_on_a_clock(name, monkeypatch):
    slow = findings(name, 0), findings(name, -1)
    assert any(len(outcome) > 1 for verdict in slow for outcome in verdict)
    for clock in ("process_time", "monotonic", "perf_counter", "time"):
        monkeypatch.setattr(time, clock, faster(getattr(time, clock)))
    assert (findings(name, 0), findings(name, -1)) == slow


def faster(clock):
    """A clock that goes ten thousand times as fast."""
    start = clock()
    return lambda: start + 10_000 * (clock() - start)


def test_behind_the_walls_the_same_is_found():
    pytest.importorskip("nbgrader", reason="the instructor's side is not installed")
    from grader.classroom.verdicts.judge import Judge

    with contextlib.closing(Judge()) as judge:

        def walled(exercise, seed, answers):
            return judge(exercise, seed, to_json(answers)).verdict

        for name in PROGRAMS:
            assert findings(name, 0, walled) == findings(name, 0)
