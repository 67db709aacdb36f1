"""nbgrader's own exchange, as on a JupyterHub: two instructors, three students, and each sees the page of their own."""

from __future__ import annotations

import datetime
import os

import classes
import mini
import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange import default as exchange

from grader.classroom.course.build import build, configuration
from grader.classroom.course.plan import PLAN
from grader.classroom.grading.grade import write_feedback
from grader.classroom.store import FOLDER, locked

pytestmark = pytest.mark.slow  # three hand-ins, graded twice
STUDENTS = ("ada", "ben", "cleo")


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """The course's folder, which two instructors share, the exchange, and a home for each student."""
    place = tmp_path_factory.mktemp("hub")
    root = mini.built_course(place / "course")
    for name in ("exchange", *STUDENTS):
        (place / name).mkdir()
    (place / "exchange").chmod(0o777)
    return root


def step(root, kind, student="*"):
    """One step of the exchange, by an instructor or by a student in a home of their own."""
    config = configuration(root)
    home = root.parent / student
    config.CourseDirectory.assignment_id, config.CourseDirectory.student_id = mini.LESSON, student
    config.Exchange.root, config.Exchange.cache = str(root.parent / "exchange"), str(home / "cache")
    config.Exchange.assignment_dir = str(home)
    if student != "*":
        config.CourseDirectory.root = str(home)
    course = CourseDirectory(config=config)
    kind(coursedir=course, authenticator=Authenticator(config=config), config=config).start()


def hand_in(root, student, nb):
    nbformat.write(nb, root.parent / student / mini.LESSON / f"{mini.LESSON}.ipynb")
    step(root, exchange.ExchangeSubmit, student)


def test_from_release_to_each_students_own_page(hub):
    step(hub, exchange.ExchangeReleaseAssignment)
    for student in STUDENTS:
        step(hub, exchange.ExchangeFetchAssignment, student)
        fetched = nbformat.read(hub.parent / student / mini.LESSON / f"{mini.LESSON}.ipynb", 4)
        assert [cell.source for cell in fetched.cells] == [cell.source for cell in mini.released(hub).cells]
    hand_in(hub, "ada", mini.solved(hub))
    hand_in(hub, "ben", mini.released(hub))
    hand_in(hub, "ben", classes.answered(hub, classes.FORGOT))  # again: the later one counts
    hand_in(hub, "cleo", mini.released(hub))
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=30)
    (hub / PLAN).write_text(f'late = "10 % a day"\n[lessons.01_mini]\ndue = {before.isoformat(timespec="seconds")}\n')

    build(hub)
    step(hub, exchange.ExchangeCollect)
    assert sorted(os.listdir(hub / "submitted")) == sorted(STUDENTS)

    with locked(hub / FOLDER):  # one instructor grades, and the other finds out
        other = classes.start(hub)
        assert "Somebody is grading here already" in classes.finish(other) and other.returncode == 2
    rows = {row.hand_in.student: row for row in classes.grade_here(hub)}
    assert {name: (row.mark, row.late) for name, row in rows.items()} == {
        "ada": (4.8, 1.2),
        "ben": (1.6, 0.4),
        "cleo": (0, 0),
    }

    with Gradebook(f"sqlite:///{hub}/gradebook.db") as book:  # the other one comments, in Formgrader
        comment = book.find_comment("answer_case3", mini.LESSON, mini.LESSON, "ben")
        comment.manual_comment = "Which collective adds?"
        book.db.commit()
    assert [problem for _, problem in write_feedback(hub)] == [""] * 3
    step(hub, exchange.ExchangeReleaseFeedback)
    pages = {}
    for student in STUDENTS:
        step(hub, exchange.ExchangeFetchFeedback, student)
        found = list((hub.parent / student / mini.LESSON).glob("feedback/*/*.html"))
        pages[student] = "".join(page.read_text() for page in found)
    assert "Which collective adds?" in pages["ben"]
    assert "Which collective adds?" not in pages["ada"] + pages["cleo"] and pages["ada"] and pages["cleo"]
