"""The mistake that explains a wrong answer: the one that behaves the same."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from grader.arrays.blocks import Blocks
from grader.arrays.numbers import close, same_value
from grader.exercises.answers import Answer, Problem, Script, Value, asks, collect
from grader.exercises.exercise import Case, Exercise, Mistake
from grader.exercises.plain import plain
from grader.judging import together
from grader.judging.behaviour import Execution
from grader.processes.launch import Launch
from grader.programs.execution import Failed
from grader.programs.program import Program
from grader.programs.structure import Collective


def same_answer(exercise: Exercise, case: Case, one: Any, other: Any) -> bool:
    """Whether two values answer a case alike: `exercise.same` decides where there is one."""
    if exercise.same is None:
        return same_value(one, plain(other))
    try:
        return bool(exercise.same(one, other, **case.arguments))
    except Exception:  # a student's value may have any form
        return False


def explain(
    exercise: Exercise, cases: Sequence[Case], found: Sequence[Answer | Execution | Launch], failing: int
) -> Mistake | None:
    """The mistake that behaves as what was found on the failing case.

    If several do, the one that also communicates as what was found on the other cases; programs are not run
    for that, since a student waits.
    """
    alike = (m for m in exercise.mistakes if _alike(exercise, m, cases[failing], found[failing], running=True))
    if exercise.form == "processes":  # each takes seconds to run: the first that fits
        return next(alike, None)
    alike = list(alike)
    for k in range(len(cases)):
        if len(alike) > 1 and k != failing:
            alike = [m for m in alike if _alike(exercise, m, cases[k], found[k], running=False)] or alike
    return alike[0] if alike else None


def _alike(exercise: Exercise, mistake: Mistake, case: Case, found: Answer | Execution, *, running: bool) -> bool:
    if exercise.form == "table":
        wrong = _wrong_entry(mistake, case)
        return isinstance(found, Value) and wrong is not None and same_answer(exercise, case, found.value, wrong)
    return any(_behaves_like(exercise, case, found, other, running) for other in _mistaken(exercise, mistake, case))


def _behaves_like(
    exercise: Exercise, case: Case, found: Answer | Execution, other: Answer | Execution, running: bool
) -> bool:
    match found, other:
        case Problem(), Problem():
            return _gist(found) == _gist(other)
        case Value(), Value():
            same_way = bool(found.uploaded) == bool(other.uploaded)
            return same_way and same_answer(exercise, case, found.value, other.value)
        case Execution(), Execution():
            return _same_program(found, other, running, exercise.by_compiler)
        case Launch(), Launch():
            return together.alike(found, other, same_value)
    return False


@functools.lru_cache(maxsize=1024)
def _wrong_entry(mistake: Mistake, case: Case) -> Any:
    """What a mistake says in a row of a table; None where it is about another."""
    return mistake.wrong(**case.arguments)


@functools.lru_cache(maxsize=1024)
def _mistaken(exercise: Exercise, mistake: Mistake, case: Case) -> tuple[Answer | Execution, ...]:
    """What a mistake answers to a case, however it is spelled. Kept: a class makes it again and again."""
    (ask,) = asks(exercise, [case])
    found = (collect(exercise.form, [ask], spelled)[0] for spelled in mistake.spellings())
    return tuple(_done(answer, case) for answer in found)


def _done(answer: Answer, case: Case) -> Answer | Execution | Launch:
    """The answer, run where it is something to run."""
    match answer:
        case Program():
            return Execution(answer, case)
        case Script():
            return together.start(answer, case)
    return answer


def _same_program(one: Execution, other: Execution, running: bool, by_compiler: bool) -> bool:
    try:
        if one.forms != other.forms or _moves(one.structure.collectives) != _moves(other.structure.collectives):
            return False
        if not running:
            return True
        if one.may_wait_for_ever or other.may_wait_for_ever:
            return one.may_wait_for_ever == other.may_wait_for_ever
        if by_compiler and _moves(one.ran.compiled) != _moves(other.ran.compiled):
            return False
        return all(
            _same_blocks(a.held, b.held, one.case.roundings) for a, b in zip(one.results, other.results, strict=True)
        )
    except Failed:
        return running and (refused := _refusal(one)) is not None and refused == _refusal(other)


def _refusal(run: Execution) -> tuple[str, str] | None:
    """How JAX or XLA refused to read or run a program: the error, and the first line of its message."""
    try:
        run.structure, run.ran  # noqa: B018 - worked out when they are asked for
    except Failed as error:
        return error.kind, str(error).partition("\n")[0]
    return None


def _moves(found: Sequence[Collective]) -> Counter[tuple[str, tuple[str, ...], int]]:
    """The communication as a multiset; what a single device says to itself does not count."""
    return Counter((c.kind, c.axes, c.bytes_sent) for c in found if c.group > 1)


def _same_blocks(a: Blocks, b: Blocks, roundings: int) -> bool:
    return a.indices == b.indices and all(
        _same_numbers(one, other, roundings) for one, other in zip(a.values, b.values, strict=True)
    )


def _same_numbers(one: np.ndarray, other: np.ndarray, roundings: int) -> bool:
    """Close, and infinite or no number in the same places: a wrong program may overflow, or divide 0 by 0."""
    if one.shape != other.shape:
        return False
    odd = ~np.isfinite(other)
    alike = np.array_equal(one[odd], other[odd], equal_nan=True)
    return alike and close(np.where(odd, 0, one), np.where(odd, 0, other), roundings)


def _gist(problem: Problem) -> tuple[str, str, tuple[str, ...]]:
    """An error without the names that differ from one spelling of a program to the next."""
    first = problem.message.strip().splitlines()[0] if problem.message.strip() else ""
    names = r"<[^>]*>|at \S+:\d+|function \S+|\w+ at |argument \S+ of .+? with"
    return problem.error, re.sub(names, "·", first), problem.operands
