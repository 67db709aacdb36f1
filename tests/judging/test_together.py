"""Answers that run in several processes: right, wrong in every way, waiting for ever, and hostile."""

import json

import jax
import numpy as np
import pytest
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader import feedback
from grader.arrays.described import PerProcess
from grader.exercises.as_json import question_from_json, to_json
from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.forms import ProcessExercise
from grader.explaining.explained import explained
from grader.findings.mistakes import KnownMistake
from grader.findings.processes import DidNotEnd, WrongInProcess
from grader.findings.relations import TimesExpected
from grader.processes.launch import launch_of

sums = ProcessExercise("t_sums", points=4, reference=lambda process_id, num_processes, *, mine: float(np.sum(mine)))


@sums.cases
def cases(draw):
    rows = int(draw.rng.integers(1, 4)) * 2
    yield Case({"mine": PerProcess(tuple(draw.values(4, rows)))}, mesh={"processes": 4, "devices": 2})


def joined(process_id, num_processes):
    jax.distributed.initialize(num_processes=num_processes, process_id=process_id)
    return jax.make_mesh((jax.device_count(),), ("x",), axis_types=(AxisType.Auto,))


def right(process_id, num_processes, *, mine):
    mesh = joined(process_id, num_processes)
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), mine)
    return float(jax.jit(lambda a: a.sum())(whole))


def right_otherwise(process_id, num_processes, *, mine):
    joined(process_id, num_processes)
    return float(multihost_utils.process_allgather(mine).sum())


@sums.mistake
def only_mine(process_id, num_processes, *, mine):
    """Each process summed what it has itself, and nobody asked the others."""
    joined(process_id, num_processes)
    return float(mine.sum())


@sums.mistake
def too_late(process_id, num_processes, *, mine):
    """JAX had settled its devices before it heard of the other processes."""
    jax.numpy.zeros(3).block_until_ready()
    return right(process_id, num_processes, mine=mine)


@sums.mistake
def the_first_alone(process_id, num_processes, *, mine):
    """Process 0 waits in a sum for the others, who never come to it."""
    mesh = joined(process_id, num_processes)
    if process_id > 0:
        return 0.0
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, P("x")), mine)
    return float(jax.jit(lambda a: a.sum())(whole))


def crossed(value):
    return question_from_json(json.loads(json.dumps(to_json(value))))


def verdict(answer, exercise=sums):
    drawn = exercise.draw_cases(1)
    asked = [crossed(ask) for ask in asks(exercise, drawn)]
    return explained(exercise, drawn, [crossed(a) for a in collect(exercise.form, asked, answer)])


@pytest.mark.parametrize("answer", [right, right_otherwise])
def test_right_answers_earn_everything(answer):
    found = verdict(answer)
    assert found.passed and found.points == 4, found.failure


@pytest.mark.parametrize(
    ("wrong", "check", "kind", "words"),
    [
        (only_mine, "values", WrongInProcess, ""),
        (too_late, "ends", DidNotEnd, "failed first: it raised RuntimeError"),
        (the_first_alone, "ends", DidNotEnd, "process 0"),
    ],
)
def test_each_mistake_is_named_and_what_happened_is_told(wrong, check, kind, words):
    found = verdict(wrong)
    first, known = found.failure.findings
    assert (found.failure.check, type(first), known) == (check, kind, KnownMistake(wrong.__name__, exactly=True))
    assert words in getattr(first, "message", "") and "Traceback" not in feedback.plain_card(found)


def added_twice(process_id, num_processes, *, mine):
    return 2 * right_otherwise(process_id, num_processes, mine=mine)


def right_in_the_first_alone(process_id, num_processes, *, mine):
    whole = right_otherwise(process_id, num_processes, mine=mine)
    return whole if process_id == 0 else -whole


@pytest.mark.parametrize(("wrong", "factor", "right"), [(added_twice, 2, 0), (right_in_the_first_alone, -1, 1)])
def test_what_wrong_processes_have_in_common_is_told(wrong, factor, right):
    _, common, *right_in = verdict(wrong).failure.findings
    assert common == TimesExpected(factor) and [one.right for one in right_in] == [right] * bool(right)


def unwritten(process_id, num_processes, *, mine): ...


def returns_nothing(process_id, num_processes, *, mine):
    joined(process_id, num_processes)


def returns_what_has_no_form(process_id, num_processes, *, mine):
    return object()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (..., "starter"),
        (unwritten, "starter"),
        (returns_nothing, "None"),
        (returns_what_has_no_form, "holds type"),
        (3, "no function"),
        (lambda process_id, num_processes, *, mine: 1, "no source"),
    ],
)
def test_answers_of_the_wrong_kind_are_told_so(answer, reason):
    found = verdict(answer)
    assert not found.points and reason in str(found.failure.findings[0])


# In the classroom: behind walls.


def leaves(process_id, num_processes, *, mine):
    import os

    os._exit(0)


def kills_the_rest(process_id, num_processes, *, mine):
    import os
    import signal

    for number in range(2, 4000):
        try:
            if number != os.getpid():
                os.kill(number, signal.SIGKILL)
        except OSError:
            pass
    return 0.0


def forks_for_ever(process_id, num_processes, *, mine):
    import os
    import time

    for _ in range(6):  # (each doubles them)
        os.fork()
    time.sleep(100)


def looks_for_the_reference(process_id, num_processes, *, mine):
    from grader.lessons import EXERCISES

    return EXERCISES["t_sums"].reference(process_id, num_processes, mine=mine)


def asks_the_network(process_id, num_processes, *, mine):
    import socket

    return float(socket.create_connection(("198.51.100.1", 80), timeout=2).fileno())


def looks_into_frames(process_id, num_processes, *, mine):
    import gc
    import sys

    frame, seen = sys._getframe(), list(gc.get_objects())
    while frame:
        seen += frame.f_locals.values()
        frame = frame.f_back
    seen += [value for known in seen if hasattr(known, "arguments") for value in dict(known.arguments).values()]
    parts = next(one.values for one in seen if type(one).__name__ == "PerProcess")
    return float(sum(part.sum() for part in parts))


def looks_into_memory(process_id, num_processes, *, mine):
    """The question as it came: the last that came is the right one."""
    import base64
    import ctypes
    import pathlib
    import re

    import numpy as np

    found = []
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        place, rights = line.split()[:2]
        start, stop = (int(end, 16) for end in place.split("-"))
        if rights.startswith("rw") and stop - start < 1 << 28:
            region = ctypes.string_at(start, stop - start)
            found += re.findall(rb"\x22each\x22: *.{0,20}values[^\n]{0,4000}", region)
    texts = re.findall(rb"data\x22: \x22([A-Za-z0-9+/=]+)\x22", max(found, key=len))
    return float(sum(np.frombuffer(base64.b64decode(text), np.float32).sum() for text in texts))


def forges_its_report(process_id, num_processes, *, mine):
    import json
    import os

    said = json.dumps({"returned": float(mine.sum())}).encode()
    for descriptor in range(3, 60):
        try:
            os.write(descriptor, said)
        except OSError:
            pass
    os._exit(0)


@pytest.fixture(scope="module")
def judging():
    pytest.importorskip("nbgrader", reason="the instructor's side is not installed")
    from grader.classroom.verdicts.judge import Judge

    judge_ = Judge()
    yield judge_
    judge_.close()


def graded(judging, answer):
    drawn = sums.draw_cases(1, thorough=True)
    return judging(sums, 1, [to_json(a) for a in collect(sums.form, asks(sums, drawn), answer)]).verdict


def test_behind_walls_a_right_answer_earns_everything(judging):
    found = graded(judging, right)
    assert found.passed, found.failure


@pytest.mark.parametrize(
    "hostile",
    [
        leaves,
        kills_the_rest,
        forks_for_ever,
        looks_for_the_reference,
        looks_into_frames,
        looks_into_memory,
        asks_the_network,
    ],
)
def test_behind_walls_hostile_answers_get_nothing_and_the_next_is_judged(judging, hostile):
    assert graded(judging, hostile).points == 0
    assert graded(judging, only_mine).mistake == "only_mine"


def test_a_report_of_the_wrong_form_is_a_wrong_answer(judging):
    for said in ({}, {"processes": 3}, {"processes": [{"status": "x"}]}, []):
        with pytest.raises(ValueError):
            launch_of(said)
    assert graded(judging, forges_its_report).points == 0
