"""What the lessons say of themselves, read from `course/`: for the start page, and for `grader.progress` and its like.

The title cell has the title and which lessons it needs; each exercise has a heading, hints and a starter; how long a
lesson takes is counted. `grader build` writes all of it into the package, so that a student who has no
checkout has it, too.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grader.classroom.course.frame import bare
from grader.classroom.course.headings import EXERCISE, ExerciseHeading, exercise_heading
from grader.classroom.course.minutes import honest_minutes
from grader.classroom.course.notebook import ANSWER, grade_id
from grader.classroom.course.plan import Plan
from grader.classroom.course.published import published
from grader.classroom.store import write
from grader.guide.syllabus import SYLLABUS, ExerciseText, LessonText
from grader.lessons import POINTS

ONE_HINT = re.compile(r"<details><summary>Hint \d</summary>(.*?)</details>", re.DOTALL)
# The last lines of a title cell: *You need lessons 01 and 02: meshes, and who holds what.*
NEEDS = re.compile(r"^\*(?:[^*]*? )??You need ([^*]*)\*$", re.MULTILINE)
LESSONS = re.compile(r"\b[Ll]essons?\s\d\d(?:(?:,\s|\sand\s|\sor\s|\sto\s|–)\d\d)*\b")  # as texts speak of them
UNSAID = ExerciseHeading((), True, 0)  # above an exercise that has no heading


def told(root: Path) -> list[LessonText]:
    """What each lesson of `course/` says of itself, in order."""
    return [
        _lesson(root, file) for file in sorted((root / "course").glob("*/*.ipynb")) if file.stem == file.parent.name
    ]


def _lesson(root: Path, file: Path) -> LessonText:
    nb = nbformat.read(file, 4)
    first = nb.cells[0].source
    title = re.search(r"^# (.*)", first, re.MULTILINE)
    needs = NEEDS.search(first)
    minutes = honest_minutes(bare(nb))
    if title is None:
        raise ValueError(f"{file}: the first cell should begin with a title, such as `# 07 · The four matmuls`.")
    return LessonText(
        name=file.stem,
        title=title[1],
        core_minutes=minutes.core,
        minutes=minutes.everything,
        needs=lesson_numbers(" ".join(needs[1].split())) if needs else (),
        url=_url(root, file.stem),
        exercises=tuple(_exercises(nb)),
    )


def lesson_numbers(words: str) -> tuple[str, ...]:
    """The lessons in "05 to 07 (the collectives), 10": 05, 06, 07 and 10."""
    bounds = re.findall(r"\b(\d\d)\b(?:(?: to |–)(\d\d)\b)?", words)
    return tuple(f"{k:02}" for first, last in bounds for k in range(int(first), int(last or first) + 1))


def _url(root: Path, name: str) -> str:
    """The lesson in Colab; "" where the course is not published."""
    if not (root / "pyproject.toml").exists():
        return ""
    place = published(root)
    return place.colab(name) if place else ""


def _exercises(nb: NotebookNode) -> Iterator[ExerciseText]:
    """The exercises in the order of the text, each with the heading and the hints that stand before its cell."""
    heading, place = UNSAID, ""
    hints: tuple[str, ...] = ()
    for cell in nb.cells:
        _, found, after = cell.source.rpartition(EXERCISE)
        if cell.cell_type == "markdown" and found:
            heading, place, hints = exercise_heading(f"{found}{after}".partition("\n")[0]) or UNSAID, cell.id, ()
        hints += tuple(_as_words(hint) for hint in ONE_HINT.findall(after))
        if (name := grade_id(cell)).startswith(ANSWER):
            yield ExerciseText(name.removeprefix(ANSWER), heading.is_core, heading.minutes, place, hints, cell.source)


def _as_words(hint: str) -> str:
    """A hint without HTML: `code` and *emphasis*, as in all our words."""
    marked = re.sub(r"</?em>", "*", re.sub(r"</?code>", "`", hint))
    return html.unescape(" ".join(marked.split()))


def syllabus_json(root: Path) -> str:
    """The syllabus as the package holds it."""
    return json.dumps([asdict(lesson) for lesson in told(root)], indent=1, ensure_ascii=False) + "\n"


def write_syllabus(root: Path) -> None:
    """Write the syllabus into the package, where this course has one of its own."""
    file = root / "grader" / SYLLABUS
    if file.parent.exists() and (text := syllabus_json(root)) != (file.read_text() if file.exists() else ""):
        file.write_text(text)


def write_points(root: Path, plan: Plan) -> None:
    """Write into the package what exercises are worth in this course where that is not what they declare."""
    points = {name: worth for lesson in plan.lessons.values() for name, worth in lesson.points.items()}
    file = root / "grader" / POINTS
    if points and file.parent.exists():
        write(file, (json.dumps(points, indent=1, sort_keys=True) + "\n").encode())
    else:
        file.unlink(missing_ok=True)
