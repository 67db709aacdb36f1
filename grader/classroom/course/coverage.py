"""The checklist of what the course has to teach, and where it does: `grader/lessons/checklist.csv`.

A row names the lesson that teaches it, and in that lesson the exercises that practise it, or a heading
(`§ Axis types`) under which it is shown; several are separated by semicolons.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from grader.classroom.course.build import lessons
from grader.lessons import EXERCISES

CHECKLIST = Path(__file__).parents[2] / "lessons" / "checklist.csv"


@dataclass(frozen=True)
class ChecklistRow:
    """One thing to be taught; `lesson` is empty where nothing teaches it yet."""

    row: str
    lesson: str
    where: tuple[str, ...]
    subject: str


def checklist(file: Path = CHECKLIST) -> list[ChecklistRow]:
    with open(file, newline="") as lines:
        return [
            ChecklistRow(
                r["row"], r["lesson"], tuple(filter(None, map(str.strip, r["where"].split(";")))), r["subject"]
            )
            for r in csv.DictReader(lines)
        ]


def problems(rows: Sequence[ChecklistRow], root: Path) -> list[str]:
    """Names in the rows that do not exist, and rows that are there twice."""
    sources = {source.stem: source.read_text() for source in lessons(root)}
    lines = [f"{row.row} stands there twice" for k, row in enumerate(rows) if row.row in {r.row for r in rows[:k]}]
    for row in rows:
        if not row.lesson:
            lines += [f"{row.row} names {row.where[0]!r} but no lesson"] if row.where else []
        elif row.lesson not in sources:
            lines.append(f"{row.row} names the lesson {row.lesson!r}, which does not exist")
        elif not row.where:
            lines.append(f"{row.row} says {row.lesson}, but not where in it")
        else:
            lines += [
                f"{row.row}: there is no {place!r} in {row.lesson}"
                for place in row.where
                if not _stands(place, sources[row.lesson])
            ]
    return lines


def _stands(place: str, lesson: str) -> bool:
    if place.startswith("§"):
        return re.search(rf"^#+ .*{re.escape(place[1:].strip())}", lesson, re.MULTILINE) is not None
    return place in EXERCISES and f":answer: {place}\n" in lesson


def coverage_table(rows: Sequence[ChecklistRow]) -> Table:
    """The rows, and where each is taught."""
    taught = sum(bool(row.lesson) for row in rows)
    table = Table("row", "subject", "lesson", "where", title=f"{taught} of {len(rows)} rows are taught")
    for row in rows:
        table.add_row(row.row, row.subject, row.lesson or "—", "; ".join(row.where), style="" if row.lesson else "dim")
    return table
