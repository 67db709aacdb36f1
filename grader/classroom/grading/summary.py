"""The marks of a class, as the table that is printed at the end and as grades.csv."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.classroom.course.plan import Plan
from grader.classroom.grading.record import Row
from grader.classroom.out import as_csv
from grader.classroom.store import write
from grader.classroom.walls import bubblewrap as walls
from grader.guide.syllabus import syllabus


def write_csv(rows: Sequence[Row], target: Path) -> None:
    """A line for each hand-in: its points and those of its core, each with their maximum, a column for each exercise,
    and the problem with it in the last. Where one is late, a column has what was taken off its points for that."""
    names = list(dict.fromkeys(name for row in rows for name in row.points))
    late = any(row.late for row in rows)
    lines = [
        [
            row.hand_in.student,
            row.hand_in.lesson,
            row.mark,
            row.most,
            total(_core(row.points)),
            total(_core(row.worth)),
            *([row.late] * late),
            *(row.points.get(name, "") for name in names),
            row.problem,
        ]
        for row in rows
    ]
    header = ["student", "lesson", "points", "max", "core", "core max", *(["late"] * late), *names, "problem"]
    write(target, as_csv([header, *lines]).encode("utf-8", "replace"))


def write_totals(rows: Sequence[Row], plan: Plan, target: Path) -> None:
    """A line for each student: what part of each lesson's points, in percent, and of all, by the lessons' weights.

    Lessons of which nobody has handed in anything do not count yet; what a student did not hand in counts as nothing.
    """
    marks = {(row.hand_in.student, row.hand_in.lesson): 100 * row.mark / row.most for row in rows if row.most}
    lessons = [name for name in plan.lessons if any(lesson == name for _, lesson in marks)]
    weights = {name: plan.of(name).weight for name in lessons}
    lines = []
    for student in dict.fromkeys(row.hand_in.student for row in rows):
        parts = {name: marks.get((student, name), 0.0) for name in lessons}
        whole = sum(weights[name] * part for name, part in parts.items()) / (sum(weights.values()) or 1)
        lines.append([student, round(whole, 2), *(round(part, 2) for part in parts.values())])
    write(target, as_csv([["student", "total %", *lessons], *lines]).encode("utf-8", "replace"))


def _core(points: Mapping[str, float]) -> dict[str, float]:
    """The points of the exercises that are of their lesson's core."""
    core = {one.name for lesson in syllabus() for one in lesson.exercises if one.is_core}
    return {name: points[name] for name in points if name in core}


def total(points: Mapping[str, float]) -> float:
    """The sum of points, without the noise of floating point."""
    return round(sum(points.values()), 2)


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the class as a table: marks, named mistakes, marks that moved, and hand-ins for a person to look at."""
    table = Table("student", "lesson", "points", "what went wrong", title="Marks")
    for row in rows:
        name, lesson = escape(row.hand_in.student), escape(row.hand_in.lesson)
        if row.problem:
            table.add_row(name, lesson, "—", f"[red]{escape(row.problem)}[/red]")
        else:
            late = f" (late: {row.late:g} less)" if row.late else ""
            table.add_row(name, lesson, f"{row.mark:g} / {row.most:g}{late}", row.missed)
    console.print(table)
    _show_moves(rows, console)
    _show_attention(rows, console)
    if example := next((r.hand_in for r in rows if not r.problem), None):
        console.print(
            f"Feedback: feedback/STUDENT/LESSON/LESSON.html, for example "
            f"{escape(str(example.at('feedback', '.html').relative_to(example.root)))}\n"
            "Marks: grades.csv, and nbgrader's gradebook (`make lab`, then Formgrader)"
        )


def _show_moves(rows: Sequence[Row], console: Console) -> None:
    rows = [row for row in rows if row.moved]
    if not rows:
        return
    table = Table("student", "lesson", "before", "now", "exercises", title="Moved since the last grading")
    for row in rows:
        changes = ", ".join(f"{name} {before:g} → {now:g}" for name, (before, now) in row.moved.items())
        table.add_row(
            escape(row.hand_in.student),
            escape(row.hand_in.lesson),
            f"{total(row.before):g}",
            f"{total(row.points):g}",
            changes,
        )
    console.print(table)


def _show_attention(rows: Sequence[Row], console: Console) -> None:
    for row in rows:
        if row.problem or row.attention:
            reasons = "; ".join(row.attention) or "it could not be graded"
            console.print(
                f"[yellow]A person should look at[/yellow] {escape(row.hand_in.student)}, "
                f"{escape(row.hand_in.lesson)}: {escape(reasons)}.",
                soft_wrap=True,
                highlight=False,
            )
    if (gaps := walls.unprotected()) and os.environ.get(walls.WITHOUT):
        console.print(
            f"[yellow]Graded without all walls.[/yellow] What was not protected:\n{escape(gaps)}",
            soft_wrap=True,
            highlight=False,
        )
