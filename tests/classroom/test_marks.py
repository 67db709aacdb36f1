"""Our quicker way into nbgrader's gradebook writes and reads what nbgrader's own steps do."""

import mini
import pytest
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.preprocessors import GetGrades, OverwriteCells, SaveAutoGrades, SaveCells

from grader.classroom.course.entered import EnterCells
from grader.classroom.course.notebook import checked, grade_id
from grader.classroom.grading.marks import GetMarks, RestoreCells, SaveMarks
from grader.classroom.grading.record import _share_engines

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


def altered(course):
    """A check that is edited and worth more, and a cell that nobody knows."""
    nb = mini.released(course)
    mini.edited(nb, "check_block_matmul", lambda cell: cell.update(source="Mark(2)"))
    nb.cells[mini.position(nb, "check_block_matmul")].metadata.nbgrader.points = 9.0
    nb.cells[mini.position(nb, "answer_case3")].metadata.nbgrader.grade_id = "of_nobody"
    return nb


def test_the_same_cells_are_restored(course):
    restored = [step().preprocess(altered(course), where(course))[0] for step in (OverwriteCells, RestoreCells)]
    assert restored[0] == restored[1] != altered(course)
    assert "Mark(2)" not in str(restored[1]) and "9.0" not in str(restored[1])


def cells(book):
    """All that the gradebook knows of the lesson's cells, but for the numbers that it gives them."""
    notebook = book.find_notebook(mini.LESSON, mini.LESSON)
    kinds = (notebook.grade_cells, notebook.solution_cells, notebook.task_cells, notebook.source_cells)
    return [sorted(str(sorted((cell.to_dict() | {"id": ""}).items())) for cell in kind) for kind in kinds]


@pytest.fixture
def source(course, tmp_path):
    """nbgrader's resources for the lesson's source, with an empty gradebook, and the source."""
    url = f"sqlite:///{tmp_path}/fresh.db"
    with Gradebook(url) as book:
        book.update_or_create_assignment(mini.LESSON)
    return {"nbgrader": {"notebook": mini.LESSON, "assignment": mini.LESSON, "db_url": url}}, mini.released(course)


def test_a_new_gradebook_gets_its_tables_where_engines_are_shared(tmp_path):
    _share_engines()
    for _ in range(3):
        with Gradebook(f"sqlite:///{tmp_path}/shared.db") as book:
            assert book.assignments == []


def test_the_same_cells_are_entered_once_and_again(source):
    resources, nb = source
    found = []
    for step in (SaveCells, EnterCells, EnterCells):
        step().preprocess(nb, resources)
        with Gradebook(resources["nbgrader"]["db_url"]) as book:
            found.append(cells(book))
            if step is SaveCells:
                book.remove_notebook(mini.LESSON, mini.LESSON)
    assert found[0] == found[1] == found[2]
    assert all(found[0][kind] for kind in (0, 1, 3))


def test_a_lesson_that_fails_half_way_is_not_entered(source, monkeypatch):
    resources, nb = source
    EnterCells().preprocess(nb, resources)
    monkeypatch.setattr(Gradebook, "update_or_create_source_cell", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        EnterCells().preprocess(nb, resources)
    with Gradebook(resources["nbgrader"]["db_url"]) as book:
        assert all(cells(book)[kind] for kind in (0, 1, 3))  # as they were
