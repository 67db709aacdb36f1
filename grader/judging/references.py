"""An exercise's reference as a function of the arrays of a case alone, and what it comes to."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from grader.arrays.laid import holds_arrays, values_of
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.jax_versions import compiled_quickly, quick_options
from grader.judging.behaviour import Execution, arrays_of
from grader.judging.results import Expected, right
from grader.programs.compilations import TooManyPrograms, compilations
from grader.programs.program import with_gradient

FEW_PROGRAMS = 4  # that a reference may have compiled, operation by operation, before it is compiled as a whole
_in_jax: weakref.WeakSet[Exercise] = weakref.WeakSet()  # the exercises whose references have had something compiled


def of_arrays(exercise: Exercise, case: Case) -> Callable[..., Any]:
    """The reference, which is given the arrays of a case; what else it takes is as the case has it, or by keyword."""

    def reference(*given: Any, **plain: Any) -> Any:
        each = iter(given)
        arguments = case.arguments.items()
        with np.errstate(all="ignore"):  # it may be given what no case has, as where nothing is kept of a mask
            return exercise.reference(*(next(each) if holds_arrays(a) else plain.get(name, a) for name, a in arguments))

    return reference


def come_of(exercise: Exercise, case: Case, arrays: Sequence[Any]) -> Any:
    """What the reference makes of the arrays of a case.

    One in NumPy is called; one in JAX is compiled as a whole, where its operations would be compiled one by one.
    """
    reference = of_arrays(exercise, case)
    if exercise not in _in_jax:
        try:
            with compilations(most=FEW_PROGRAMS) as made:
                result = reference(*arrays)
        except TooManyPrograms:
            _in_jax.add(exercise)
        else:
            if made:  # the next one is compiled as a whole
                _in_jax.add(exercise)
            return result
    try:
        return jax.jit(reference, compiler_options=quick_options())(*arrays)
    except Exception:  # it may look at its numbers
        return reference(*arrays)


@functools.lru_cache(maxsize=1024)
def expected_results(exercise: Exercise, case: Case) -> Expected:
    """Every array that the result should have, by its place in it; then those of the gradients."""
    arrays = [values_of(a) for a in case.arguments.values() if holds_arrays(a)]
    with compiled_quickly():  # it runs once
        if case.cotangents is None:
            result = come_of(exercise, case, arrays)
        else:
            both = jax.jit(with_gradient(of_arrays(exercise, case), len(arrays)), compiler_options=quick_options())
            result = both(*arrays, values_of(case.cotangents))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(result)}


def right_arrays(exercise: Exercise, case: Case, behavior: object) -> Sequence[bool]:
    """Which arrays of a result are right; nothing if there are not as many as expected."""
    found, expected = arrays_of(behavior), expected_results(exercise, case)
    return right(behavior, found, expected) if isinstance(behavior, Execution) and len(found) == len(expected) else ()
