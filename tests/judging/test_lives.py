"""A run that is killed and started again: what the second is given, and what is found of one that was not killed."""

import tempfile
from pathlib import Path

import pytest

from grader.arrays.described import PerLife
from grader.exercises import Case, ProcessExercise
from grader.exercises.answers import Script
from grader.exercises.script import script_of
from grader.explaining.explained import explained
from grader.findings.mistakes import KnownMistake
from grader.findings.processes import DidNotEnd, NotKilled, WrongInProcess
from grader.findings.values import WrongValue
from grader.judging.together import run_through
from grader.processes.launch import Launch, Process

exercise = ProcessExercise("counted", points=2, reference=lambda process_id, num_processes, *, begin: [begin[0], 5])


@exercise.cases
def _(draw):
    yield Case({"begin": PerLife((40, 0))}, {"processes": 1, "devices": 1, "killed_at": 3})


@exercise.mistake
def begun_again(process_id, num_processes, *, folder, begin):
    """Nothing of the first run was kept."""
    for step in range(6):
        print(f"step {step}")
    return [begin, 5]


def kept(process_id, num_processes, *, folder, begin):
    import pathlib

    file = pathlib.Path(folder, "begin")
    if not file.exists():
        file.write_text(str(begin))
    for step in range(6):
        print(f"step {step}")
    return [int(file.read_text()), step]


def silent(process_id, num_processes, *, folder, begin):
    return [begin, 5]


def breaks_later(process_id, num_processes, *, folder, begin):
    if begin == 0:
        raise KeyError("no checkpoint")
    print("step 3")


def verdict(work):
    return explained(exercise, exercise.draw_cases(), [Script(script_of(work), work.__name__)])


def test_the_second_run_has_the_folder_of_the_first_and_arguments_of_its_own():
    found = verdict(kept)
    assert found.passed, found.failure


def test_what_is_not_in_the_folder_is_lost():
    found = verdict(begun_again)
    wrong = WrongInProcess(0, WrongValue("", "[40, 5]", "[0, 5]"))
    assert found.failure.findings == (wrong, KnownMistake("begun_again", exactly=True))


@pytest.mark.parametrize(("work", "kind"), [(silent, NotKilled), (breaks_later, DidNotEnd)])
def test_in_which_of_the_runs_something_is_wrong_is_found(work, kind):
    found = verdict(work)
    first = found.failure.findings[0]
    assert found.points == 0 and type(first) is kind and getattr(first, "again", True)


def test_nothing_is_left_behind_and_each_run_is_told_its_part():
    seen = []

    def launch(job):
        seen.append(job)
        Path(tempfile.gettempdir(), job["folder"]).mkdir(exist_ok=True)
        return killed if len(seen) == 1 else whole

    killed, whole = (Launch((Process(0, status, 1.0),), 1.0) for status in (-9, 0))
    assert run_through(Script("", "main"), exercise.draw_cases()[0], launch) is whole
    assert [(job["arguments"]["begin"], job["killed_at"]) for job in seen] == [(40, 3), (0, 0)]
    assert len({job["folder"] for job in seen}) == 1
    assert not Path(tempfile.gettempdir(), seen[0]["folder"]).exists()
