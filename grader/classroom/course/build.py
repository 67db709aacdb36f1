"""solutions/ -> course/: the lesson as students get it, the same to the byte every time.

The one source of a lesson is `solutions/NN_topic/NN_topic.md`. Its `.ipynb` beside it holds the same
cells with nbgrader's marks and the stored outputs that nbval compares. nbgrader makes the release from
that, and the student's `.md` is written from the release.
"""

from __future__ import annotations

import filecmp
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError
from traitlets.config import Config, PyFileConfigLoader

from grader.arrays.fresh import SEED
from grader.classroom.course.frame import bare, framed, titles
from grader.classroom.course.headings import with_points
from grader.classroom.course.index import START_PAGE, TABLE, start_page
from grader.classroom.course.kept import MADE_BY_TOOLS, enter, remove, set_aside
from grader.classroom.course.late import enter_due_dates
from grader.classroom.course.notebook import grade_id, mark
from grader.classroom.course.plan import PLAN, Plan, plan_of
from grader.classroom.course.published import published
from grader.classroom.course.shape import must_have_the_shape
from grader.classroom.course.syllabus import SYLLABUS, syllabus_json, write_points, write_syllabus
from grader.classroom.store import FOLDER, Unavailable, key, write

BUILT = f"{FOLDER}/built.json"
PYTHON = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def gradebook(root: Path) -> Gradebook:
    """nbgrader's gradebook of this course; where there is none, it is made whole or not at all. Raises Unavailable."""
    url = CourseDirectory(config=configuration(root)).db_url
    file = Path(make_url(url).database or "")
    try:
        if url.startswith("sqlite:") and not file.exists():
            with tempfile.TemporaryDirectory(prefix=".new-", dir=file.parent) as beside:
                fresh = Path(beside) / "gradebook.db"
                Gradebook(f"sqlite:///{fresh}").close()
                fresh.replace(file)
        return Gradebook(url)
    except (SQLAlchemyError, OSError, ImportError) as error:
        raise Unavailable(
            f"The gradebook at {make_url(url)} cannot be opened: {str(error).splitlines()[0]}. Put that "
            "right, or change c.CourseDirectory.db_url in nbgrader_config.py."
        ) from error


def is_registered(root: Path) -> bool:
    """Whether the gradebook knows every lesson with all its marked cells."""
    with gradebook(root) as book:
        return all(_knows(book, root, name) for name in plan_of(root).lessons)


def _knows(book: Gradebook, root: Path, lesson: str) -> bool:
    try:
        release = nbformat.read(root / "course" / lesson / f"{lesson}.ipynb", 4)
        known = {cell.name for cell in book.find_notebook(lesson, lesson).source_cells}
    except (MissingEntry, OSError, ValueError):  # missing, or not complete
        return False
    return {grade_id(cell) for cell in release.cells if grade_id(cell)} <= known


def lessons(root: Path, names: Collection[str] | None = None) -> list[Path]:
    """The sources of all lessons, or of those named, in order."""
    sources = sorted(p for p in (root / "solutions").glob("*/*.md") if p.stem == p.parent.name)
    return [source for source in sources if not names or source.stem in names]


def configuration(root: Path) -> Config:
    """nbgrader's configuration, read from nbgrader_config.py, for this root."""
    # nbgrader starts `alembic` by name: it lies beside this interpreter.
    places = os.environ.get("PATH", "").split(os.pathsep)
    if (beside := os.path.dirname(sys.executable)) not in places:
        os.environ["PATH"] = os.pathsep.join([beside, *places])
    config = PyFileConfigLoader("nbgrader_config.py", path=str(root)).load_config()
    config.CourseDirectory.root = str(root)
    return config


def nbgrader(root: Path) -> NbGraderAPI:
    """nbgrader's own interface to this course, quiet but for warnings."""
    api = NbGraderAPI(config=configuration(root))
    api.log.setLevel(logging.ERROR)
    return api


def pair(source: Path) -> Path:
    """Write the solution notebook of a lesson, and its points into the source; outputs stay where the cell has not
    changed. Raises Misshapen if its core asks too much."""
    root = source.parents[2]
    if (text := with_points(source.read_text())) != source.read_text():
        source.write_text(text)
    nb = mark(bare(jupytext.read(source, fmt="md:myst")), source.stem.split("_")[0])
    must_have_the_shape(nb, source.stem)
    nb = framed(nb, source.stem, titles(lessons(root)), published(root))
    nb.metadata = nbformat.from_dict(PYTHON)
    target = source.with_suffix(".ipynb")
    stored = {c.id: c for c in nbformat.read(target, 4).cells} if target.exists() else {}
    for cell in nb.cells:
        old = stored.get(cell.id)
        if cell.cell_type == "code" and old is not None and old.source == cell.source:
            cell.outputs, cell.execution_count = old.outputs, old.execution_count
    return _write(nb, target)


def _write(nb: NotebookNode, target: Path) -> Path:
    text = nbformat.writes(nb, 4) + "\n"
    if not target.exists() or target.read_text() != text:
        target.write_text(text)
    return target


def store_outputs(notebook: Path) -> None:
    """Run a solution notebook in a real kernel and store its outputs, without times or places."""
    nb = nbformat.read(notebook, 4)
    NotebookClient(
        nb,
        timeout=120,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(notebook.parent)}},
    ).execute(env={**os.environ, SEED: "0"})
    nb.metadata = nbformat.from_dict(PYTHON)
    _write(nb, notebook)


def build(root: Path, names: Collection[str] | None = None, say: Callable[[str], None] = print) -> list[Path]:
    """Build `course/` from `solutions/`, or the lessons named; returns the students' notebooks.

    `say` is told of each file that was moved out of the way.
    """
    notebooks, built = [], _built(root)
    plan = plan_of(root)
    with gradebook(root) as book:
        for line in _leave_out(root, plan, book):
            say(line)
    for source in lessons(root, names):
        pair(source)
        if source.stem not in plan.lessons:
            continue
        for line in set_aside(root, source.stem):
            say(line)
        notebooks.append(_release(root, source.stem))
        enter(root, source.stem)
        built[source.stem] = _made_of(plan, source)
    write(root / BUILT, json.dumps(built).encode())
    with gradebook(root) as book:
        enter_due_dates(book, plan)
    for line in set_aside(root, START_PAGE):
        say(line)
    page = start_page(root)
    page.metadata = nbformat.from_dict(PYTHON)
    _write(page, root / "course" / START_PAGE)
    enter(root, START_PAGE)
    write_syllabus(root)
    write_points(root, plan)
    return notebooks


def outdated(root: Path, plan: Plan) -> Iterator[str]:
    """A line where lessons are graded as they were built, and no longer as their sources and course.toml have them."""
    built = _built(root)
    names = [s.stem for s in lessons(root, plan.lessons) if s.stem in built and built[s.stem] != _made_of(plan, s)]
    if names:
        yield (
            f"{', '.join(names)}: solutions/ or {PLAN} changed after course/ was built, and hand-ins are graded as it "
            "was built. Run `grader build` to grade them as it is now."
        )


def _built(root: Path) -> dict[str, str]:
    """Of each lesson a key of what it was built from; nothing where nobody has built here."""
    file = root / BUILT
    return json.loads(file.read_text()) if file.exists() else {}


def _made_of(plan: Plan, source: Path) -> str:
    own = plan.of(source.stem)
    return key(source.read_text(), str(own.due), sorted(own.left_out), sorted(own.bonus), sorted(own.points.items()))


def _leave_out(root: Path, plan: Plan, book: Gradebook) -> Iterator[str]:
    """Take what this course has not out of `course/` and out of the gradebook, but for lessons that are graded."""
    for lesson in sorted(plan.others):
        yield from remove(root, lesson)
        try:
            graded = len(book.find_assignment(lesson).submissions)
        except MissingEntry:
            continue
        if graded:
            yield f"{lesson} is not in {PLAN}, but {graded} hand-ins of it are graded: the gradebook keeps them."
        else:
            book.remove_assignment(lesson)


def _release(root: Path, lesson: str) -> Path:
    result = nbgrader(root).generate_assignment(lesson, force=True, create=True)
    if "there are submissions associated" in result.get("log", ""):
        raise Unavailable(
            f"{lesson} cannot be released anew: hand-ins are graded that were asked for other exercises. Points and "
            f"due dates of {PLAN} may change now, but what it takes of this lesson may not: put that back as it was."
        )
    if not result["success"]:
        raise RuntimeError(f"nbgrader could not release {lesson}:\n{result.get('log') or result.get('error')}")
    target = root / "course" / lesson / f"{lesson}.ipynb"
    nb = nbformat.read(target, 4)
    nb.metadata = nbformat.from_dict(PYTHON)
    _write(nb, target)
    nb.metadata.jupytext = {"cell_metadata_filter": "-all"}  # the text to read; marks live in the notebook
    target.with_suffix(".md").write_text(jupytext.writes(nb, fmt="md:myst"))
    return target


def stale(root: Path) -> list[str]:
    """The files of `course/` and `solutions/` that differ from a fresh build; empty when all is well."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        shutil.copytree(root / "solutions", copy / "solutions")
        for name in ("nbgrader_config.py", "pyproject.toml", TABLE, PLAN):
            if (root / name).exists():
                shutil.copy(root / name, copy)
        build(copy)
        facts = root / "grader" / SYLLABUS
        outdated = [f"grader/{SYLLABUS}"] if facts.exists() and facts.read_text() != syllabus_json(copy) else []
        for name in ("course", "solutions"):
            outdated += _differences(root / name, copy / name)
        return outdated


def _differences(here: Path, fresh: Path) -> list[str]:
    names = sorted(
        {
            p.relative_to(d)
            for d in (here, fresh)
            for p in d.rglob("*")
            if p.is_file() and not MADE_BY_TOOLS & set(p.parts)
        }
    )
    return [f"{here.name}/{name}" for name in names if not _same(here / name, fresh / name)]


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and filecmp.cmp(one, other, shallow=False)
