"""A whole class: every hand-in through nbgrader's own pipeline, marks in its gradebook, feedback for each.

What has not changed since it was graded is not graded again.
"""

from __future__ import annotations

import csv
import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sqlalchemy.exc import SAWarning

from grader.classroom import handin
from grader.classroom.build import build, configuration, nbgrader
from grader.classroom.demo import make_class
from grader.classroom.judging import shared_judge
from grader.classroom.notebook import checked
from grader.exercise import Outcome


@dataclass(frozen=True)
class HandIn:
    """One student's notebook for one lesson, where nbgrader expects it."""

    root: Path
    student: str
    lesson: str

    def at(self, step: str, suffix: str = ".ipynb") -> Path:
        return self.root / step / self.student / self.lesson / f"{self.lesson}{suffix}"


@dataclass(frozen=True)
class Row:
    """A hand-in's marks: points by exercise out of nbgrader's gradebook, or the problem with it."""

    hand_in: HandIn
    points: dict[str, float] = field(default_factory=dict)
    worth: dict[str, float] = field(default_factory=dict)
    problem: str = ""


def grade_class(root: Path, console: Console) -> list[Row]:
    """Grade everything in `submitted/` (or a demo class, if there is nothing) and write feedback and grades.csv."""
    if not (root / "gradebook.db").exists():
        console.print("Building course/ and the gradebook …")
        build(root)
    hand_ins = list(found(root)) or _demo(root, console)
    api = nbgrader(root)
    warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's own, and nobody's concern here
    try:
        steps = track(hand_ins, "Grading", console=console, transient=True, disable=not console.is_terminal)
        rows = [_graded(api, hand_in) for hand_in in steps]
    finally:
        shared_judge().close()
    write_csv(rows, root / "grades.csv")
    return rows


def found(root: Path) -> Iterator[HandIn]:
    """The hand-ins under `submitted/STUDENT/LESSON/`, in order."""
    for folder in sorted((root / "submitted").glob("*/*")):
        if folder.is_dir() and not folder.name.startswith("."):
            yield HandIn(root, folder.parent.name, folder.name)


def _demo(root: Path, console: Console) -> list[HandIn]:
    console.print("There is nothing in submitted/: making a demo class of 12 students.")
    for release in sorted((root / "course").glob("*/*.ipynb")):
        make_class(root, release.stem, root / "submitted")
    return list(found(root))


def _graded(api: NbGraderAPI, hand_in: HandIn) -> Row:
    if problem := unreadable(hand_in):
        return Row(hand_in, problem=problem)
    key = _key(hand_in)
    stamp = hand_in.at("feedback", ".graded")
    if not (stamp.exists() and stamp.read_text() == key):
        for step in (api.autograde, api.generate_feedback):
            result = step(hand_in.lesson, hand_in.student, force=True)
            if not result["success"]:
                last = (result.get("error") or result.get("log") or "").strip().splitlines()
                return Row(hand_in, problem=f"nbgrader stopped: {last[-1] if last else 'it gave no reason'}")
        stamp.write_text(key)
    return _row(hand_in)


def write_feedback(root: Path) -> Iterator[Path]:
    """Write every graded hand-in's feedback page anew, with what a person has since added in Formgrader."""
    api = nbgrader(root)
    for hand_in in found(root):
        graded = hand_in.at("autograded").exists()
        if graded and api.generate_feedback(hand_in.lesson, hand_in.student, force=True)["success"]:
            yield hand_in.at("feedback", ".html").relative_to(root)


def unreadable(hand_in: HandIn) -> str:
    """Why a hand-in cannot be graded; "" when it can."""
    if not (hand_in.root / "course" / hand_in.lesson / f"{hand_in.lesson}.ipynb").exists():
        return f"There is no lesson {hand_in.lesson} in course/."
    try:
        handin.read(handin.find(hand_in.at("submitted").parent, hand_in.lesson))
    except handin.Unreadable as why:
        return str(why)
    return ""


def _key(hand_in: HandIn) -> str:
    """What a mark depends on: the hand-in, the release, and the grader."""
    files = [handin.find(hand_in.at("submitted").parent, hand_in.lesson),
             hand_in.root / "course" / hand_in.lesson / f"{hand_in.lesson}.ipynb",
             *sorted(Path(__file__).parents[1].rglob("*.py"))]
    return hashlib.sha256(b"".join(hashlib.sha256(f.read_bytes()).digest() for f in files)).hexdigest()


def _row(hand_in: HandIn) -> Row:
    with Gradebook(CourseDirectory(config=configuration(hand_in.root)).db_url) as book:
        submission = book.find_submission(hand_in.lesson, hand_in.student)
        grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
        order = [name for name, _ in outcomes(hand_in)]
        points = {g.name.removeprefix("check_"): g.score for g in grades}
        worth = {g.name.removeprefix("check_"): g.max_score for g in grades}
    names = [*order, *(n for n in points if n not in order)]
    return Row(hand_in, {n: points[n] for n in names}, {n: worth[n] for n in names})


def outcomes(hand_in: HandIn) -> list[tuple[str, list[Outcome]]]:
    """What each check of an autograded notebook came to."""
    nb = nbformat.read(hand_in.at("autograded"), 4)
    return [(checked(cell), [Outcome(**o) for output in cell.outputs
                             for o in output.get("metadata", {}).get("grader", [])])
            for cell in nb.cells if checked(cell)]


def write_csv(rows: list[Row], target: Path) -> None:
    """One line a hand-in: points and maximum, then a column an exercise; problems in the last column."""
    names = list(dict.fromkeys(name for row in rows for name in row.points))
    with target.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["student", "lesson", "points", "max", *names, "problem"])
        for row in rows:
            table.writerow([row.hand_in.student, row.hand_in.lesson, _total(row.points), _total(row.worth),
                            *(row.points.get(name, "") for name in names), row.problem])


def _total(points: dict[str, float]) -> float:
    return round(sum(points.values()), 2)


def show(rows: list[Row], console: Console) -> None:
    """The class as a table: marks, the mistakes that were named, and where the feedback lies."""
    table = Table("student", "lesson", "points", "what went wrong", title="Marks")
    for row in rows:
        if row.problem:
            table.add_row(row.hand_in.student, row.hand_in.lesson, "—", f"[red]{row.problem}[/red]")
        else:
            table.add_row(row.hand_in.student, row.hand_in.lesson,
                          f"{_total(row.points):g} / {_total(row.worth):g}", _missed(row.hand_in))
    console.print(table)
    example = next((r.hand_in for r in rows if not r.problem), None)
    if example:
        console.print(f"Feedback: feedback/STUDENT/LESSON/LESSON.html, for example "
                      f"{example.at('feedback', '.html').relative_to(example.root)}\n"
                      "Marks: grades.csv, and nbgrader's gradebook.db (`make lab`, then Formgrader)")


def _missed(hand_in: HandIn) -> str:
    missed = [(name, next(o for o in found if not o.passed)) for name, found in outcomes(hand_in)
              if any(not o.passed for o in found)]
    blank = [name for name, outcome in missed if outcome.check == "answered"]
    if len(blank) > 5:
        missed = [m for m in missed if m[0] not in blank] + [(f"{len(blank)} exercises", missed[0][1])]
    said = {"answered": "no answer"}
    return ", ".join(f"{name}: {o.mistake or said.get(o.check, o.check)}" for name, o in missed) or "nothing"
