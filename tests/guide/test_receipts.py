"""What is handed in is what was saved, and the receipt says what is in it."""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import pytest

import grader
from grader.guide.attempts import CHOSEN, FILE
from grader.guide.receipts import NOTEBOOK
from grader.guide.syllabus import exercise_text, syllabus

ANSWER = "def block_matmul(A, B):\n    return A"
CHECKS = ['check("block_matmul", block_matmul)', "check('case3', case3)"]


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """A lesson's notebook, in which one of two exercises is answered, and its kernel."""
    monkeypatch.setenv(CHOSEN, str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    file = tmp_path / "07_matmul.ipynb"
    write(file, ANSWER, exercise_text("case3").starter, *CHECKS)
    monkeypatch.setenv(NOTEBOOK, str(file))
    return file


def write(file, *sources):
    cells = [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    file.write_text(json.dumps({"cells": cells}))


def check_at(moment):
    entry = {"exercise": "block_matmul", "points": 1, "worth": 2, "state": "partly", "time": moment}
    Path(os.environ[CHOSEN], FILE).write_text(json.dumps(entry))


def test_the_copy_is_the_saved_notebook_and_the_receipt_lies_beside_it(notebook):
    check_at(time.time() - 60)
    said = repr(grader.hand_in())
    (copy,) = notebook.parent.glob("handed_in/*/07_matmul.ipynb")
    assert copy.read_bytes() == notebook.read_bytes() and str(copy) in said
    receipt = copy.with_name("receipt.txt").read_text()
    assert hashlib.sha256(notebook.read_bytes()).hexdigest() in receipt
    assert "Answered: 1 of 2 exercises; still the starter: case3" in receipt and "1 of 6" in receipt


def test_a_notebook_that_was_checked_since_it_was_saved_is_not_laid_aside(notebook):
    check_at(time.time() + 60)
    said = repr(grader.hand_in())
    assert "`block_matmul` since" in said and "Save it" in said and not (notebook.parent / "handed_in").exists()


def test_the_last_answer_before_the_check_counts_wherever_a_starter_stands(notebook):
    starter = exercise_text("block_matmul").starter
    write(notebook, starter, ANSWER, CHECKS[0], starter)
    assert "Answered: 1 of 1 exercises" in repr(grader.hand_in())
    write(notebook, ANSWER, starter, CHECKS[0])
    assert "Answered: 0 of 1 exercises; still the starter" in repr(grader.hand_in())


def test_every_starter_is_known_as_one(notebook):
    texts = [text for lesson in syllabus() for text in lesson.exercises]
    write(notebook, *(source for text in texts for source in (text.starter, f"check('{text.name}', {text.name})")))
    assert f"Answered: 0 of {len(texts)} exercises" in repr(grader.hand_in())


@pytest.mark.parametrize("content", ["", "[]", '{"cells": 7}', '{"cells": [7]}', "\xff"])
def test_what_is_no_notebook_is_said_to_be_none(content, notebook):
    notebook.write_text(content, encoding="latin-1")
    assert "There is no notebook" in repr(grader.hand_in())
    assert "There is no notebook nowhere.ipynb" in repr(grader.hand_in("nowhere.ipynb"))


def test_a_folder_that_cannot_be_written_is_said(notebook):
    (notebook.parent / "handed_in").write_text("a file")
    assert "could not be written" in repr(grader.hand_in())


def test_in_colab_it_says_what_to_click(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.colab", object())
    assert "File → Download" in repr(grader.hand_in())
