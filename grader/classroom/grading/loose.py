"""Hand-ins judged without a gradebook: one notebook, or a folder of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import nbformat
from nbformat import NotebookNode

from grader.classroom.course.notebook import checks
from grader.classroom.grading.clerks import Lost, by_clerks
from grader.classroom.grading.execute import Grading, grade_notebook
from grader.classroom.handins import handin
from grader.classroom.handins.archive import hidden
from grader.classroom.store import Store
from grader.classroom.verdicts.judge import shared_judge
from grader.feedback import explanation
from grader.findings.finding import finding_to_json
from grader.lessons import EXERCISES


@dataclass(frozen=True)
class Records:
    """One file's records, or why it has none."""

    title: str
    records: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""


def grade_files(paths: Sequence[Path], root: Path, seed: int) -> Iterator[Records]:
    """Judge every notebook under `paths`, one after the other, against the lessons in `root/course`."""
    found = [file for path in paths for file in _notebooks(path)]
    yield from (problem for problem in found if isinstance(problem, Records))
    files = [file for file in found if isinstance(file, Path)]
    for file, outcome in by_clerks(functools.partial(_graded, root, seed), files):
        yield Records(str(file), problem=f"{file}: {outcome.why}") if isinstance(outcome, Lost) else outcome


def _notebooks(path: Path) -> list[Path | Records]:
    if not path.exists():
        return [Records(str(path), problem=f"{path}: there is no such file or folder.")]
    if path.is_file():
        return [path]
    inside = sorted(p for p in path.rglob("*.ipynb") if not hidden(PurePosixPath(p.relative_to(path))))
    return [*inside] or [Records(str(path), problem=f"{path}: there is no notebook (*.ipynb) in this folder.")]


@functools.cache
def _releases(root: Path) -> list[NotebookNode]:
    return [nbformat.read(p, 4) for p in sorted((root / "course").glob("*/*.ipynb"))]


def _graded(root: Path, seed: int, file: Path) -> Records:
    try:
        nb = handin.read(file)
    except handin.Unreadable as why:
        return Records(str(file), problem=f"{file}: {why}")
    named = set(checks(nb))
    release = max(_releases(root), key=lambda r: len(named & set(checks(r))), default=None)
    if release is None or not named & set(checks(release)):
        return Records(
            str(file),
            problem=f"{file}: none of the course's exercises is in it. Is it a notebook from "
            "course/, with its check cells?",
        )
    graded = grade_notebook(nb, Grading(release, seed), shared_judge(), Store(None))
    student = _student(file)
    return Records(
        f"{student}: {file.name}",
        [
            {
                "student": student,
                "notebook": file.stem,
                "exercise": v.exercise,
                "points": v.points,
                "max": v.worth,
                "mistake": v.mistake,
                "findings": list(map(finding_to_json, v.failure.findings)) if v.failure else [],
                "message": explanation(v, EXERCISES.get(v.exercise)),
            }
            for v in graded.verdicts
        ],
    )


def _student(file: Path) -> str:
    """submitted/STUDENT/LESSON/LESSON.ipynb as nbgrader lays it out; else the folder the file lies in."""
    folder = file.resolve().parent
    return folder.parent.name if folder.name == file.stem else folder.name
