"""A wrong result that is right for something else: the reference with a step changed.

Nothing is asserted that was not computed here, in each of the cases that are tried.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from grader.arrays.laid import holds_arrays, values_of
from grader.arrays.numbers import close
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.explaining.changed.steps import StepChange, changes
from grader.explaining.changed.traced import CannotTrace, traced_reference
from grader.explaining.wrong_program import WrongProgram
from grader.findings.finding import Finding
from grader.judging.behaviour import Execution, block_values
from grader.judging.references import of_arrays

_MOST_TRIED = 400  # changes to a reference


def step_changed(wrong: WrongProgram) -> Iterator[Finding]:
    """One step of the reference is changed."""
    if wrong.is_result_wrong:
        yield from _changed(wrong, None)


def step_of_one_changed(wrong: WrongProgram) -> Iterator[Finding]:
    """The same of the first wrong array of several."""
    if wrong.is_result_wrong and len(wrong.run.results) > 1:
        array = wrong.first_wrong
        yield from (replace(finding, part=wrong.part(array)) for finding in _changed(wrong, array))


def _changed(wrong: WrongProgram, only: int | None) -> Iterator[Any]:
    first, *others = wrong.runs[:2]
    for change in _changes(wrong.exercise, first.case, only)[:_MOST_TRIED]:
        if _came_out(first, change, only) and all(
            any(
                _came_out(other, alike, only)
                for alike in _changes(wrong.exercise, other.case, only)
                if alike.finding == change.finding
            )
            for other in others
        ):
            yield change.finding


@functools.lru_cache(maxsize=64)
def _changes(exercise: Exercise, case: Case, only: int | None) -> list[StepChange]:
    arguments = {name: values_of(a) for name, a in case.arguments.items() if holds_arrays(a)}
    names = [
        f"{n}{jax.tree_util.keystr(path)}" for n, a in arguments.items() for path, _ in jax.tree.leaves_with_path(a)
    ]
    try:
        reference = traced_reference(of_arrays(exercise, case), list(arguments.values()), only)
        return changes(reference, jax.tree.leaves(list(arguments.values())), names, case.mesh)
    except CannotTrace:
        return []


def _came_out(run: Execution, change: StepChange, only: int | None) -> bool:
    """Whether the changed reference gives the results of a run, or those before its gradients."""
    try:
        with np.errstate(all="ignore"):
            arrays = change.result()
    except (TypeError, ValueError, IndexError):
        return False
    first = only or 0
    results = run.results[first : first + len(arrays)]
    return len(arrays) > 0 and all(
        array.shape == result.blocks.shape
        and all(
            close(block, array[index], run.case.roundings)
            for block, index in zip(block_values(result), result.blocks.indices, strict=True)
        )
        for array, result in zip(arrays, results, strict=True)
    )
