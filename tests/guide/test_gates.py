"""A cell that builds on an answer waits until that is right, and says so; in grading it is left out."""

import pytest

from grader import lessons
from grader.exercises.verdict import Outcome, Verdict
from grader.guide import attempts
from grader.guide.gates import NOT_WHILE_GRADED, passed

RIGHT = Verdict("case3", (Outcome.earned("case3", "values", 4.0),))
WRONG = Verdict("case3", (Outcome.missed("case3", "values", 4.0, "No."),))


@pytest.fixture(autouse=True)
def nothing_right_yet(monkeypatch):
    monkeypatch.setattr(attempts, "_right_here", set())


def test_a_cell_goes_on_once_its_check_was_right(capsys):
    attempts.keep(WRONG)
    assert not passed("case3")
    assert "builds on your `case3`" in capsys.readouterr().out
    attempts.keep(RIGHT)
    assert passed("case3")
    assert capsys.readouterr().out == ""


def test_what_was_right_in_another_notebook_is_not_there_in_this_one(monkeypatch, tmp_path):
    monkeypatch.setenv(attempts.CHOSEN, str(tmp_path))
    line = '{"exercise": "case3", "points": 4, "worth": 4, "state": "right", "time": 0}'
    (tmp_path / attempts.FILE).write_text(line)
    assert attempts.was_right("case3") and not passed("case3")


def test_where_hand_ins_are_graded_it_is_left_out(monkeypatch, capsys):
    monkeypatch.setattr(lessons, "EXERCISES", {})
    assert not passed("case3")
    assert capsys.readouterr().out.strip() == NOT_WHILE_GRADED
