"""Parts of arguments on which a wrong result does not depend, and what is due does.

Other numbers stand there, the program is run again, and comes to the same: nothing is guessed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from grader.arrays.laid import Array
from grader.exercises.case import Case
from grader.judging.behaviour import Execution, arrays_given, block_values, operands
from grader.judging.results import Expected
from grader.programs.execution import Failed, Result

MOST_ARRAYS = 6  # of a program, each of which is tried
MOST_PARTS = 8  # of an array along a dimension, each of which is tried
SMALLEST, LARGEST = 2, 9  # that is added to a number, so that another one stands there


@dataclass(frozen=True, eq=False)
class _Tried:
    """A case with other numbers in a part of one array: entries from a start to a stop along a dimension."""

    case: Case
    name: str
    dimension: int = 0
    start: int = 0
    stop: int = 0


def without_effect(run: Execution, due: Callable[[Case], Expected]) -> str:
    """Which array, or which entries of it along a dimension, a result should depend on, and does not; "" if none."""
    arrays = [(name, array) for _, name, array in arrays_given(run.case) if array.value.dtype.kind in "fb"]
    if run.case.cotangents is not None or not 0 < len(arrays) <= MOST_ARRAYS:
        return ""
    whole = [_Tried(_with(run.case, array, slice(None)), name) for name, array in arrays]
    if idle := _idle(run, whole, due):
        return f"When other numbers stand in `{idle[0].name}`, the result stays as it is. Where should they come in?"
    for name, array in arrays:
        for parts in _in_parts(run.case, name, array):
            if idle := _idle(run, parts, due):
                return _words(idle)
    return ""


def _words(idle: Sequence[_Tried]) -> str:
    """Of parts along one dimension, those that are one behind the other together."""
    runs: list[list[int]] = []
    for one in idle:
        if runs and runs[-1][1] == one.start:
            runs[-1][1] = one.stop
        else:
            runs.append([one.start, one.stop])
    told = " and ".join(f"{start} to {stop - 1}" if stop > start + 1 else f"{start}" for start, stop in runs)
    where = f"`{idle[0].name}`, at {told} along dimension {idle[0].dimension} (counted from 0)"
    return f"When other numbers stand in {where}, the result stays as it is. Where should they come in?"


def _in_parts(case: Case, name: str, array: Array) -> Iterator[list[_Tried]]:
    """For each dimension the cases in which other numbers stand in one of its equal parts."""
    for dimension, length in enumerate(array.value.shape):
        count = max((n for n in range(2, MOST_PARTS + 1) if length % n == 0), default=0)
        bounds = [(k * length // count, (k + 1) * length // count) for k in range(count)]
        before = (slice(None),) * dimension
        yield [_Tried(_with(case, array, (*before, slice(*both))), name, dimension, *both) for both in bounds]


def _with(case: Case, array: Array, part: Any) -> Case:
    """The case with other numbers, or truth values, in a part of an array."""
    value = array.value.copy()
    if value.dtype.kind == "b":
        value[part] = ~value[part]
    else:
        more = np.random.default_rng(0).integers(SMALLEST, LARGEST + 1, size=value.shape).astype(value.dtype)
        value[part] += more[part]
    other = replace(array, value=value)
    given = {
        name: jax.tree.map(lambda one: other if one is array else one, argument)
        for name, argument in case.arguments.items()  # one by one: a dict as a whole would be sorted
    }
    return replace(case, arguments=given)


def _idle(run: Execution, tried: Sequence[_Tried], due: Callable[[Case], Expected]) -> list[_Tried]:
    """Those in which the program comes to what it came to before, and something else is due."""
    before = due(run.case)
    counting = [one for one in tried if _differ(before, due(one.case))]
    if not counting:
        return []
    try:
        each = run.results_on([operands(one.case) for one in counting])
    except Failed:
        return []
    return [one for one, results in zip(counting, each, strict=True) if _stay(run.results, results)]


def _differ(one: Expected, other: Expected) -> bool:
    pairs = ((one[place], other[place]) for place in one)
    return any(not np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def _stay(one: Sequence[Result], other: Sequence[Result]) -> bool:
    before, after = ([block for result in some for block in block_values(result)] for some in (one, other))
    return all(map(functools.partial(np.array_equal, equal_nan=True), before, after))
