"""Plain values: what the reference makes of a case, and whether two are the same answer."""

from __future__ import annotations

import functools
from typing import Any

from jax.sharding import PartitionSpec as P

from grader.arrays.described import built, of_other_numbers
from grader.arrays.numbers import same_value
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise, ValueExercise
from grader.exercises.plain import plain


def same_answer(exercise: ValueExercise, case: Case, one: Any, other: Any) -> bool:
    """Whether two values answer a case alike: `exercise.same` decides if there is one."""
    expected = plain(other)
    try:
        if exercise.same is None:
            return same_value(one, expected) and not of_other_numbers(one, expected)
        return bool(exercise.same(one, other, **case.arguments))
    except Exception:  # a student's value may have any form
        return False


@functools.lru_cache(maxsize=1024)
def expected_value(exercise: Exercise, case: Case) -> Any:
    """What the reference makes of a case, or the ValueError that it raises. Cached: a class asks again and again."""
    try:
        return plain(exercise.reference(**built(dict(case.arguments))))
    except ValueError as error:
        return error


@functools.lru_cache(maxsize=1024)
def is_spec_expected(exercise: Exercise, case: Case) -> bool:
    """Whether the reference answers a case with a spec, which crosses the wire as a tuple."""
    return isinstance(expected_value(exercise, case), tuple) and isinstance(
        exercise.reference(**built(dict(case.arguments))), P
    )
