"""`judge(exercise, cases, answers) -> Verdict`: pure, no I/O, no Python of the student's.

How the answers to an exercise are judged is its form's own affair: each has a ladder, in a file of its name.
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
from grader.exercises.verdict import Verdict
from grader.jax_versions import one_mlir_context
from grader.judging import together
from grader.judging.behaviour import Execution
from grader.judging.compilations import Compilation, run_or_compile
from grader.judging.functions import FunctionLadder
from grader.judging.ladder import Ladder
from grader.judging.pods import PodLadder
from grader.judging.processes import ProcessLadder
from grader.judging.programs import ProgramLadder
from grader.judging.tables import TableLadder
from grader.judging.timetables import TimetableLadder
from grader.processes.launch import Launch
from grader.programs.program import Program
from grader.programs.repairs import Repair

LADDERS: Mapping[type[Exercise], type[Ladder]] = {
    ProgramExercise: ProgramLadder,
    PodExercise: PodLadder,
    FunctionExercise: FunctionLadder,
    TimetableExercise: TimetableLadder,
    TableExercise: TableLadder,
    ProcessExercise: ProcessLadder,
}


def judge(
    exercise: Exercise,
    cases: Sequence[Case],
    answers: Sequence[Answer],
    executed: Callable[[Program, Case], Execution | Compilation] = run_or_compile,
    started: Callable[[Script, Case], Launch] = together.start,
) -> Verdict:
    """Judge the answers of one student to the cases of one exercise, in the same order.

    `executed` reads and runs programs, or has them compiled for a case's pod; `started` starts processes. Both do so on
    this machine by default.
    """
    if len(cases) != len(answers):
        raise ValueError(f"{exercise.name}: {len(cases)} cases, but {len(answers)} answers")
    with one_mlir_context():
        return LADDERS[type(exercise)](exercise, cases, answers, {Program: executed, Script: started}).verdict()


def first_repair(exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer]) -> Repair | None:
    """The one change after which these answers would not miss the check that they miss; None where none is found."""
    ladder = LADDERS[type(exercise)](exercise, cases, answers)
    missed = ladder.first_miss()
    return ladder.repairs(ladder.rungs[missed[0]].check, missed[1])[0] if missed else None


def first_missed(exercise: Exercise, case: Case, answer: Answer) -> tuple[str, str]:
    """The check that an answer misses on a case, and the first difference; no mistake is looked for. "" for none."""
    ladder = LADDERS[type(exercise)](exercise, [case], [answer])
    missed = ladder.first_miss()
    return (ladder.rungs[missed[0]].check, missed[2].words) if missed else ("", "")
