"""How long a lesson takes a newcomer: its core, and all of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from nbformat import NotebookNode

from grader.arrays.words import consecutive, enumeration
from grader.classroom.course.headings import CALLED_STRETCH, GOING_FURTHER, exercise_heading
from grader.classroom.course.needed import needed_parts
from grader.classroom.course.notebook import checked

WORDS_A_MINUTE = 130  # of prose with code and formulas in it
CELL = 1 / 3  # minutes for each code cell
NEWCOMER = 1.5  # a newcomer's minutes for each of the minutes that an exercise states
REVIEW_TIME = 5  # minutes for the questions about earlier lessons
STEP = 5  # minutes are told in steps of five

BEFORE_HEADING = re.compile(r"^(?=###? )", re.MULTILINE)
HINTS = re.compile(r"<details><summary>Hint \d</summary>.*?</details>", re.DOTALL)  # read only by those who are stuck
PREDICTION = re.compile(r"\*\*Predict\b[^*]*\*\*")  # a minute each


class Spent(NamedTuple):
    """Minutes in one part of a lesson: "read", also "aside", in a section that is stretch, or on an exercise of
    the "core" or the "stretch", its text and cells included."""

    part: str
    kind: Literal["read", "aside", "core", "stretch"]
    minutes: float


@dataclass(frozen=True)
class Minutes:
    """Minutes of a lesson, rounded; `parts` are the numbers of the parts that its core consists of, and `run` of those
    outside it whose cells it needs. `exact` are the core's minutes before rounding, and `straight` says that the core
    comes first, with everything else under "Going further"."""

    core: int
    everything: int
    parts: tuple[int, ...]
    run: tuple[int, ...] = ()
    exact: float = 0
    straight: bool = False

    def __str__(self) -> str:
        if self.straight:
            return (
                f"About {self.core} minutes for the core, and {self.everything - self.core} more for *Going further*."
            )
        if self.core == self.everything or not self.parts:
            return f"About {self.everything} minutes."
        run = f"; of {_in_words(self.run)} run the cells" if self.run else ""
        core = f"About {self.core} minutes for the core: {_in_words(self.parts)}{run}."
        return f"{core} About {self.everything} minutes for everything."


def honest_minutes(lesson: NotebookNode) -> Minutes:
    """The minutes of a lesson, given without its frame.

    The words of the text (130 a minute, without hints), 20 seconds for each code cell, a minute for each prediction,
    1.5 times the minutes that the exercises state, and 5 minutes for the review. The core is everything before the
    heading "Going further". In a lesson without that heading, it leaves out the stretch exercises with their texts,
    the sections that are called stretch, and each part all of whose exercises are stretch.

    The constants are those of readers who went through all 22 lessons as newcomers and measured how long each took.
    """
    spent = list(_spent(lesson))
    straight = any(_begins_the_rest(cell.source) for cell in lesson.cells if cell.cell_type == "markdown")
    left_out = {one.part for one in spent if one.kind == "stretch"} - {one.part for one in spent if one.kind == "core"}
    core = [one for one in spent if one.kind in ("read", "core") and one.part not in left_out]
    parts = dict.fromkeys(int(number[1]) for one in core if (number := re.match(r"## (\d+) · ", one.part)))
    needed = () if straight else needed_parts(lesson, parts)
    return Minutes(_rounded(core), _rounded(spent), tuple(parts), needed, _total(core), straight)


def _begins_the_rest(text: str) -> bool:
    return any(line.rstrip() == GOING_FURTHER for line in text.split("\n"))


def _spent(lesson: NotebookNode) -> Iterator[Spent]:
    part, exercise = "", None  # the exercise that is being read: its check ends it
    text_is: Literal["read", "aside"] = "read"  # outside of exercises
    further = False
    for cell in lesson.cells:
        if cell.cell_type == "code":
            yield Spent(part, text_is if exercise is None else "core" if exercise.is_core else "stretch", CELL)
            exercise = None if checked(cell) else exercise
            continue
        for text in BEFORE_HEADING.split(HINTS.sub("", cell.source)):
            line = text.partition("\n")[0]
            part = line if line.startswith("## ") else part
            minutes = len(text.split()) / WORDS_A_MINUTE + len(PREDICTION.findall(text))
            if line.startswith("##"):
                exercise = exercise_heading(line)
                further = further or line.rstrip() == GOING_FURTHER
                minutes += NEWCOMER * exercise.minutes if exercise else 0
                if exercise is None:
                    text_is = "aside" if further or line.endswith(CALLED_STRETCH) else "read"
            yield Spent(part, text_is if exercise is None else "core" if exercise.is_core else "stretch", minutes)


def _total(spent: Iterable[Spent]) -> float:
    return REVIEW_TIME + sum(one.minutes for one in spent)


def _rounded(spent: Iterable[Spent]) -> int:
    return STEP * round(_total(spent) / STEP)


def _in_words(numbers: Sequence[int]) -> str:
    """Parts 1, 2, 3 and 5: "parts 1–3 and 5"."""
    said = enumeration(list(_ranges(numbers)))
    return f"part {said}" if len(numbers) == 1 else f"parts {said}"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    for first, *rest in consecutive(numbers):
        yield from [f"{first}–{rest[-1]}"] if len(rest) > 1 else map(str, [first, *rest])
