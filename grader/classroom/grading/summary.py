"""The marks of a class, as the table that is printed at the end and as grades.csv."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.classroom.course.demo import DEMO_FOLDER
from grader.classroom.course.late import is_due
from grader.classroom.course.plan import Plan
from grader.classroom.grading.digest import STATES, Digest, named_mistakes
from grader.classroom.grading.record import Row
from grader.classroom.handins.archive import listed
from grader.classroom.out import as_csv
from grader.classroom.store import write
from grader.classroom.walls import bubblewrap as walls
from grader.guide.syllabus import syllabus
from grader.lessons import find
from grader.wording.mistakes import words_of

WORST = 3  # mistakes on the first screen
MOST_STUDENTS = 60  # that have a line of a table; of more, grades.csv tells
MOST_LISTED = 5  # exercises without an answer that are named


def write_csv(rows: Sequence[Row], target: Path) -> None:
    """A line for each hand-in: its points and those of its core, each with their maximum, a column for each exercise,
    and the problem with it in the last. Where one is late, a column has what was taken off its points for that; another
    has what applies to one student, such as an extension."""
    names = list(dict.fromkeys(name for row in rows for name in row.points))
    late, special = any(row.late for row in rows), any(row.terms.notes for row in rows)
    lines = [
        [
            row.hand_in.student,
            row.hand_in.lesson,
            row.mark,
            row.most,
            total(_core(row.points)),
            total(_core(row.worth)),
            *([row.late] * late),
            *([" ".join(row.terms.notes)] * special),
            *(row.points.get(name, "") for name in names),
            row.problem,
        ]
        for row in rows
    ]
    more = [*(["late"] * late), *(["terms"] * special)]
    header = ["student", "lesson", "points", "max", "core", "core max", *more, *names, "problem"]
    write(target, as_csv([header, *lines]).encode("utf-8", "replace"))


def write_totals(rows: Sequence[Row], plan: Plan, target: Path) -> None:
    """A line for each student: what part of each lesson's points, in percent, and of all, by the lessons' weights.

    Lessons that are not yet due for a student, or of which nobody has handed in anything, do not count yet; of the
    others, what a student did not hand in counts as nothing.
    """
    marks = {(row.hand_in.student, row.hand_in.lesson): 100 * row.mark / row.most for row in rows if row.most}
    lessons = [name for name in plan.lessons if any(lesson == name for _, lesson in marks)]
    weights = {name: plan.of(name).weight for name in lessons}
    lines = []
    for student in dict.fromkeys(row.hand_in.student for row in rows):
        due = [name for name in lessons if is_due(plan.due(student, name))]
        whole = sum(weights[name] * marks.get((student, name), 0.0) for name in due)
        parts = (marks.get((student, name), 0.0 if name in due else None) for name in lessons)
        cells = ("" if part is None else round(part, 2) for part in parts)
        lines.append([student, round(whole / (sum(weights[name] for name in due) or 1), 2), *cells])
    write(target, as_csv([["student", "total %", *lessons], *lines]).encode("utf-8", "replace"))


def _core(points: Mapping[str, float]) -> dict[str, float]:
    """The points of the exercises that are of their lesson's core."""
    core = {one.name for lesson in syllabus() for one in lesson.exercises if one.is_core}
    return {name: points[name] for name in points if name in core}


def total(points: Mapping[str, float]) -> float:
    """The sum of points, without the noise of floating point."""
    return round(sum(points.values()), 2)


def show(rows: Sequence[Row], console: Console, details: bool = False) -> None:
    """Print the class: a line for each student, the worst mistakes, marks that moved, hand-ins for a person to look at.

    With `details`, a line for each hand-in besides, with the names of all its mistakes.
    """
    if details:
        console.print(_by_hand_in(rows))
    if len({row.hand_in.student for row in rows}) <= MOST_STUDENTS:
        console.print(_by_student(rows))
    _show_mistakes(rows, console)
    _show_moves(rows, console)
    _show_attention(rows, console)
    if example := next((r.hand_in for r in rows if not r.problem), None):
        is_demo = example.root.name == DEMO_FOLDER
        home, place = example.root.parent if is_demo else example.root, f"{DEMO_FOLDER}/" if is_demo else ""
        console.print(
            f"Feedback: {place}feedback/STUDENT/LESSON/LESSON.html, for example "
            f"{escape(str(example.at('feedback', '.html').relative_to(home)))}\n"
            f"Marks: {place}grades.csv, and nbgrader's gradebook (`grader lab --instructor`, then Formgrader)\n"
            "The class as a page: `grader report`; every mistake of every hand-in: `grader grade --details`",
            soft_wrap=True,
        )


def _by_student(rows: Sequence[Row]) -> Table:
    """Of each student the points in all lessons together, and in how many exercises the answer is what."""
    lessons = ", ".join(dict.fromkeys(escape(row.hand_in.lesson) for row in rows))
    table = Table("student", "points", title=f"Marks: {lessons}")
    for state in STATES:
        table.add_column(state, justify="right")
    for student in dict.fromkeys(row.hand_in.student for row in rows):
        own = [row for row in rows if row.hand_in.student == student and not row.problem]
        points, worth = sum(row.mark for row in own), sum(row.most for row in own)
        counted = Counter(found.state for row in own for found in row.digests)
        counts = (f"{counted[state] or ''}" for state in STATES)
        table.add_row(escape(student), f"{round(points, 2):g} / {worth:g}" if own else "—", *counts)
    return table


def _by_hand_in(rows: Sequence[Row]) -> Table:
    table = Table("student", "lesson", "points", "what went wrong", title="Hand-ins")
    for row in rows:
        name, lesson = escape(row.hand_in.student), escape(row.hand_in.lesson)
        if row.problem:
            table.add_row(name, lesson, "—", f"[red]{escape(row.problem)}[/red]")
        else:
            late = f" (late: {row.late:g} less)" if row.late else ""
            table.add_row(name, lesson, f"{row.mark:g} / {row.most:g}{late}", _missed(row.digests))
    return table


def _missed(digests: Sequence[Digest]) -> str:
    """The named mistakes, exercise by exercise; many exercises that were left open are counted."""
    missed = [(one.exercise, one.mistake or one.check) for one in digests if one.check and one.state != "open"]
    blank = [one.exercise for one in digests if one.state == "open"]
    left = [f"{len(blank)} exercises"] if len(blank) > MOST_LISTED else blank
    said = [f"{name}: {what}" for name, what in missed] + [f"{name}: no answer" for name in left]
    return escape(", ".join(said)) or "nothing"


def _show_mistakes(rows: Sequence[Row], console: Console) -> None:
    """The mistakes that most students made, and what they hear."""
    worst = named_mistakes(found for row in rows for found in row.digests)[:WORST]
    if worst:
        console.print("\n[bold]Made most often[/bold]", highlight=False)
    for exercise, mistake, count in worst:
        words = " ".join(words_of(find(exercise), mistake).split())
        console.print(f"  {count} × {exercise}, {escape(mistake)}: {escape(words)}", highlight=False, soft_wrap=True)


def show_preview(rows: Sequence[Row], console: Console) -> None:
    """Print whose marks would move and why, and what would be graded for the first time."""
    _show_moves(rows, console, "Would move")
    new = [f"{row.hand_in.student}, {row.hand_in.lesson}" for row in rows if not row.before and not row.problem]
    moved = sum(bool(row.moved) for row in rows)
    said = f"{moved} of {len(rows)} hand-ins would have other points. Nothing was written."
    for line in (f"Graded for the first time: {listed(new)}." if new else "", said):
        console.print(escape(line), soft_wrap=True, highlight=False)
    _show_attention(rows, console)


def _show_moves(rows: Sequence[Row], console: Console, title: str = "Moved since the last grading") -> None:
    rows = [row for row in rows if row.moved]
    if not rows:
        return
    table = Table("student", "lesson", "before", "now", "exercises", title=title)
    for row in rows:
        why = {one.exercise: f" ({one.mistake or one.check})" for one in row.digests if one.check}
        moved = row.moved.items()
        changes = escape(", ".join(f"{name} {old:g} → {now:g}{why.get(name, '')}" for name, (old, now) in moved))
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
            reasons = "; ".join(row.attention) or row.problem.rstrip(".")
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
