"""What doing nothing comes to: the formula of an exercise as it stands, with nothing said of devices, on a case."""

from __future__ import annotations

import functools
from typing import Any

from grader.arrays.laid import holds_arrays
from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.exercise import Exercise
from grader.judging.behaviour import Execution
from grader.programs.program import Program
from grader.programs.variants import in_jax

NO_POINTS = (
    "So far each device ends with what it has where the formula stands alone and nothing is said of devices, and as "
    "much is sent, so this earns no points yet."
)


@functools.lru_cache(maxsize=256)
def nothing_done(exercise: Exercise, case: Case) -> Execution | None:
    """The formula on a case; None where JAX makes no program of it."""

    def formula(*arrays: Any, **_: Any) -> Any:
        each = iter(arrays)
        return in_jax(exercise.reference)(*(next(each) if holds_arrays(a) else a for a in case.arguments.values()))

    (answer,) = collect(exercise.form, asks(exercise, [case]), formula)
    return Execution(answer, case) if isinstance(answer, Program) else None
