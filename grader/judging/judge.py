"""`judge(exercise, cases, answers) -> Verdict`: pure, no I/O, no Python of the student's.

A program climbs the ladder of `grader.judging.rungs`. A function is held against its reference case by case, a table
row by row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from grader.arrays.described import difference, lies_on_devices
from grader.arrays.numbers import close
from grader.exercises.answers import Answer, Problem, Script
from grader.exercises.exercise import Case, Exercise
from grader.exercises.verdict import Verdict
from grader.judging import together
from grader.judging.behaviour import Execution
from grader.judging.explain import explain, same_answer
from grader.judging.miss import unanswered
from grader.judging.rungs import describe, judge_program
from grader.judging.values import judge_function, judge_table, short
from grader.processes.launch import Launch
from grader.programs.program import Program


def judge(
    exercise: Exercise,
    cases: Sequence[Case],
    answers: Sequence[Answer],
    executed: Callable[[Program, Case], Execution] = Execution,
    started: Callable[[Script, Case], Launch] = together.start,
) -> Verdict:
    """Judge the answers of one student to the cases of one exercise, in the same order.

    `executed` says where programs are read and run, `started` where processes are: by default here.
    """
    if len(cases) != len(answers):
        raise ValueError(f"{exercise.name}: {len(cases)} cases, but {len(answers)} answers")
    if isinstance(answers[0], Problem) and answers[0].kind in ("missing", "starter") and exercise.form != "table":
        return unanswered(exercise, answers[0])
    if exercise.form == "program":
        runs = [executed(a, case) if isinstance(a, Program) else a for case, a in zip(cases, answers, strict=True)]
        return judge_program(exercise, cases, runs)
    if exercise.form == "processes":
        launches = [started(a, case) if isinstance(a, Script) else a for case, a in zip(cases, answers, strict=True)]
        return _judge_processes(exercise, cases, launches)
    return {"function": judge_function, "table": judge_table}[exercise.form](exercise, cases, answers)


def _judge_processes(exercise: Exercise, cases: Sequence[Case], found: Sequence[Launch | Answer]) -> Verdict:
    """Everybody has to come to an end, and to return what is due."""
    for check, rung in (
        ("ends", lambda k: together.ends(found[k])),
        ("values", lambda k: _wrong_return(exercise, cases[k], found[k])),
    ):
        failing, words = next(((k, w) for k in range(len(cases)) if (w := rung(k))), (0, ""))
        if words:
            named = explain(exercise, cases, found, failing)
            said = "\n\n".join(filter(None, (words, named.words if named else "")))
            return Verdict(
                exercise.name,
                together.outcomes(exercise, check, said, named.name if named else ""),
                describe(cases[failing]),
            )
    return Verdict(exercise.name, together.outcomes(exercise, "", "", ""))


def _wrong_return(exercise: Exercise, case: Case, found: Launch) -> str:
    due, answers = together.expected(exercise, case), together.returned(found)
    wrong = together.first_wrong(answers, due, functools.partial(same_answer, exercise, case))
    if wrong is None:
        return ""
    if lies_on_devices(due[wrong]):
        return f"Process {wrong}: {difference(answers[wrong], due[wrong], close)}"
    return f"Process {wrong} should return {short(due[wrong])}; it returns {short(answers[wrong])}."
