"""The right program that a wrong one is but for one thing: what is missing from a program stands in the reference.

Said where nothing else explains an answer. It is no guess: the reference was done with that one thing otherwise, on the
failing case and on those that bear witness, and came to what the answer came to.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from grader.arrays.laid import holds_arrays
from grader.arrays.numbers import same_numbers
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.judging.behaviour import Execution, block_values
from grader.judging.references import of_arrays
from grader.judging.results import Expected, name_in_result, right
from grader.programs.deviation import Deviation, Model
from grader.programs.deviations import deviations
from grader.programs.execution import Result
from grader.programs.variants import MOST_STEPS

SECONDS_DEVIATING = 0.6  # of computing, after which no more are tried: somebody waits
SECONDS_AT_LEAST = 0.3  # of these for the deviations, however long it took to trace the references
ENOUGH_NUMBERS = 3  # different whole numbers: fewer come out by chance


def deviating(exercise: Exercise, runs: Sequence[Execution], expected: Callable[[Case], Expected]) -> str:
    """Of which right program these are the results, but for one thing, in all of these runs; "" where none is found.

    The first run is the one that has been found wrong: what is said is of the first array that is wrong in it.
    """
    first, due, begun = runs[0], expected(runs[0].case), time.process_time()
    wrong = [k for k, well in enumerate(right(first, first.results, due)) if not well]
    if not _tell([run.results[wrong[0]] for run in runs]):
        return ""
    modelled = [(run, model) for run in runs if (model := _model(exercise, run.case, wrong[0]))]
    if len(modelled) < len(runs):
        return ""
    end = max(begun + SECONDS_DEVIATING, time.process_time() + SECONDS_AT_LEAST)
    for deviation in _deviations(modelled[0][1]):
        if time.process_time() > end:
            break
        if found := _everywhere(deviation, modelled, wrong[0]):
            of_all = all(_came_of(*one, range(len(one[1].results))) for one in found)
            whose = "Your values are" if of_all else f"{name_in_result(first.case, list(due)[wrong[0]])} is"
            which = "those" if of_all else "that"
            return f"{whose} {which} of a right program in which {deviation.words}. {deviation.question}"
    return ""


def _tell(results: Sequence[Result]) -> bool:
    """Whether there are so many numbers in these that they do not come out by chance."""
    numbers = np.unique(np.concatenate([np.ravel(block) for result in results for block in block_values(result)]))
    return len(numbers) >= ENOUGH_NUMBERS or (len(numbers) > 1 and bool((numbers % 1).any()))


def _everywhere(
    deviation: Deviation, modelled: Sequence[tuple[Execution, Model]], array: int
) -> list[tuple[Deviation, Execution, Model]]:
    """A deviation of the first of these references, and the same ones of the others, where all come to this array of
    their runs; else none.

    A reference of as many steps has it at the same place; in another, as one of more layers, the words have to do.
    """
    (first, here), *others = modelled
    if not _came_of(deviation, first, here, [array]):
        return []
    found = [(deviation, first, here)]
    for run, there in others:
        alike = (
            one
            for one in _deviations(there)
            if one.words == deviation.words and (one.at == deviation.at or len(here.steps) != len(there.steps))
        )
        if (same := next((one for one in alike if _came_of(one, run, there, [array])), None)) is None:
            return []
        found.append((same, run, there))
    return found


def _came_of(deviation: Deviation, run: Execution, model: Model, arrays: Sequence[int]) -> bool:
    """Whether these arrays of a run are on every device what comes of a deviation."""
    first = model.only or 0
    sizes = run.case.mesh
    for place in range(sizes[deviation.along] if deviation.along else 1):
        try:
            with np.errstate(all="ignore"):
                made = deviation.made(place)
        except Exception:  # what it does may not fit these shapes
            return False
        devices = _devices_at(place, deviation.along, run.case)
        if any(
            not 0 <= k - first < len(made) or not _hold(run.results[k], made[k - first], devices, run.case)
            for k in arrays
        ):
            return False
    return True


def _devices_at(place: int, along: str, case: Case) -> Sequence[int]:
    """The devices with this place along an axis; all where no axis is meant."""
    numbers = np.arange(int(np.prod(list(case.mesh.values())))).reshape(tuple(case.mesh.values()))
    return (numbers.take(place, list(case.mesh).index(along)) if along else numbers).ravel().tolist()


def _hold(result: Result, whole: Any, devices: Sequence[int], case: Case) -> bool:
    """Whether these devices hold their blocks of an array."""
    if np.shape(whole) != result.blocks.shape:
        return False
    pairs = ((block_values(result)[d], np.asarray(whole)[result.blocks.indices[d]]) for d in devices)
    return all(same_numbers(block, due, case.roundings) for block, due in pairs)


@functools.lru_cache(maxsize=32)
def _model(exercise: Exercise, case: Case, array: int) -> Model | None:
    """The reference on a case: for all of its results where it is short, else for one array of them; none where it is
    not to be traced."""
    arrays = {name: a for name, a in case.arguments.items() if holds_arrays(a)}
    numbers = {name: a for name, a in case.arguments.items() if type(a) in (int, float)}
    found = None
    for only in (None, array):
        with contextlib.suppress(Exception):  # it may do what is not to be traced, or be too long
            found = Model(of_arrays(exercise, case), arrays, numbers, case.mesh, only)
            if len(found.steps) <= MOST_STEPS:
                break
    return found


def _deviations(model: Model) -> Iterator[Deviation]:
    try:
        yield from deviations(model)
    except Exception:  # what it is made of may be nothing that NumPy knows, such as a key
        return
