"""What a student hands in: finding it, reading it, and giving it back the release's marks.

Everything here is nbgrader's own extension points: a hook before a conversion, its exporter, and the first
preprocessor of Autograde, so that its command line and Formgrader's button behave as `make grade` does.
No file of a student's is ever changed; a link beside it is all that may be added. And nothing but the notebook goes
further: what else a student hands in would be served from Formgrader's own address.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import nbformat
from nbconvert.exporters import Exporter, NotebookExporter
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.arrays.words import legible, one_line
from grader.classroom.course.late import TIME, handed_in_at
from grader.classroom.course.notebook import notebook_text, restore
from grader.classroom.handins.archive import MOST_INSIDE, Unreadable, hidden, listed
from grader.classroom.handins.reading import read

__all__ = [
    "Alone",
    "Reader",
    "Restore",
    "Unreadable",
    "adopt",
    "find_notebook",
    "give_name",
    "one_release",
    "read",
    "registered_release",
]
LONGEST_NAME = 128  # characters that the gradebook has for a student's name
UNFIT = '*?[<>"\\'  # nbgrader looks for folders by patterns, and writes their names into pages and scripts as they are
SUBMISSION_SECRET = "submission_secret.txt"  # where the exchange keeps it: 128 digits
LONGEST_SECRET = 256  # bytes of it
log = logging.getLogger(__name__)


def find_notebook(folder: Path, lesson: str) -> Path:
    """The one notebook that a student handed in for a lesson, under whatever name; or the one zip, for one in it.

    The lesson's own name goes before others, what lies on top before what lies deeper, a notebook before a zip.
    """
    for name in (folder.parent.name, folder.name):
        _check_name(name)
    files = _files(folder, f"{lesson}.ipynb")
    notebooks = [path for path in files if path.suffix.lower() == ".ipynb"]
    on_top = [path for path in notebooks if path.parent == folder]
    candidates = on_top or notebooks or [path for path in files if path.suffix.lower() == ".zip"]
    exact = [path for path in candidates if path.name == f"{lesson}.ipynb"]
    chosen = exact if len(exact) == 1 else candidates
    if len(chosen) == 1:
        return chosen[0]
    names = listed(path.relative_to(folder) for path in candidates or files)
    if chosen:
        raise Unreadable(f"Which of these is the hand-in? {names}. Name it {lesson}.ipynb.")
    raise Unreadable(f"There is no notebook in {one_line(folder.name)}: {lesson}.ipynb is due, and found is {names}.")


def _check_name(name: str) -> None:
    """That nbgrader can take a folder of this name."""
    wrong = (
        "is too long"
        if len(name) > LONGEST_NAME
        else "has characters that cannot be seen"
        if not name.isprintable()
        else "begins or ends with a blank"
        if name != name.strip()
        else f"has one of {' '.join(UNFIT)} in it"
        if any(sign in name for sign in UNFIT)
        else ""
    )
    if wrong:
        raise Unreadable(
            f"The folder's name “{one_line(name)}” {wrong}, which nbgrader cannot take. Rename the folder to letters, "
            f"digits, blanks inside and _ . - @, at most {LONGEST_NAME}."
        )


def _files(folder: Path, right: str) -> list[Path]:
    """What was handed in. Links are refused: they could lead anywhere, and nbgrader would follow them."""
    for place in (folder.parent, folder):
        if place.is_symlink():
            raise Unreadable(
                f"{one_line(place.name)} is a link to another folder. Put the hand-in itself in its place."
            )
    try:
        os.listdir(folder)  # rglob would say nothing of a folder that it may not read
        inside = sorted(islice(folder.rglob("*"), MOST_INSIDE + 1))
        if len(inside) > MOST_INSIDE:
            raise Unreadable(f"{one_line(folder.name)} holds more than {MOST_INSIDE:,} files. Keep the notebook alone.")
        for path in inside:
            if path.is_symlink() and not _stand_in(path, folder / right):
                raise Unreadable(
                    f"{one_line(path.relative_to(folder))} is a link to {one_line(os.readlink(path))}, and not "
                    "followed. Ask for the file itself, and remove the link."
                )
        return [
            path
            for path in inside
            if path.is_file() and not path.is_symlink() and not hidden(PurePosixPath(path.relative_to(folder)))
        ]
    except (OSError, RuntimeError) as error:
        raise Unreadable(
            f"The folder {one_line(folder.name)} cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from error


def _stand_in(path: Path, right: Path) -> bool:
    """Whether a link is one that `give_name` made: the lesson's name for a file in the same folder."""
    target = Path(os.readlink(path))
    return path == right and not target.is_absolute() and path.resolve().is_relative_to(right.parent.resolve())


def give_name(folder: Path, lesson: str) -> Path:
    """The hand-in under the lesson's name, by which nbgrader looks for it: itself, or a link beside it."""
    notebook, right = find_notebook(folder, lesson), folder / f"{lesson}.ipynb"
    if notebook == right:
        return right
    target = str(notebook.relative_to(folder))
    try:
        if right.is_symlink() and os.readlink(right) == target:
            return right
        right.unlink(missing_ok=True)  # a link to what was handed in before
        right.symlink_to(target)
    except OSError as error:
        raise Unreadable(
            f"{one_line(target)} cannot be given the name {right.name} by a link ({error.strerror}). Rename "
            "it, or make its folder writable and free of that name."
        ) from error
    log.warning("%s is taken for %s", one_line(target), one_line(right.name))
    return right


def adopt(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader's hook: a lone notebook under another name is graded as the lesson's."""
    if not notebooks:
        return
    folder = Path(notebooks[0]).parent
    try:
        notebooks[:] = [str(give_name(folder, folder.name))]
    except Unreadable as why:
        log.error("%s", legible(why))


class BareDirectory(CourseDirectory):
    """nbgrader's course directory, where hand-ins are notebooks and no more."""

    def get_existing_timestamp(self, dest_path: str) -> datetime | None:
        """When something was handed in, if a small file beside it says so."""
        return handed_in_at(Path(dest_path))

    def beside(self, folder: Path) -> dict[str, bytes]:
        """What nbgrader's exchange has put beside a hand-in: when it came, and the secret by which it knows whose the
        feedback is. Nothing else, and nothing of another form."""
        time, file = self.get_existing_timestamp(str(folder)), folder / SUBMISSION_SECRET
        found = {TIME: f"{time} UTC".encode()} if time else {}
        try:
            status = file.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size <= LONGEST_SECRET:
                secret = file.read_bytes()
                found |= {SUBMISSION_SECRET: secret} if re.fullmatch(rb"[0-9a-f]+", secret) else {}
        except OSError:
            pass
        return found


class Alone:
    """An exporter that has its converter copy nothing that lies beside a notebook but what the exchange put there."""

    parent: Any

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if course := getattr(self.parent, "coursedir", None):
            settings = {**course.trait_values(config=True), "ignore": ["*"]}
            self.parent.coursedir = BareDirectory(parent=course.parent, **settings)

    def with_files(self, notebook: Path, resources: Any) -> dict[str, Any]:
        """The resources of a conversion, with the files that are to lie beside what comes of it."""
        return {**(resources or {}), "outputs": self.parent.coursedir.beside(notebook.parent) if self.parent else {}}


class OwnNotebook(NotebookNode):
    """A notebook that nobody else holds: a copy, of which nbconvert makes three before it changes one, is itself."""

    def __deepcopy__(self, _: dict[int, Any]) -> OwnNotebook:
        return self


class Reader(Alone, NotebookExporter):
    """nbgrader's way to a notebook, by ours: so what only `read` can read is graded, with nothing rewritten.

    The time it was handed in is written anew, by which nbgrader knows what is newer than its marks.
    """

    def from_filename(  # type: ignore[override]  # a NotebookExporter returns text
        self, filename: str, resources: Any = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        path = Path(filename)
        about = {"metadata": {"name": path.stem, "path": str(path.parent)}}
        resources = {**self.with_files(path, resources), **about}
        return self.from_notebook_node(OwnNotebook(read(path)), resources, **options)

    def from_notebook_node(  # type: ignore[override]  # a NotebookExporter returns text
        self, nb: NotebookNode, resources: Any = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        """As a NotebookExporter does it, but validated once, and written as text in a fraction of the time."""
        made, resources = Exporter.from_notebook_node(self, nb, resources, **options)
        resources["output_suffix"] = ".nbconvert"
        return notebook_text(made) + "\n", resources


class Restore(NbGraderPreprocessor):
    """The first step of grading: the marks of the release, whatever those of the hand-in say."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        return restore(nb, registered_release(resources["nbgrader"])), resources


@contextlib.contextmanager
def one_release() -> Iterator[None]:
    """Have `registered_release` ask the gradebook once for each lesson, for the length of this block, or of one around
    it."""
    _RELEASES.append(_RELEASES[-1] if _RELEASES else {})
    try:
        yield
    finally:
        _RELEASES.pop()


_RELEASES: list[dict[tuple[str, ...], NotebookNode]] = []


def registered_release(where: dict[str, str]) -> NotebookNode:
    """The marked cells of the release, as nbgrader's gradebook keeps them."""
    known = _RELEASES[-1] if _RELEASES else {}
    asked = where["db_url"], where["notebook"], where["assignment"]
    if asked not in known:
        known[asked] = _read_release(where)
    return known[asked]


def _read_release(where: dict[str, str]) -> NotebookNode:
    with Gradebook(where["db_url"]) as gradebook:
        notebook = gradebook.find_notebook(where["notebook"], where["assignment"])
        worth = {cell.name: cell.max_score for cell in notebook.grade_cells}
        answers = {cell.name for cell in notebook.solution_cells}
        cells = [
            _as_cell(cell, worth.get(cell.name), cell.name in answers)
            for cell in notebook.source_cells
            if cell.cell_type == "code"
        ]
    return nbformat.from_dict({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _as_cell(source: Any, worth: float | None, solution: bool) -> dict[str, Any]:
    marks = {
        "grade": worth is not None,
        "grade_id": source.name,
        "locked": source.locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
        "checksum": source.checksum,
        "cell_type": source.cell_type,
    }
    if worth is not None:
        marks["points"] = worth
    return {
        "cell_type": "code",
        "id": source.name.replace("_", "-")[:64],
        "source": source.source,
        "outputs": [],
        "execution_count": None,
        "metadata": {"nbgrader": marks},
    }
