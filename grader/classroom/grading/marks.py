"""nbgrader's steps that write a hand-in's marks into its gradebook and read from it, quicker.

Its rules are its own. But it asks for every cell by itself, and commits every cell by itself, which takes longer than
all else that is done to record a hand-in. Here a notebook's marks are asked for once, and committed once.
"""

from __future__ import annotations

from nbgrader.api import Comment, Grade, Gradebook, GradeCell, Notebook, SourceCell, SubmittedNotebook, TaskCell
from nbgrader.preprocessors import GetGrades, OverwriteCells, SaveAutoGrades


class NotebookMarks:
    """A gradebook, as nbgrader's steps use it for one notebook; what they commit waits for a `with` block to end."""

    def __init__(self, book: Gradebook, notebook: str, lesson: str, student: str):
        self.book, self.where = book, (notebook, lesson, student)
        self.db = self

    def __enter__(self) -> NotebookMarks:
        released, handed_in = self.book.find_notebook(*self.where[:2]), self.find_submission_notebook(*self.where)
        self._cells = [*released.grade_cells, *released.solution_cells]  # the session has them while they are held here
        self.grades = {grade.name: grade for grade in handed_in.grades}
        self.comments = {comment.name: comment for comment in handed_in.comments}
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.book.db.commit()
        self.book.close()

    def commit(self) -> None:
        """Nothing yet."""

    def find_submission_notebook(self, *where: str) -> SubmittedNotebook:
        return self.book.find_submission_notebook(*where)

    def find_grade(self, name: str, *where: str) -> Grade:
        return self.grades[name] if name in self.grades else self.book.find_grade(name, *where)

    def find_comment(self, name: str, *where: str) -> Comment:
        return self.comments[name] if name in self.comments else self.book.find_comment(name, *where)


class _AtOnce:
    """A step of nbgrader's whose gradebook is asked, and committed, once."""

    notebook_id: str
    assignment_id: str
    student_id: str

    @property
    def gradebook(self) -> NotebookMarks:
        return self._marks

    @gradebook.setter
    def gradebook(self, book: Gradebook) -> None:
        self._marks = NotebookMarks(book, self.notebook_id, self.assignment_id, self.student_id)


class SaveMarks(_AtOnce, SaveAutoGrades):
    """nbgrader's SaveAutoGrades."""


class GetMarks(_AtOnce, GetGrades):
    """nbgrader's GetGrades."""


class ReleasedCells:
    """A gradebook, as nbgrader's OverwriteCells uses it: the cells of one release, which are asked for at once."""

    def __init__(self, book: Gradebook, notebook: str, lesson: str):
        self.book, self.where = book, (notebook, lesson)

    def __enter__(self) -> ReleasedCells:
        self.notebook = self.book.find_notebook(*self.where)
        self.sources = {cell.name: cell for cell in self.notebook.source_cells}
        self.graded = {cell.name: cell for cell in (*self.notebook.task_cells, *self.notebook.grade_cells)}
        return self

    def __exit__(self, *_: object) -> None:
        self.book.close()

    def find_notebook(self, *where: str) -> Notebook:
        return self.notebook

    def find_source_cell(self, name: str, *where: str) -> SourceCell:
        return self.sources[name] if name in self.sources else self.book.find_source_cell(name, *where)

    def find_graded_cell(self, name: str, *where: str) -> GradeCell | TaskCell:
        return self.graded[name] if name in self.graded else self.book.find_graded_cell(name, *where)


class RestoreCells(OverwriteCells):
    """nbgrader's OverwriteCells."""

    @property
    def gradebook(self) -> ReleasedCells:
        return self._cells

    @gradebook.setter
    def gradebook(self, book: Gradebook) -> None:
        self._cells = ReleasedCells(book, self.notebook_id, self.assignment_id)
