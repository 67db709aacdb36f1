"""The lessons and their exercises as the course tells of them, in order: `grader build` writes them down.

Where hand-ins are graded, the lessons are withheld, and the syllabus with them: it is empty there.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path

SYLLABUS = Path("lessons", "syllabus.json")  # in the package


@dataclass(frozen=True)
class ExerciseText:
    """What the text says of an exercise: whether it is of the lesson's core, how many minutes it takes, its hints, and
    the cell that a student begins with; `place` is the id of the cell with its heading."""

    name: str
    is_core: bool
    minutes: int
    place: str
    hints: tuple[str, ...]
    starter: str


@dataclass(frozen=True)
class LessonText:
    """What a lesson says of itself: title, how many minutes a newcomer takes for its core and for all of it, which
    lessons it needs; `url` opens it in Colab."""

    name: str
    title: str
    core_minutes: int
    minutes: int
    needs: tuple[str, ...]
    url: str
    exercises: tuple[ExerciseText, ...]

    @property
    def number(self) -> str:
        return self.name.partition("_")[0]


@functools.cache
def syllabus() -> tuple[LessonText, ...]:
    """All lessons, in order."""
    file = Path(__file__).parents[1] / SYLLABUS
    return tuple(map(_lesson, json.loads(file.read_text()))) if file.exists() else ()


def _lesson(entry: dict) -> LessonText:
    exercises = (ExerciseText(**{**one, "hints": tuple(one["hints"])}) for one in entry["exercises"])
    return LessonText(**{**entry, "needs": tuple(entry["needs"]), "exercises": tuple(exercises)})


def exercise_text(name: str) -> ExerciseText:
    """What the text says of the exercise of this name; LookupError names the nearest ones, or says that
    this course has left it out."""
    from grader.lessons import find  # here, so that `import grader` stays quick

    find(name)
    texts = {one.name: one for lesson in syllabus() for one in lesson.exercises}
    if name not in texts:
        raise LookupError(f"The exercise {name!r} is not part of this course.")
    return texts[name]
