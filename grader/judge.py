"""`judge(exercise, cases, answers) -> Verdict`: pure, no I/O, no Python of the student's.

A program climbs the ladder of `grader.rungs`. A function is held against its reference case by case, a table
row by row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grader import together
from grader.answers import Answer, Problem, Script, Value, plain
from grader.behaviour import Execution, close, explain, same_answer, same_value
from grader.errors import in_plain_words
from grader.exercise import Case, Exercise, Outcome
from grader.launch import Launch
from grader.placed import built, difference, lies_on_devices
from grader.program import Program
from grader.rungs import describe, judge_program
from grader.verdict import Verdict, unanswered


def judge(exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer],
          executed: Callable[[Program, Case], Execution] = Execution,
          started: Callable[[Script, Case], Launch] = together.start) -> Verdict:
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
    return {"function": _judge_function, "table": _judge_table}[exercise.form](exercise, cases, answers)


def _judge_function(exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer]) -> Verdict:
    for k, (case, answer) in enumerate(zip(cases, answers, strict=True)):
        if miss := _wrong_result(exercise, case, answer):
            named = explain(exercise, cases, answers, k)
            words = "\n\n".join(filter(None, (miss, named.words if named else "")))
            missed = Outcome(exercise.name, "values", 0.0, exercise.points, named.name if named else "", words)
            return Verdict(exercise.name, (missed,))
    return Verdict(exercise.name, (Outcome(exercise.name, "values", exercise.points, exercise.points),))


def _wrong_result(exercise: Exercise, case: Case, answer: Answer) -> str:
    expected = _expected(exercise, case)
    if isinstance(expected, ValueError):
        return _should_raise(case, answer, expected)
    if isinstance(answer, Problem):
        return f"{in_plain_words(answer)}\n\nIt was called with {_called_with(case)}."
    if not isinstance(answer, Value):
        return "The answer should be a plain value."
    if same_answer(exercise, case, answer.value, expected):
        return _by_way_of_the_host(answer) if answer.uploaded else ""
    if lies_on_devices(expected):
        return f"Called with {_called_with(case)}: {difference(answer.value, expected, close)}"
    if differs := _first_entry(exercise, case, answer.value, expected):
        return f"Called with {_called_with(case)}: {differs}"
    return f"Called with {_called_with(case)}, it should return {_short(expected)}; it returns {_short(answer.value)}."


def _by_way_of_the_host(answer: Value) -> str:
    return (f"The result lies where it should, but it came by way of the host: `{answer.uploaded}` was put on devices "
            "from there. Either NumPy stood in between, or `device_put` had to cut the array into other blocks for "
            "other devices, which it does on the host.")


def _first_entry(exercise: Exercise, case: Case, found: Any, expected: Any) -> str:
    """In words, the first entry of a dict that is not as it should be; "" where no dict with these keys came."""
    if not isinstance(expected, Mapping) or not isinstance(found, Mapping) or found.keys() != expected.keys():
        return ""
    wrong = [k for k, due in expected.items() if not same_value(found[k], due)
             and not same_answer(exercise, case, {k: found[k]}, {k: due})]
    return f"entry {wrong[0]} should be {_short(expected[wrong[0]])}; it is {_short(found[wrong[0]])}." if wrong else ""


@functools.lru_cache(maxsize=1024)
def _expected(exercise: Exercise, case: Case) -> Any:
    """What the reference makes of a case, or the ValueError that it raises. Kept: a class asks again and again."""
    try:
        return plain(exercise.reference(**built(dict(case.arguments))))
    except ValueError as error:
        return error


def _should_raise(case: Case, answer: Answer, expected: ValueError) -> str:
    if isinstance(answer, Problem) and answer.error in ("ValueError", type(expected).__name__):
        return ""  # JAX's own has a name of its own in some versions
    came = f"it returns {_short(answer.value)}" if isinstance(answer, Value) else in_plain_words(answer)
    return f"Called with {_called_with(case)}, it should raise a ValueError ({expected}); {came}."


def _called_with(case: Case) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in case.arguments.items())


def _short(value: Any, limit: int = 200) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else f"{text[:limit]}…"


def _judge_processes(exercise: Exercise, cases: Sequence[Case], found: Sequence[Launch | Answer]) -> Verdict:
    """Everybody has to come to an end, and to return what is due."""
    for check, rung in (("ends", lambda k: together.ends(found[k])),
                        ("values", lambda k: _wrong_return(exercise, cases[k], found[k]))):
        failing, words = next(((k, w) for k in range(len(cases)) if (w := rung(k))), (0, ""))
        if words:
            named = explain(exercise, cases, found, failing)
            said = "\n\n".join(filter(None, (words, named.words if named else "")))
            return Verdict(exercise.name, together.outcomes(exercise, check, said, named.name if named else ""),
                           describe(cases[failing]))
    return Verdict(exercise.name, together.outcomes(exercise, "", "", ""))


def _wrong_return(exercise: Exercise, case: Case, found: Launch) -> str:
    due, answers = together.expected(exercise, case), together.returned(found)
    wrong = together.first_wrong(answers, due, functools.partial(same_answer, exercise, case))
    if wrong is None:
        return ""
    if lies_on_devices(due[wrong]):
        return f"Process {wrong}: {difference(answers[wrong], due[wrong], close)}"
    return f"Process {wrong} should return {_short(due[wrong])}; it returns {_short(answers[wrong])}."


def _judge_table(exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer]) -> Verdict:
    """Every row is tried and earns its share; the first wrong one is explained."""
    share = exercise.points / len(cases)
    outcomes: list[Outcome] = []
    for k, case in enumerate(cases):
        words, name = _row(exercise, cases, answers, k)
        outcomes.append(Outcome(exercise.name, case.key, 0.0 if words else share, share, name, words))
    if all(isinstance(a, Problem) and a.kind in ("starter", "missing") for a in answers):
        return unanswered(exercise, answers[0])
    return Verdict(exercise.name, tuple(outcomes))


def _row(exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer], k: int) -> tuple[str, str]:
    match answers[k]:
        case Problem(kind="starter" | "missing"):
            return f"{cases[k].key}: no answer yet.", ""
        case Problem() as problem:
            return in_plain_words(problem), ""
        case Value(value) if same_answer(exercise, cases[k], value, _expected(exercise, cases[k])):
            return "", ""
        case Value(value):
            named = explain(exercise, cases, answers, k)
            hint = named.words if named else "Do the experiment: what does each device hold, and what does it lack?"
            return f"{cases[k].key}: not {_short(value)}. {hint}", named.name if named else ""
    return f"{cases[k].key}: the answer should be a plain value.", ""
