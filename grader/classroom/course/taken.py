"""A lesson as a course takes it: without the exercises that are left out, and without a word that leads to them.

An exercise goes with its heading, its text and its cells. Where a later cell uses what one of its cells defines, that
cell stays: an answer as the starter that it is, without marks, so that the cell below meets what it also meets in the
notebook of a student who has left the exercise open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.classroom.course.cells import Names, parse_cells
from grader.classroom.course.frame import INDEX, bare, framed, titles
from grader.classroom.course.headings import exercise_heading
from grader.classroom.course.minutes import BEFORE_HEADING
from grader.classroom.course.notebook import ANSWER, checked, grade_id
from grader.classroom.course.plan import PLAN, LessonPlan, Plan, plan_of
from grader.classroom.course.published import published
from grader.classroom.course.syllabus import LESSONS, lesson_numbers
from grader.classroom.store import Unavailable
from grader.guide.reviews import makers

REVIEW = re.compile(r'grader\.review\("(\w+)"\)')
NEXT = "**Next:**"  # begins the last paragraph of a lesson
STAYS = "# An exercise that this course leaves out; what follows uses its name.\n"
POINTS_SAID = re.compile(r"· [^·]*\bpoints?\b[^·]* ·")


class Taken(NbGraderPreprocessor):
    """nbgrader's step that takes of a lesson what course.toml says, when the lesson is released."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        root = Path(self.config.CourseDirectory.get("root") or ".")
        return taken(nb, resources["nbgrader"]["assignment"], plan_of(root), root), resources


def taken(nb: NotebookNode, lesson: str, plan: Plan, root: Path) -> NotebookNode:
    """A lesson's notebook with what the plan takes of it, framed for this course; itself where there is no plan."""
    if not plan.own:
        return nb
    sources = {name: root / "solutions" / name / f"{name}.md" for name in [*plan.lessons, *sorted(plan.others)]}
    nb = _with_points(cut(bare(nb), plan.of(lesson).left_out), plan.of(lesson))
    nb = _with_review(_without_next(nb, lesson, plan), lesson, plan)
    nb = framed(nb, lesson, titles(sources[name] for name in plan.lessons), published(root))
    title, head, *rest = nb.cells[0].source.split("\n\n")
    if INDEX not in head:  # `framed` puts its links under the title
        raise ValueError(f"{lesson}: the links do not stand under the title")
    notes = "<br>\n".join([head, *_notes(nb, lesson, plan, titles(sources[name] for name in sorted(plan.others)))])
    nb.cells[0].source = "\n\n".join([title, notes, *rest])
    return nb


def cut(nb: NotebookNode, left_out: Collection[str]) -> NotebookNode:
    """The notebook, without its frame, without these exercises. Raises Unavailable where a heading has others too."""
    kept: list[NotebookNode] = []
    dropped: list[tuple[int, NotebookNode]] = []  # each with the number of cells before it
    open_: set[str] = set()  # the exercises under a heading that is left out, up to their checks
    for cell in nb.cells:
        name = checked(cell) or grade_id(cell).removeprefix(ANSWER)
        if cell.cell_type == "markdown":
            texts = []
            for text in BEFORE_HEADING.split(cell.source):
                if text.startswith("##"):
                    open_ = _headed(text, left_out)
                texts += [] if open_ else [text]
            source = "".join(texts).rstrip()
            if source or not cell.source:
                kept.append(nbformat.from_dict({**cell, "source": source}))
        elif open_ or name in left_out:
            dropped.append((len(kept), cell))
            open_ -= {checked(cell)}
        else:
            kept.append(cell)
    return nbformat.from_dict({**nb, "cells": list(_with_needed(kept, dropped))})


def _headed(text: str, left_out: Collection[str]) -> set[str]:
    """The exercises of a heading that is left out; none for any other heading."""
    heading = exercise_heading(text.partition("\n")[0])
    names = set(heading.names) if heading else set()
    if names & set(left_out) and names - set(left_out):
        raise Unavailable(
            f"{PLAN}: {' and '.join(heading.names if heading else ())} stand under one heading. "
            "Take all of them, or leave all of them out."
        )
    return names & set(left_out)


def _with_needed(kept: Sequence[NotebookNode], dropped: Sequence[tuple[int, NotebookNode]]) -> Iterator[NotebookNode]:
    """The kept cells, and those of the dropped ones whose names a cell below uses, in order."""
    stays: set[int] = set()
    while more := {k for k in range(len(dropped)) if k not in stays and _is_used(k, kept, dropped, stays)}:
        stays |= more
    for place in range(len(kept) + 1):
        yield from (_unmarked(cell) for k, (before, cell) in enumerate(dropped) if before == place and k in stays)
        yield from kept[place : place + 1]


def _is_used(
    k: int, kept: Sequence[NotebookNode], dropped: Sequence[tuple[int, NotebookNode]], stays: Collection[int]
) -> bool:
    """Whether a cell that stays below reads a name that this one binds."""
    place, cell = dropped[k]
    below = [*kept[place:], *(dropped[other][1] for other in stays if other > k)]
    reads = (_names(one).uses - _names(one).fresh for one in below if one.cell_type == "code")
    return any(_names(cell).binds & names for names in reads)


def _names(cell: NotebookNode) -> Names:
    texts = parse_cells([cell.source])
    return texts[0].names if texts else Names(frozenset(), frozenset())


def _unmarked(cell: NotebookNode) -> NotebookNode:
    """A cell that stays although its exercise does not."""
    if not grade_id(cell):
        return cell
    metadata = {name: value for name, value in cell.metadata.items() if name not in ("nbgrader", "answer", "check")}
    return nbformat.from_dict({**cell, "source": STAYS + cell.source, "metadata": metadata})


def _with_points(nb: NotebookNode, plan: LessonPlan) -> NotebookNode:
    """The notebook with the plan's points, on its checks and in its headings."""
    nb = nbformat.from_dict(nb)
    worth = {}
    for cell in nb.cells:
        if name := checked(cell):
            cell.metadata.nbgrader.points = plan.points.get(name, cell.metadata.nbgrader.points)
            worth[name] = cell.metadata.nbgrader.points
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            lines = (_heading(line, worth, plan) for line in cell.source.split("\n"))
            cell.source = "\n".join(lines)
    return nb


def _heading(line: str, worth: Mapping[str, float], plan: LessonPlan) -> str:
    heading = exercise_heading(line)
    if heading is None or not plan.points.keys() & set(heading.names):
        return line
    points = [worth[name] for name in heading.names]
    noun = "point" if points == [1] else "points"
    return POINTS_SAID.sub(f"· {' + '.join(f'{one:g}' for one in points)} {noun} ·", line, count=1)


def _without_next(nb: NotebookNode, lesson: str, plan: Plan) -> NotebookNode:
    """The notebook without the paragraph that leads to the next lesson, where that is not part of this course."""
    after = [name for name in sorted({*plan.lessons, *plan.others}) if name > lesson][:1]
    if not plan.others.intersection(after):
        return nb
    cells = [nbformat.from_dict(cell) for cell in nb.cells]
    for cell in cells:
        if cell.cell_type == "markdown":
            paragraphs = cell.source.split("\n\n")
            cell.source = "\n\n".join(one for one in paragraphs if not one.startswith(NEXT))
    return nbformat.from_dict({**nb, "cells": [cell for cell in cells if cell.source or cell.cell_type == "code"]})


def _with_review(nb: NotebookNode, lesson: str, plan: Plan) -> NotebookNode:
    """The notebook whose review asks about no lesson that is not part of this course."""
    earlier = sorted(name for name in makers() if name < lesson)
    asked = [name for name in earlier if name not in plan.others]
    cells = [nbformat.from_dict(cell) for cell in nb.cells]
    for cell in cells:
        if cell.cell_type == "code" and asked != earlier:
            cell.source = REVIEW.sub(rf'grader.review("\1", of={json.dumps(asked)})', cell.source)
    return nbformat.from_dict({**nb, "cells": cells})


def _notes(nb: NotebookNode, lesson: str, plan: Plan, others: Mapping[str, str]) -> Iterator[str]:
    """What a student has to know of this course: when the lesson is due, what is a bonus, and what is not there."""
    mine = plan.of(lesson)
    if mine.due:
        late = f" Late: {plan.late} is taken off." if plan.late else ""
        yield f"Due: {due_in_words(mine.due)}.{late}"
    if mine.bonus:
        yield "In this course *stretch* exercises are a bonus: their points count on top."
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    spoken_of = {number for words in LESSONS.findall(text) for number in lesson_numbers(words)}
    if absent := [title for name, title in others.items() if name[:2] in spoken_of]:
        yield f"The text also speaks of lessons that are not part of this course: {', '.join(absent)}."
    if gone := sorted(name for name in plan.left_out if f"`{name}`" in text):
        names = ", ".join(f"`{name}`" for name in gone)
        yield f"It also speaks of exercises that are not part of this course: {names}."


def due_in_words(due: datetime) -> str:
    """A time as a student reads it: 1 March 2027, 23:59 (UTC+01:00)."""
    return f"{due.day} {due:%B %Y, %H:%M} ({due.tzname()})"
