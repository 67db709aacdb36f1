"""The start page of the course, `course/index.ipynb`: made of what the lessons say of themselves."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from grader.classroom.course.frame import first_cell
from grader.classroom.course.plan import Plan, plan_of
from grader.classroom.course.prerequisites import in_words, nearest, picture
from grader.classroom.course.published import Published, published
from grader.classroom.course.syllabus import told
from grader.classroom.course.taken import due_in_words
from grader.guide.syllabus import LessonText

START_PAGE = "index.ipynb"
TABLE = "README.md"  # it has the table of the lessons: what one can do after each
OF_ALL = "Many devices in JAX"
HOW = """# {name}

A course on programming many devices. Lessons are notebooks: predict, run, explain, then do it yourself.

1. Begin with lesson 01, or with any lesson of which you know what it needs. Run its first code cell first.
   {core}
2. Run cell by cell with Shift + Enter. Write your prediction down before you run the cell that shows it.
3. Put your answer in place of the `...`, run it, and run the check below it, as often as you like.
4. Stuck? Open a hint, or type `grader.hint("NAME")`; `grader.reset("NAME")` gives you the starter again.
5. Questions? {help}
6. At the end save the notebook and type `grader.hand_in()`: it says which file to hand in.

The next two cells show your points, what is open and what comes next."""
CORE = "Each lesson says how long its core takes. *Going further*, and everything marked *stretch*, can wait."
OWN_CORE = "Each lesson says how long it takes; what is marked *stretch* can wait."
PROGRESS = "import grader\n\ngrader.progress()"


@dataclass(frozen=True)
class Part:
    """A part of the course: the lessons from one number to another."""

    title: str
    first: int
    last: int

    def __contains__(self, lesson: LessonText) -> bool:
        return self.first <= int(lesson.number) <= self.last


PARTS = (
    Part("Arrays on many devices", 1, 4),
    Part("The program of one device", 5, 8),
    Part("Costs, types and gradients", 9, 11),
    Part("Training", 12, 18),
    Part("Many machines, and what bites", 19, 22),
)


def start_page(root: Path) -> NotebookNode:
    """The start page, as the lessons in `course/` now are."""
    lessons, plan, where = told(root), plan_of(root), published(root)
    core = OWN_CORE if plan.own else CORE
    drawn = base64.b64encode(picture(lessons).encode()).decode()
    needs = f"## What needs what\n\n![{in_words(lessons)}](data:image/svg+xml;base64,{drawn})"
    cells = [
        new_markdown_cell(HOW.format(name=plan.name or OF_ALL, core=core, help=plan.help or _place_to_ask(where))),
        first_cell("index", where),
        new_code_cell(PROGRESS),
        new_markdown_cell("\n\n".join(["## The lessons", *_parts(lessons, afterwards(root), plan)])),
        new_markdown_cell(needs),
    ]
    for k, cell in enumerate(cells):
        cell.id = f"index-{k:03}"
    return new_notebook(cells=cells)


def _place_to_ask(where: Published) -> str:
    return f"Ask in the [discussions]({where.page}/discussions)." if where else "Ask your instructor."


def afterwards(root: Path) -> dict[str, str]:
    """What one can do after each lesson, as the table of the lessons says."""
    file = root / TABLE
    rows = re.findall(r"^\| `(\d\d_\w+)` \| (.*?) \|$", file.read_text(), re.MULTILINE) if file.exists() else []
    return dict(rows)


def _parts(lessons: Sequence[LessonText], can: dict[str, str], plan: Plan) -> Iterator[str]:
    needs = nearest(lessons)
    for part in PARTS:
        if inside := [lesson for lesson in lessons if lesson in part]:
            rows = [_row(lesson, needs[lesson.number], can.get(lesson.name, ""), plan) for lesson in inside]
            columns = "| lesson | core | everything | needs | what you can do afterwards |"
            header = [columns, "|:---|---:|---:|:---|:---|"]
            yield "\n".join([f"### {part.title}", "", *header, *rows, *_in_preparation(part, inside, plan)])


def _row(lesson: LessonText, needs: Sequence[str], can: str, plan: Plan) -> str:
    title = f"[{lesson.title}]({lesson.name}/{lesson.name}.ipynb)"
    colab = f" · [Colab]({lesson.url})" if lesson.url else ""
    due = f"<br>due {due_in_words(when)}" if (when := plan.of(lesson.name).due) else ""
    times = f"{lesson.core_minutes} min | {lesson.minutes} min"
    return f"| {title}{colab}{due} | {times} | {', '.join(needs)} | {can} |"


def _in_preparation(part: Part, lessons: Sequence[LessonText], plan: Plan) -> list[str]:
    """The lessons that are still to be written; a course of somebody's own has those that it has."""
    numbers = {int(lesson.number) for lesson in lessons}
    missing = [f"{k:02}" for k in range(part.first, part.last + 1) if k not in numbers]
    return ["", f"In preparation: {', '.join(missing)}."] if missing and not plan.own else []
