"""Timetables of pipelines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from grader.exercises.answers import Answer, Ask
from grader.exercises.exercise import Exercise
from grader.exercises.forms.functions import value_of_call


@dataclass(eq=False)
class TimetableExercise(Exercise):
    """A function of plain numbers that returns the orders of a pipeline's devices (`grader.timetables`).

    The reference returns the timetables that an answer is compared with, by their names: each has a smaller bubble than
    the one before, and the last says how many microbatches a device may hold.
    """

    form: ClassVar[str] = "timetable"

    @staticmethod
    def answer(work: Any, ask: Ask) -> Answer:
        return value_of_call(work, ask)
