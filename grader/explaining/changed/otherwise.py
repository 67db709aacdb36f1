"""A wrong result that is right for something else: the reference with a step changed, or done by each device alone.

Nothing is asserted that was not computed here, in each of the cases that are tried.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.arrays.laid import holds_arrays, values_of
from grader.arrays.numbers import close
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.explaining.changed.steps import StepChange, changes
from grader.explaining.changed.traced import CannotTrace, TracedReference, traced_reference
from grader.explaining.wrong_program import WrongProgram
from grader.findings.finding import Finding
from grader.findings.programs import DevicesAlone
from grader.judging.behaviour import Execution, block_values
from grader.judging.references import of_arrays
from grader.programs.execution import Result

_MOST_TRIED = 400  # changes to a reference


def devices_alone(wrong: WrongProgram) -> Iterator[Finding]:
    """The devices along some axes never communicate."""
    runs = wrong.runs[:2]
    axes = [name for name in wrong.case.mesh if any(run.case.mesh.get(name, 1) > 1 for run in runs)]
    for along in (some for n in range(1, len(axes) + 1) for some in itertools.combinations(axes, n)):
        if wrong.is_result_wrong and all(_held_alone(run, _alone(wrong.exercise, run.case, along)) for run in runs):
            yield DevicesAlone(along)


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


@functools.lru_cache(maxsize=256)
def _alone(exercise: Exercise, case: Case, along: tuple[str, ...]) -> Sequence[Sequence[np.ndarray]]:
    """What the reference gives on every device, from the part of the arguments that is at its place along some axes."""
    arguments = [a for a in case.arguments.values() if holds_arrays(a)]
    leaves, tree = jax.tree.flatten(arguments)
    parts = [_parts(a.value, _only(a.spec, along), case.mesh) for a in leaves]
    try:
        reference: TracedReference = traced_reference(
            of_arrays(exercise, case), jax.tree.unflatten(tree, [part[0] for part in parts])
        )
        with np.errstate(all="ignore"):
            return [reference(own) for own in zip(*parts, strict=True)]
    except (CannotTrace, TypeError, ValueError, IndexError):
        return []


def _parts(value: np.ndarray, spec: P, mesh: Mapping[str, int]) -> list[np.ndarray]:
    return [value[index] for index in blocks(value.shape, spec, dict(mesh)).indices]


def _only(spec: P, along: Sequence[str]) -> P:
    names = [(entry,) if isinstance(entry, str) else tuple(entry or ()) for entry in spec]
    return P(*(tuple(name for name in entry if name in along) or None for entry in names))


def _held_alone(run: Execution, results: Sequence[Sequence[np.ndarray]]) -> bool:
    """Whether every device holds this. (What is held besides are gradients.)"""
    return len(results) == math.prod(run.case.mesh.values()) and all(
        0 < len(arrays) <= len(run.results)
        and (len(arrays) == len(run.results) or run.case.cotangents is not None)
        and all(_is(result, device, array, run) for result, array in zip(run.results, arrays, strict=False))
        for device, arrays in enumerate(results)
    )


def _is(result: Result, device: int, array: np.ndarray, run: Execution) -> bool:
    """Whether a device holds this array, or, of a larger one, the part that is at its place."""
    block, index, whole = block_values(result)[device], result.blocks.indices[device], result.blocks.shape
    if array.ndim != block.ndim:
        return False
    pairs = zip(index, array.shape, whole, strict=True)
    part = tuple(where if length == full else slice(None) for where, length, full in pairs)
    return close(block, array[part], run.case.roundings)
