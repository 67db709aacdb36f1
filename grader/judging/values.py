"""Functions and tables, held against their references case by case and row by row."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from grader.arrays.described import built, difference, lies_on_devices
from grader.arrays.numbers import close, same_value
from grader.exercises.answers import Answer, Problem, Value
from grader.exercises.exercise import Case, Exercise
from grader.exercises.plain import plain
from grader.exercises.verdict import Outcome, Verdict
from grader.judging.errors import in_plain_words
from grader.judging.explain import explain, same_answer
from grader.judging.miss import unanswered

NO_VALUE = "The answer should be a plain value."


def judge_function(exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer]) -> Verdict:
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
        return NO_VALUE
    if same_answer(exercise, case, answer.value, expected):
        return _by_way_of_the_host(answer) if answer.uploaded else ""
    if lies_on_devices(expected):
        return f"Called with {_called_with(case)}: {difference(answer.value, expected, close)}"
    if differs := _first_entry(exercise, case, answer.value, expected):
        return f"Called with {_called_with(case)}: {differs}"
    return f"Called with {_called_with(case)}, it should return {short(expected)}; it returns {short(answer.value)}."


def _by_way_of_the_host(answer: Value) -> str:
    return (
        f"The result lies where it should, but it came by way of the host: `{answer.uploaded}` was put on devices "
        "from there. Either NumPy stood in between, or `device_put` had to cut the array into other blocks for "
        "other devices, which it does on the host."
    )


def _first_entry(exercise: Exercise, case: Case, found: Any, expected: Any) -> str:
    """In words, the first entry of a dict that is not as it should be; "" where no dict with these keys came."""
    if not isinstance(expected, Mapping) or not isinstance(found, Mapping) or found.keys() != expected.keys():
        return ""
    wrong = [
        k
        for k, due in expected.items()
        if not same_value(found[k], due) and not same_answer(exercise, case, {k: found[k]}, {k: due})
    ]
    return f"entry {wrong[0]} should be {short(expected[wrong[0]])}; it is {short(found[wrong[0]])}." if wrong else ""


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
    if not isinstance(answer, (Problem, Value)):
        return NO_VALUE
    came = f"it returns {short(answer.value)}" if isinstance(answer, Value) else in_plain_words(answer)
    return f"Called with {_called_with(case)}, it should raise a ValueError ({expected}); {came}."


def _called_with(case: Case) -> str:
    return ", ".join(f"{name}={short(value)}" for name, value in case.arguments.items())


def short(value: Any, limit: int = 200) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else f"{text[:limit]}…"


def judge_table(exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer]) -> Verdict:
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
            return f"{cases[k].key}: not {short(value)}. {hint}", named.name if named else ""
    return f"{cases[k].key}: the answer should be a plain value.", ""
