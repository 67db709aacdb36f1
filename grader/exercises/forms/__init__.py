"""The forms of an exercise: what an answer is, and how it is obtained from what a student wrote.

Each form is a class in a file here, and has a ladder in `grader.judging`, by which its answers are judged.
"""

from __future__ import annotations

from collections.abc import Mapping

from grader.exercises.exercise import Exercise
from grader.exercises.forms.functions import FunctionExercise
from grader.exercises.forms.pods import PodExercise
from grader.exercises.forms.processes import ProcessExercise
from grader.exercises.forms.programs import ProgramExercise
from grader.exercises.forms.tables import TableExercise
from grader.exercises.forms.timetables import TimetableExercise

FORMS: Mapping[str, type[Exercise]] = {
    one.form: one
    for one in (ProgramExercise, PodExercise, FunctionExercise, TimetableExercise, TableExercise, ProcessExercise)
}
