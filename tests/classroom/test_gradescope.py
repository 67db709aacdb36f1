"""The autograder as Gradescope lays it out and runs it, and what it tells Gradescope."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import classes
import jsonschema
import mini
import nbformat
import pytest
from rota import LONG, taking_turns

from grader.classroom.grading.gradescope import failed, judge_submission, pack_autograder, results
from grader.classroom.store import Unavailable

SCHEMA = json.loads((Path(__file__).parent / "gradescope.schema.json").read_text())


@pytest.fixture(scope="module")
def autograder(tmp_path_factory):
    """/autograder, as Gradescope makes it of the zip."""
    root = mini.built_course(tmp_path_factory.mktemp("course"))
    place = tmp_path_factory.mktemp("gradescope") / "autograder"
    pack_autograder(root, mini.LESSON, root / "dist" / "a.zip")
    pack_autograder(root, mini.LESSON, root / "dist" / "b.zip")
    assert (root / "dist" / "a.zip").read_bytes() == (root / "dist" / "b.zip").read_bytes()
    with zipfile.ZipFile(root / "dist" / "a.zip") as archive:
        archive.extractall(place / "source")
        modes = {info.filename: stat.S_IMODE(info.external_attr >> 16) for info in archive.infolist()}
    assert {"setup.sh", "run_autograder"} <= {name for name, mode in modes.items() if mode & 0o111}
    shutil.copy(place / "source" / "run_autograder", place)
    (place / "run_autograder").chmod(0o755)
    return root, place


@taking_turns(0, LONG)
def test_its_run_script_judges_a_hand_in(autograder):
    """In a process that finds the grader in the zip alone."""
    root, place = autograder
    (place / "submission").mkdir()
    nbformat.write(classes.answered(root, classes.FORGOT), place / "submission" / "anything at all.ipynb")
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": ""}
    done = subprocess.run(
        [place / "run_autograder"], cwd="/", env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((place / "results" / "results.json").read_text())
    jsonschema.validate(told, SCHEMA)
    assert told["score"] == 2 and told["stdout_visibility"] == "hidden"
    right, wrong = told["tests"]
    assert (right["name"], right["score"], right["max_score"], right["status"]) == ("block_matmul", 2, 2, "passed")
    assert (wrong["name"], wrong["score"], wrong["max_score"], wrong["status"]) == ("case3", 0, 4, "failed")
    assert "parts" in wrong["output"] or "sum" in wrong["output"]


def test_without_a_notebook_it_says_so(autograder, tmp_path):
    (tmp_path / "source").symlink_to(autograder[1] / "source")
    (tmp_path / "submission").mkdir()
    told = judge_submission(tmp_path)
    jsonschema.validate(told, SCHEMA)
    assert told["score"] == 0 and "There is no notebook in submission: 01_mini.ipynb is due" in told["output"]


def test_what_a_student_may_bring_into_a_message_is_text():
    record = {"exercise": "case3", "points": 0, "max": 4, "mistake": "", "message": "It is \x1b[2J\u202e<b>\nline"}
    told = results([record, {**record, "exercise": "two_axis", "points": 3}], ["two_axis"], 1.4)
    jsonschema.validate(told, SCHEMA)
    assert told["test_output_format"] == "text" and told["score"] == 3
    one, bonus = told["tests"]
    assert all(line.isprintable() for line in one["output"].splitlines()) and len(one["output"].splitlines()) == 2
    assert bonus["name"] == "two_axis (bonus)" and bonus["max_score"] == 0 and bonus["score"] == 3
    jsonschema.validate(failed("no\x00"), SCHEMA)


@pytest.mark.needs("shellcheck")
def test_the_scripts_are_in_order(autograder):
    _, place = autograder
    scripts = [str(place / "source" / name) for name in ("setup.sh", "run_autograder")]
    done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_schema_refuses_what_gradescope_does_not_know():
    for wrong in ({}, {"score": "3"}, {"score": 3, "visibility": "later"}, {"tests": [{"points": 3}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, SCHEMA)


def test_an_unknown_lesson_is_said(autograder, tmp_path):
    with pytest.raises(Unavailable, match="no lesson 99_none in course/"):
        pack_autograder(autograder[0], "99_none", tmp_path / "a.zip")
