"""How long a lesson takes a newcomer: its core, and all of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from nbformat import NotebookNode

from grader.arrays.words import consecutive, enumeration
from grader.classroom.course.headings import CALLED_STRETCH, exercise_heading
from grader.classroom.course.needed import needed_parts
from grader.classroom.course.notebook import checked, grade_id

WORDS_A_MINUTE = 150  # of prose with code and formulas in it
EXAMPLE = 0.5  # minutes for a code cell that is only run
NEWCOMER = 1.4  # a newcomer's minutes for each of the minutes that an exercise states
STEP = 5  # minutes are told in steps of five

BEFORE_HEADING = re.compile(r"^(?=###? )", re.MULTILINE)
HINTS = re.compile(r"<details><summary>Hint \d</summary>.*?</details>", re.DOTALL)  # read only where one is stuck


class Spent(NamedTuple):
    """Minutes in one part of a lesson: "read", also "aside", in a section that is called stretch, or on an exercise of
    the "core" or the "stretch", its text included."""

    part: str
    kind: Literal["read", "aside", "core", "stretch"]
    minutes: float


@dataclass(frozen=True)
class Minutes:
    """Minutes of a lesson, rounded; `parts` are the numbers of the parts that its core consists of, and `run` of those
    outside it whose cells it needs."""

    core: int
    everything: int
    parts: tuple[int, ...]
    run: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.core == self.everything or not self.parts:
            return f"About {self.everything} minutes."
        run = f"; of {_in_words(self.run)} run the cells" if self.run else ""
        core = f"About {self.core} minutes for the core: {_in_words(self.parts)}{run}."
        return f"{core} About {self.everything} minutes for everything."


def honest_minutes(lesson: NotebookNode) -> Minutes:
    """The minutes of a lesson, given without its frame.

    Counted are the words of the text (150 a minute; hints are left out), half a minute for each worked example, and
    1.4 times the minutes that the exercises state. The core leaves out the stretch exercises with their texts, the
    sections that are called stretch, and each part all of whose exercises are stretch.

    The constants are those of two readers who went through sixteen lessons as newcomers, and estimated every one: 150
    words and two cells a minute, exercises × 1.3 to 1.5. With 1.4 the count of all sixteen is theirs, 48 hours.
    """
    spent = list(_spent(lesson))
    left_out = {one.part for one in spent if one.kind == "stretch"} - {one.part for one in spent if one.kind == "core"}
    core = [one for one in spent if one.kind in ("read", "core") and one.part not in left_out]
    parts = dict.fromkeys(int(number[1]) for one in core if (number := re.match(r"## (\d+) · ", one.part)))
    return Minutes(_rounded(core), _rounded(spent), tuple(parts), needed_parts(lesson, parts))


def _spent(lesson: NotebookNode) -> Iterator[Spent]:
    part, exercise = "", None  # the exercise that is being read: its check ends it
    text_is: Literal["read", "aside"] = "read"  # outside of exercises
    for cell in lesson.cells:
        if cell.cell_type == "code":
            if exercise is None and not grade_id(cell):
                yield Spent(part, text_is, EXAMPLE)
            exercise = None if checked(cell) else exercise
            continue
        for text in BEFORE_HEADING.split(HINTS.sub("", cell.source)):
            line = text.partition("\n")[0]
            part = line if line.startswith("## ") else part
            minutes = len(text.split()) / WORDS_A_MINUTE
            if line.startswith("##"):
                exercise = exercise_heading(line)
                minutes += NEWCOMER * exercise.minutes if exercise else 0
                if exercise is None:
                    text_is = "aside" if line.endswith(CALLED_STRETCH) else "read"
            yield Spent(part, text_is if exercise is None else "core" if exercise.is_core else "stretch", minutes)


def _rounded(spent: Iterable[Spent]) -> int:
    return max(STEP, STEP * round(sum(one.minutes for one in spent) / STEP))


def _in_words(numbers: Sequence[int]) -> str:
    """Parts 1, 2, 3 and 5: "parts 1–3 and 5"."""
    said = enumeration(list(_ranges(numbers)))
    return f"part {said}" if len(numbers) == 1 else f"parts {said}"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    for first, *rest in consecutive(numbers):
        yield from [f"{first}–{rest[-1]}"] if len(rest) > 1 else map(str, [first, *rest])
