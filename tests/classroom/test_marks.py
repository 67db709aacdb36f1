"""Our quicker way into nbgrader's gradebook writes and reads what nbgrader's own steps do."""

import mini
import pytest
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import GetGrades, SaveAutoGrades

from grader.classroom.course.notebook import checked, grade_id
from grader.classroom.grading.marks import GetMarks, SaveMarks

STUDENT = "ada"
POINTS = {"block_matmul": "1.5", "case3": "4.0"}


@pytest.fixture
def course(tmp_path):
    return mini.built_course(tmp_path / "course")


def where(course, student=STUDENT):
    """nbgrader's resources for a hand-in that its gradebook knows."""
    url = f"sqlite:///{course}/gradebook.db"
    with Gradebook(url) as book:
        book.update_or_create_student(student)
        book.update_or_create_submission(mini.LESSON, student)
    return {"nbgrader": {"notebook": mini.LESSON, "assignment": mini.LESSON, "student": student, "db_url": url}}


def executed(course):
    """One exercise answered for part of its points, one left as it was released."""
    nb = mini.released(course)
    mini.edited(nb, "answer_block_matmul", lambda cell: cell.update(source="def block_matmul(a, b): return a @ b"))
    for cell in filter(checked, nb.cells):
        number = {"text/plain": POINTS[checked(cell)]}
        cell.outputs = [new_output("execute_result", data=number, execution_count=None)]
    return nb


def rows(course, student=STUDENT):
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        submission = book.find_submission(mini.LESSON, student)
        (notebook,) = submission.notebooks
        grades = {g.name: (g.auto_score, g.manual_score, g.needs_manual_grade, g.score) for g in notebook.grades}
        return grades, {c.name: (c.auto_comment, c.manual_comment) for c in notebook.comments}


def by_hand(course, student):
    with Gradebook(f"sqlite:///{course}/gradebook.db") as book:
        book.find_grade("check_case3", mini.LESSON, mini.LESSON, student).manual_score = 3.0
        book.find_comment("answer_case3", mini.LESSON, mini.LESSON, student).manual_comment = "Nearly."
        book.db.commit()


def test_the_same_rows_are_written(course):
    for student, step in (("ada", SaveAutoGrades), ("ben", SaveMarks)):
        resources = where(course, student)
        step().preprocess(executed(course), resources)
        by_hand(course, student)
        step().preprocess(executed(course), resources)
    assert rows(course, "ada") == rows(course, "ben")
    grades, comments = rows(course, "ben")
    assert grades == {"check_block_matmul": (1.5, None, False, 1.5), "check_case3": (4.0, 3.0, True, 3.0)}
    assert comments == {"answer_block_matmul": (None, None), "answer_case3": ("No response.", "Nearly.")}


def test_the_same_marks_are_read(course):
    resources = where(course)
    SaveMarks().preprocess(executed(course), resources)
    by_hand(course, STUDENT)
    read = [step().preprocess(executed(course), where(course)) for step in (GetGrades, GetMarks)]
    assert read[0] == read[1]
    nb, resources = read[1]
    assert resources["nbgrader"]["score"] == 4.5 and resources["nbgrader"]["max_score"] == 6
    comments = {grade_id(cell): cell.metadata.nbgrader.get("comment") for cell in nb.cells if grade_id(cell)}
    assert comments["answer_case3"] == "Nearly."


def test_what_fails_half_way_writes_nothing(course):
    resources, nb = where(course), executed(course)
    nb.cells[mini.position(nb, "check_case3")].metadata.nbgrader.grade_id = "check_of_nothing"
    with pytest.raises(Exception, match="check_of_nothing"):
        SaveMarks().preprocess(nb, resources)
    grades, _ = rows(course)
    assert {auto for auto, *_ in grades.values()} == {None}
