"""nbgrader's gradebook: what a person wrote into it stays, only what changed is touched, and any database will do."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import DEFAULT, Mock

import classes
import mini
import needs
import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin
from rich.console import Console

import grader
from grader import cli
from grader.classroom.course.build import configuration, gradebook
from grader.classroom.grading import record as recording
from grader.classroom.grading.grade import MOVED, grade_class, write_feedback
from grader.classroom.grading.record import HandIn, record
from grader.classroom.report.papers import moves
from grader.classroom.store import Unavailable

ONLY_STUDENTS = ("ben", "emil", "finn", "gina", "hugo")  # that these tests do without


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The small course with three hand-ins, graded: everything right, a product gathered, a sum forgotten."""
    root = mini.built_course(tmp_path_factory.mktemp("graded") / "course")
    classes.fill(root, leave_out=ONLY_STUDENTS)
    assert [sum(row.points.values()) for row in classes.grade_here(root)] == [6, 2, 4]
    return root


@pytest.fixture
def course(graded, tmp_path):
    return Path(shutil.copytree(graded, tmp_path / "course"))


def by_hand(root, student, exercise, score, words):
    """A score and a comment, written as Formgrader does."""
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        grade = book.find_grade(f"check_{exercise}", mini.LESSON, mini.LESSON, student)
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = score, None, False
        comment = book.find_comment(f"answer_{exercise}", mini.LESSON, mini.LESSON, student)
        comment.manual_comment = words
        book.db.commit()


def comment(root, student, exercise):
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        return book.find_comment(f"answer_{exercise}", mini.LESSON, mini.LESSON, student).manual_comment


def times(root, pattern):
    return {path: path.stat().st_mtime_ns for path in root.glob(pattern)}


def test_a_grade_by_hand_survives_when_nothing_changed(course):
    by_hand(course, "cleo", "case3", 3.0, "Nearly: which collective adds?")
    before = times(course, "autograded/*/*/*.ipynb")
    row = record(HandIn(course, "cleo", mini.LESSON))
    assert row.points == {"block_matmul": 2, "case3": 3} and not row.attention
    assert times(course, "autograded/*/*/*.ipynb") == before
    assert comment(course, "cleo", "case3") == "Nearly: which collective adds?"


def test_a_grade_by_hand_survives_a_new_hand_in_and_is_to_be_looked_at(course):
    by_hand(course, "cleo", "case3", 3.0, "Nearly.")
    classes.submit(course, "cleo", mini.solved(course))
    row = record(HandIn(course, "cleo", mini.LESSON))
    assert row.points["case3"] == 3 and comment(course, "cleo", "case3") == "Nearly."
    assert row.attention == ("a grade by hand of case3 is to be looked at again",)
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        assert book.find_grade("check_case3", mini.LESSON, mini.LESSON, "cleo").auto_score == 4


FORGIVEN = """
import dataclasses

drawn = case3.drawn
case3.drawn = lambda draw: dataclasses.replace(drawn(draw), limits=())
"""


def test_a_fixed_check_moves_only_whom_it_concerns_and_runs_no_code_again(course, tmp_path, monkeypatch):
    """The check forgives a gathered product from now on: another grader, the same hand-ins."""
    by_hand(course, "ada", "case3", 3.5, "Late.")
    assert len(list(write_feedback(course))) == 3  # with the comment; what is graded is still known
    page = HandIn(course, "ada", mini.LESSON).at("feedback", ".html").read_text()
    head = page[page.index("<h1>") : page.index('<div id="notebook"')]
    assert head.startswith("<h1>01_mini: 5.5 of 6 points</h1><p>Most points to gain: ")
    assert '<a href="#check_case3"><code>case3</code></a> (0.5).' in head and "block_matmul</code></a>: 2 of 2" in head
    (target,) = re.findall(r'href="#(comment-\w+)">a comment', head)
    assert f'name="{target}"' in page and 'name="check_case3"' in page
    package = shutil.copytree(Path(grader.__file__).parent, tmp_path / "fixed" / "grader")
    lesson = package / "lessons/matmul/cases.py"
    lesson.write_text(lesson.read_text() + FORGIVEN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fixed"))
    runs, before = times(course, ".grading/runs/*/*"), times(course, "autograded/*/*/*.ipynb")
    said = classes.grade(course, "--workers", 1)
    after = times(course, "autograded/*/*/*.ipynb")
    changed = [path.parts[-3] for path in before if after[path] != before[path]]
    assert sorted(changed) == ["ada", "dora"]  # ada's card shows the new target
    assert times(course, ".grading/runs/*/*") == runs
    told = said[said.index("Moved since") :]
    assert "case3 2 → 4" in told or "case3 0 → 4" in told, said
    assert "dora" in told and "ada" not in told.split("Feedback")[0]
    assert moves(course)["dora", mini.LESSON]["case3"][1] == 4  # and the report will say so
    assert comment(course, "ada", "case3") == "Late." and "ada,01_mini,5.5" in (course / "grades.csv").read_text()


def test_who_is_entered_by_two_at_once_is_graded_all_the_same(course, monkeypatch):
    """As happens to a student who has handed in to two lessons, the first time that these are graded."""
    crossed = {"success": False, "error": "", "log": "sqlalchemy.exc.IntegrityError: UNIQUE constraint: student.id"}
    api = recording._api(course)
    monkeypatch.setattr(api, "autograde", Mock(side_effect=[crossed, DEFAULT], wraps=api.autograde))
    classes.submit(course, "ben", mini.released(course))
    row = record(HandIn(course, "ben", mini.LESSON))
    assert not row.problem and row.points == {"block_matmul": 0, "case3": 0}


def test_the_report_is_written_by_a_command_and_knows_what_moved(course, monkeypatch, capsys):
    (course / MOVED).write_text(json.dumps([["cleo", mini.LESSON, [["case3", 0.0, 2.0]]]]))
    monkeypatch.chdir(course)

    def typed(*words):
        monkeypatch.setattr(sys, "argv", ["grader", "report", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    assert typed("--names", "--to", "class.html") == (0, "wrote class.html\n", "")
    page = (course / "class.html").read_text()
    assert "3 hand-ins" in page and "cleo: <code>case3</code> 0 → 2" in page and "forgot_psum" in page
    status, _, said = typed("07_matmul")
    assert status == 2 and "No hand-in to 07_matmul is graded. Graded are: 01_mini." in said


def test_nbgraders_own_table_lies_beside_ours(course, monkeypatch):
    classes.grade_here(course)
    ours = (course / "grades.csv").read_bytes()
    monkeypatch.chdir(course)
    with gradebook(course) as book:
        CsvExportPlugin(config=configuration(course)).export(book)
    assert (course / "grades.csv").read_bytes() == ours
    assert "ada" in (course / "gradebook.csv").read_text()


# PostgreSQL


@pytest.fixture
def postgres():
    """The URL of an empty database on a server of our own, which listens on no network."""
    pytest.importorskip("psycopg", reason="the driver is not installed (the extra `postgresql`)")
    place = needs.postgresql()
    user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if os.getuid() == 0 else {}

    def run(name, *options):
        done = subprocess.run(
            [f"{place}/{name}", *options],
            cwd=folder,
            env={"PATH": place, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            **user,
        )
        assert done.returncode == 0, done.stdout

    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:  # a socket's name has to be short
        if user:
            shutil.chown(folder, "nobody")
        run("initdb", "--pgdata=data", "--username=teacher", "--auth=trust", "--encoding=UTF8", "--no-sync")
        run("pg_ctl", "--pgdata=data", "--log=log", f"--options=-k {folder} -c listen_addresses='' -F", "start")
        try:
            run("createdb", f"--host={folder}", "--username=teacher", "gradebook")
            yield f"postgresql+psycopg://teacher@/gradebook?host={folder}"
        finally:
            run("pg_ctl", "--pgdata=data", "--mode=immediate", "stop")


@pytest.mark.slow
@pytest.mark.needs("postgresql")
def test_a_class_in_postgresql_has_the_same_marks(course, postgres):
    before = classes.marks(f"sqlite:///{course}/gradebook.db")
    (course / "gradebook.db").unlink()
    for folder in ("autograded", "feedback", "course"):
        shutil.rmtree(course / folder)
    with (course / "nbgrader_config.py").open("a") as configuration:
        configuration.write(f"\nc.CourseDirectory.db_url = {postgres!r}\n")
    classes.grade(course, "--workers", 2)
    assert classes.marks(postgres) == before
    touched = times(course, "autograded/*/*/*.ipynb")
    classes.grade(course, "--workers", 2)
    assert classes.marks(postgres) == before and times(course, "autograded/*/*/*.ipynb") == touched
    assert not (course / "gradebook.db").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql+psycopg://teacher:secret@127.0.0.1:1/gradebook", "connection"),
        ("sqlite:////nowhere/gradebook.db", "No such file or directory"),
    ],
)
def test_a_gradebook_that_cannot_be_opened_is_said(course, url, said):
    pytest.importorskip("psycopg", reason="the driver is not installed (the extra `postgresql`)")
    with (course / "nbgrader_config.py").open("a") as configuration:
        configuration.write(f"\nc.CourseDirectory.db_url = {url!r}\n")
    with pytest.raises(Unavailable) as why:
        grade_class(course, Console(quiet=True))
    assert "cannot be opened" in str(why.value) and said in str(why.value) and "secret" not in str(why.value)
