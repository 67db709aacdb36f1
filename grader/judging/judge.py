"""`judgment_of(exercise, cases, answers) -> Judgment`: pure, no I/O, no Python of the student's.

How the answers to an exercise are judged is its form's own affair: each has a judgment, in a file of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from grader.exercises.answers import Answer, Script
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.exercises.forms import (
    FunctionExercise,
    PodExercise,
    ProcessExercise,
    ProgramExercise,
    TableExercise,
    TimetableExercise,
)
from grader.judging import together
from grader.judging.behaviour import Execution
from grader.judging.compilations import Compilation, run_or_compile
from grader.judging.functions import FunctionJudgment
from grader.judging.judgment import Judgment
from grader.judging.pods import PodJudgment
from grader.judging.processes import ProcessJudgment
from grader.judging.programs import ProgramJudgment
from grader.judging.tables import TableJudgment
from grader.judging.timetables import TimetableJudgment
from grader.processes.launch import Launch
from grader.programs.program import Program

JUDGMENTS: Mapping[type[Exercise], type[Judgment]] = {
    ProgramExercise: ProgramJudgment,
    PodExercise: PodJudgment,
    FunctionExercise: FunctionJudgment,
    TimetableExercise: TimetableJudgment,
    TableExercise: TableJudgment,
    ProcessExercise: ProcessJudgment,
}
Executed = Callable[[Program, Case], Execution | Compilation]
Started = Callable[[Script, Case], Launch]


def judgment_of(
    exercise: Exercise,
    cases: Sequence[Case],
    answers: Sequence[Answer],
    executed: Executed = run_or_compile,
    started: Started = together.start,
) -> Judgment:
    """The answers of one student to the cases of one exercise, in the same order, with its checks.

    `executed` reads and runs programs, or has them compiled for a case's pod; `started` starts processes. Both do so on
    this machine by default. Raises ValueError if there are not as many answers as cases.
    """
    if len(cases) != len(answers):
        raise ValueError(f"{exercise.name}: {len(cases)} cases, but {len(answers)} answers")
    return JUDGMENTS[type(exercise)](exercise, cases, answers, {Program: executed, Script: started})
