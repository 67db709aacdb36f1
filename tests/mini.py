"""A course with one small lesson, for the tests of the classroom."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from grader.classroom.course.build import build

LESSON = "01_mini"
HERE = Path(__file__).parent
LIMITS = "\nc.JudgedExecute.cell_seconds = 2\nc.JudgedExecute.seconds = 20\n"


def make_course(root: Path) -> Path:
    """The sources of the small course in `root`, with short limits."""
    shutil.copytree(HERE / "fixtures" / LESSON, root / "solutions" / LESSON)
    configuration = (HERE.parent / "nbgrader_config.py").read_text()
    (root / "nbgrader_config.py").write_text(configuration + LIMITS)
    shutil.copy(HERE.parent / "pyproject.toml", root)
    return root


def built_course(root: Path) -> Path:
    """The same, built. (Once in a process; every other time it is a copy.)"""
    return Path(shutil.copytree(_built(), root, dirs_exist_ok=True))


@functools.cache
def _built() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mini-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    build(make_course(folder))
    return folder


def solved(root: Path) -> NotebookNode:
    return nbformat.read(root / "solutions" / LESSON / f"{LESSON}.ipynb", 4)


def released(root: Path) -> NotebookNode:
    return nbformat.read(root / "course" / LESSON / f"{LESSON}.ipynb", 4)


def with_cell(nb: NotebookNode, source: str, at: int = 3) -> NotebookNode:
    """The notebook with one more code cell, by default behind the imports."""
    nb.cells.insert(at, new_code_cell(source))
    return nb


def position(nb: NotebookNode, grade_id: str) -> int:
    return next(k for k, c in enumerate(nb.cells) if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def edited(nb: NotebookNode, grade_id: str, change: Callable[[NotebookNode], object]) -> NotebookNode:
    change(nb.cells[position(nb, grade_id)])
    return nb
