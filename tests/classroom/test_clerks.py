"""Whatever one job does to its clerk, the others are done, and nothing is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import classes
import clerk_jobs
import mini
import psutil
import pytest
import rota
from leftovers import still_running, with_word
from rich.console import Console

from grader.classroom.grading import clerks, grade
from grader.classroom.grading.clerks import MOST_DEATHS, Lost, by_clerks
from grader.classroom.grading.record import Row, record
from grader.classroom.store import FOLDER, Unavailable, locked
from grader.classroom.walls.templates import NotStarted

LONG = 15.0  # seconds, in which a clerk is sure to start on a busy machine


def why(outcome) -> str:
    assert isinstance(outcome, Lost), outcome
    return outcome.why


def below() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


@rota.taking_turns(0, rota.LONG)
def test_a_job_that_takes_too_long_is_given_up_and_the_others_are_done():
    started = time.monotonic()
    done = dict(by_clerks(clerk_jobs.sleeps, ["slow", "ben", "cid", "dot"], 2, seconds=LONG))
    assert {job: done[job] for job in ("ben", "cid", "dot")} == {"ben": "BEN", "cid": "CID", "dot": "DOT"}
    assert f"not done after {LONG:g} seconds" in why(done["slow"])
    assert time.monotonic() - started < 3 * LONG


def test_a_job_whose_clerk_dies_is_tried_again_a_few_times(tmp_path):
    jobs = [(str(tmp_path / "never"), 99), (str(tmp_path / "once"), 2), (str(tmp_path / "well"), 1)]
    done = dict(by_clerks(clerk_jobs.dies, jobs))
    assert "died" in why(done[jobs[0]]) and [done[job] for job in jobs[1:]] == ["done", "done"]
    assert (tmp_path / "never").read_text() == "x" * MOST_DEATHS


@rota.taking_turns(2, rota.LONG)
def test_a_job_that_takes_too_much_memory_is_given_up(monkeypatch):
    monkeypatch.setattr(clerks, "CLERK_MEMORY", 600 << 20)
    done = dict(by_clerks(clerk_jobs.hoards, [30, 1, 2]))
    assert "more than the 600 MiB of memory" in why(done[30]) and (done[1], done[2]) == (1, 2)


def test_a_job_for_which_the_machine_has_no_memory_is_given_up():
    done = dict(by_clerks(clerk_jobs.asks_too_much, [1, 0]))
    assert "too little memory" in why(done[1]) and done[0] == 0


def test_what_the_work_raises_ends_it_all():
    with pytest.raises(NotStarted, match="no room"):
        list(by_clerks(clerk_jobs.fails, [1, 2]))


def test_nothing_that_a_clerk_has_started_is_left():
    before = below()
    ((_, outcome),) = by_clerks(clerk_jobs.starts, [1], seconds=3)
    assert isinstance(outcome, Lost)
    assert still_running(with_word("600.25")) == []
    assert still_running(p for p in below() - before if p not in with_word("resource_tracker")) == []


# A class.


def hostile(again, hand_in) -> Row:
    """As the grader records it; but aaa's kills its clerk."""
    if hand_in.student == "aaa":
        os.kill(os.getpid(), signal.SIGKILL)
    return record(hand_in)


def test_one_hand_in_never_ends_the_run_of_a_class(course, monkeypatch):
    for student in ("aaa", "cid", "dot"):
        classes.submit(course, student, mini.released(course))
    with (course / "nbgrader_config.py").open("a") as configuration:
        configuration.write("\nc.JudgedExecute.hand_in_seconds = 234\n")
    monkeypatch.setattr(grade, "_recorded_by", hostile)
    monkeypatch.setattr(clerks, "MOST_DEATHS", 2)
    given = []
    monkeypatch.setattr(grade, "by_clerks", lambda *how: given.append(how[-1]) or by_clerks(*how))
    rows = {r.hand_in.student: r for r in grade.grade_class(course, Console(quiet=True), grade.Options(workers=1))}
    assert 234 in given
    assert "A person should look" in rows["aaa"].problem
    assert not rows["cid"].problem and not rows["dot"].problem and rows["dot"].worth
    assert "A person should look" in (course / "grades.csv").read_text()


def test_a_second_grader_in_the_same_course_is_told_of_the_first(course):
    with locked(course / FOLDER), pytest.raises(Unavailable, match=f"process {os.getpid()}"):
        grade.grade_class(course, Console(quiet=True))
    code = """if True:
        import os, pathlib
        from grader.classroom.store import locked
        with locked(pathlib.Path.cwd()):
            os.kill(os.getpid(), 9)"""
    subprocess.run([sys.executable, "-c", code], cwd=course / FOLDER)
    assert int((course / FOLDER / "lock").read_text()) != os.getpid()
    with locked(course / FOLDER):
        pass  # death released it


def test_only_who_handed_in_can_be_graded_again(course):
    classes.submit(course, "dot", mini.released(course))
    with pytest.raises(Unavailable, match="no hand-in of dott to grade again. Is it one of these: dot?"):
        grade.grade_class(course, Console(quiet=True), grade.Options(again=("dott",)))


def test_a_page_that_cannot_be_written_is_said(course):
    """Its notebook is damaged; another student's page is written."""
    for student in ("aaa", "zoe"):
        file = course / "autograded" / student / mini.LESSON / f"{mini.LESSON}.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("no notebook")
        classes.submit(course, student, mini.released(course))
    said = {page.parts[1]: problem for page, problem in grade.write_feedback(course)}
    assert said["zoe"] and said["zoe"] == said["aaa"] and "traceback" not in said["zoe"]


def test_where_nothing_can_be_run_it_is_said_once(course, monkeypatch, capsys):
    from grader import cli

    file = classes.submit(course, "dot", mini.solved(course))
    monkeypatch.chdir(course)
    monkeypatch.setattr(sys, "argv", ["grader", "grade", str(file)])
    monkeypatch.setattr("grader.classroom.grading.loose._graded", no_template)
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert end.value.code == 2 and "did not start" in said and "Traceback" not in said


def no_template(root, seed, file):
    raise NotStarted("The process that workers are forked from did not start: it said nothing")
