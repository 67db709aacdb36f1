"""An exercise's reference as a function of the arrays of a case alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.arrays.laid import holds_arrays
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise


def of_arrays(exercise: Exercise, case: Case) -> Callable[..., Any]:
    """The reference, which is given the arrays of a case; what else it takes is as the case has it, or by keyword."""

    def reference(*given: Any, **plain: Any) -> Any:
        each = iter(given)
        arguments = case.arguments.items()
        return exercise.reference(*(next(each) if holds_arrays(a) else plain.get(name, a) for name, a in arguments))

    return reference
