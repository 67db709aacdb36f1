"""Cards are made of kept data when a notebook is written: to reword a sentence costs nothing."""

import mini
import nbformat
import pytest
from classroom.test_watching import WRONG

from grader import feedback
from grader.classroom.course.build import gradebook
from grader.classroom.grading import execute
from grader.classroom.grading import record as recording
from grader.classroom.grading.record import HandIn, record
from grader.classroom.runs import run as running
from grader.findings.mistakes import KnownMistake
from grader.wording.said import TEMPLATES, Said


def never(*_, **__):
    raise AssertionError("this has been done before")


@pytest.fixture
def hand_in(course):
    nb = mini.solved(course)
    nb.cells[mini.position(nb, "answer_case3")].source = WRONG
    file = course / "submitted" / "eve" / mini.LESSON / f"{mini.LESSON}.ipynb"
    file.parent.mkdir(parents=True)
    nbformat.write(nb, file)
    return HandIn(course, "eve", mini.LESSON)


def test_a_sentence_that_is_reworded_redraws_cards_and_runs_and_judges_nothing(hand_in, monkeypatch):
    row = record(hand_in)
    assert not row.problem
    page = hand_in.at("feedback", ".html")
    before = page.read_text()
    assert row.points["case3"] == 0 and "A common mistake gives exactly this result" in before
    for place, name in ((running, "workers"), (feedback, "pictures_of")):
        monkeypatch.setattr(place, name, never)
    for place in (execute, recording):
        monkeypatch.setattr(place, "shared_judge", lambda: never)
    written = page.stat().st_mtime_ns
    assert record(hand_in).points == row.points and page.stat().st_mtime_ns == written  # nothing is different
    with gradebook(hand_in.root) as book:
        grade = book.find_grade("check_case3", mini.LESSON, mini.LESSON, "eve")
        grade.manual_score, grade.needs_manual_grade = 1.5, False
        book.db.commit()
    monkeypatch.setitem(TEMPLATES, KnownMistake, lambda finding, exercise: Said(cause="Said anew."))
    reworded = record(hand_in)
    assert reworded.points == {**row.points, "case3": 1.5}
    assert not reworded.attention  # nobody has to look at a grade by hand again
    now = page.read_text()
    assert "Said anew." in now and "A common mistake" not in now
    assert now.count("<svg") == before.count("<svg") > 0
