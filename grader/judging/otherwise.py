"""A wrong result that is right for something else: a step of the reference changed, or each device on its own.

Said where no mistake that was declared explains an answer. Nothing is asserted that was not computed here, on each of
the cases that are tried.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grader.arrays.laid import holds_arrays, values_of
from grader.arrays.numbers import close
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.judging.behaviour import Execution, block_values
from grader.judging.references import of_arrays
from grader.judging.shares import entries_that_count, shares
from grader.programs.execution import Result
from grader.programs.variants import Key, Variants, alone

SECONDS_TRIED = 0.5  # of computing, after which no further variant is tried: somebody waits in a notebook


def otherwise(exercise: Exercise, runs: Sequence[Execution]) -> str:
    """What else the results of a program are, in all of these runs; "" where nothing is found."""
    return _on_its_own(exercise, runs) or _changed(exercise, runs, None, "This")


def one_otherwise(exercise: Exercise, runs: Sequence[Execution], array: int, name: str) -> str:
    """What else one array of several is, of this number and with this name, in all of these runs."""
    return _changed(exercise, runs, array, name) if len(runs[0].results) > 1 else ""


def by_shares(exercise: Exercise, run: Execution) -> str:
    """Whose numbers have come in, on the failing case."""
    return _by(shares, exercise, run)


def by_entries(exercise: Exercise, run: Execution) -> str:
    """Which entries of an argument have come in, on the failing case."""
    return _by(entries_that_count, exercise, run)


def _by(told: Callable[..., str], exercise: Exercise, run: Execution) -> str:
    """What is told of the shares in a result that is a single array."""
    arguments = {name: a for name, a in run.case.arguments.items() if holds_arrays(a)}
    if len(run.results) != 1:
        return ""
    try:
        with np.errstate(all="ignore"):
            return told(run, of_arrays(exercise, run.case), arguments)
    except Exception:  # a reference may not take zeros
        return ""


def _on_its_own(exercise: Exercise, runs: Sequence[Execution]) -> str:
    axes = [name for name in runs[0].case.mesh if any(run.case.mesh.get(name, 1) > 1 for run in runs)]
    for along in (some for n in range(1, len(axes) + 1) for some in itertools.combinations(axes, n)):
        if all(_are(run, _results_alone(exercise, run.case, along)) for run in runs):
            return (
                f"This is what comes out when the devices along {' and '.join(along)} know nothing of one another, and "
                "each works on its own blocks alone. What does a device lack, and who holds it?"
            )
    return ""


def _are(run: Execution, results: Sequence[Sequence[Any]]) -> bool:
    """Whether every device holds what stands in its place here: the part of it that is there, where it is larger.

    What is held besides are gradients."""
    return len(results) > 0 and all(
        0 < len(arrays) <= len(run.results)
        and (len(arrays) == len(run.results) or run.case.cotangents is not None)
        and all(_is(result, device, np.asarray(array), run) for result, array in zip(run.results, arrays, strict=False))
        for device, arrays in enumerate(results)
    )


def _is(result: Result, device: int, array: np.ndarray, run: Execution) -> bool:
    block, index, whole = block_values(result)[device], result.blocks.indices[device], result.blocks.shape
    if array.ndim != block.ndim:
        return False
    pairs = zip(index, array.shape, whole, block.shape, strict=True)
    part = tuple(where if have == all_ else slice(None) for where, have, all_, _ in pairs)
    return close(block, array[part], run.case.roundings)


@functools.lru_cache(maxsize=256)
def _results_alone(exercise: Exercise, case: Case, along: tuple[str, ...]) -> Sequence[Sequence[Any]]:
    arguments = {name: a for name, a in case.arguments.items() if holds_arrays(a)}
    try:
        return alone(of_arrays(exercise, case), arguments, case.mesh, along)
    except Exception:  # the reference may ask for more than a block
        return []


def _changed(exercise: Exercise, runs: Sequence[Execution], only: int | None, what: str) -> str:
    first, *others = runs
    begun, variants = time.process_time(), _variants(exercise, first.case, only)
    for key in variants.changes:
        if time.process_time() - begun > SECONDS_TRIED:
            break
        if _came_out(first, variants, key) and all(
            any(_came_out(other, elsewhere, like) for like in elsewhere.like(key, variants.count))
            for other in others
            for elsewhere in [_variants(exercise, other.case, only)]
        ):
            return f"{what} is what comes out when {key[0]}. Is it so in your program?"
    return ""


def _came_out(run: Execution, variants: Variants, key: Key) -> bool:
    """Whether a variant has the results of a run, or those before its gradients."""
    arrays, first = variants.result(key), variants.only or 0
    results = run.results[first : first + len(arrays)]
    return len(arrays) > 0 and all(
        array.shape == result.blocks.shape
        and all(
            close(block, array[index], run.case.roundings)
            for block, index in zip(block_values(result), result.blocks.indices, strict=True)
        )
        for array, result in zip(arrays, results, strict=True)
    )


@functools.lru_cache(maxsize=64)
def _variants(exercise: Exercise, case: Case, only: int | None) -> Variants:
    arguments = {name: values_of(a) for name, a in case.arguments.items() if holds_arrays(a)}
    return Variants(of_arrays(exercise, case), arguments, case.mesh, only)
