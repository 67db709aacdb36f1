"""What a student hands in: finding it, reading it, and giving it back the release's marks.

Everything here is nbgrader's own extension points: a hook before a conversion, and the first preprocessor
of Autograde, so that its command line and Formgrader's button behave as `make grade` does.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.classroom.notebook import restore

log = logging.getLogger(__name__)


class Unreadable(Exception):
    """A hand-in that is no notebook; the text says what is wrong with it and what to do."""


def read(path: Path) -> NotebookNode:
    """The notebook in this file. Raises Unreadable, whatever the file holds."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path.name} is not UTF-8 text, as a notebook is. Ask for the .ipynb file.") from error
    if not text.strip():
        raise Unreadable(f"{path.name} is empty. Ask for the saved notebook.")
    try:
        nb = nbformat.reads(text, as_version=4)
        nbformat.validate(nb)
    except nbformat.ValidationError as error:
        raise Unreadable(f"{path.name} is JSON, but no notebook: {error.message.splitlines()[0][:200]}") from error
    except RecursionError as error:
        raise Unreadable(f"{path.name} is nested too deeply to be a notebook.") from error
    except Exception as error:  # nbformat raises of all sorts
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise Unreadable(f"{path.name} is not a notebook: {said}") from error
    return nb


def find(folder: Path, lesson: str) -> Path:
    """The one notebook that a student handed in for a lesson, under whatever name."""
    right = folder / f"{lesson}.ipynb"
    if right.exists():
        return right
    found = sorted(path for path in folder.glob("*.ipynb"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise Unreadable(f"There is no notebook in {folder.name}: {lesson}.ipynb is due.")
    names = ", ".join(path.name for path in found)
    raise Unreadable(f"Which of these is the hand-in? {names}. Name it {lesson}.ipynb.")


def adopt(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader's hook: a lone notebook under another name is graded as the lesson's, by a link to it."""
    if not notebooks:
        return
    folder = Path(notebooks[0]).parent
    try:
        notebook = find(folder, folder.name)
    except Unreadable as why:
        log.error("%s", why)
        return
    right = folder / f"{folder.name}.ipynb"
    if notebook != right:
        log.warning("%s is taken for %s", notebook.name, right.name)
        right.symlink_to(notebook.name)
        notebooks[:] = [str(right)]


class Restore(NbGraderPreprocessor):
    """The first step of grading: the marks of the release, whatever those of the hand-in say."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        return restore(nb, registered(resources["nbgrader"])), resources


def registered(where: dict[str, str]) -> NotebookNode:
    """The marked cells of the release, as nbgrader's gradebook keeps them."""
    with Gradebook(where["db_url"]) as gradebook:
        notebook = gradebook.find_notebook(where["notebook"], where["assignment"])
        worth = {cell.name: cell.max_score for cell in notebook.grade_cells}
        answers = {cell.name for cell in notebook.solution_cells}
        return new_notebook(cells=[_as_cell(cell, worth.get(cell.name), cell.name in answers)
                                   for cell in notebook.source_cells if cell.cell_type == "code"])


def _as_cell(source: Any, worth: float | None, solution: bool) -> NotebookNode:
    marks = {"grade": worth is not None, "grade_id": source.name, "locked": source.locked, "schema_version": 3,
             "solution": solution, "task": False, "checksum": source.checksum, "cell_type": source.cell_type}
    if worth is not None:
        marks["points"] = worth
    return new_code_cell(source.source, metadata={"nbgrader": marks})
