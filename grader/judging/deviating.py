"""The right program that a wrong one is but for one thing: what is missing from a program stands in the reference.

Said where nothing else explains an answer. It is no guess: the reference was done with that one thing otherwise, on the
failing case and on those that bear witness, and came to what the answer came to.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from grader.arrays.laid import holds_arrays
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.judging.behaviour import Execution, block_values, same_numbers
from grader.judging.references import of_arrays
from grader.judging.results import Expected, name_in_result, right
from grader.programs.deviation import Deviation, Model
from grader.programs.deviations import deviations
from grader.programs.execution import Result

SECONDS_DEVIATING = 0.6  # of computing, after which no more are tried: somebody waits
ENOUGH_NUMBERS = 3  # different whole numbers: fewer come out by chance


def deviating(exercise: Exercise, runs: Sequence[Execution], expected: Callable[[Case], Expected]) -> str:
    """Of which right program these are the results, but for one thing, in all of these runs; "" where none is found.

    The first run is the one that has been found wrong: what is said is of the first array that is wrong in it.
    """
    first, *others = runs
    due, begun = expected(first.case), time.process_time()
    wrong = [k for k, well in enumerate(right(first, first.results, due)) if not well]
    if not _tell([run.results[wrong[0]] for run in runs]):
        return ""
    for deviation in _deviations(exercise, first.case):
        if time.process_time() - begun > SECONDS_DEVIATING:
            break
        if _came_of(deviation, first, wrong[:1]) and all(_elsewhere(exercise, deviation, o, wrong[:1]) for o in others):
            of_all = all(_elsewhere(exercise, deviation, run, range(len(run.results))) for run in runs)
            whose = "Your values are" if of_all else f"{name_in_result(first.case, list(due)[wrong[0]])} is"
            which = "those" if of_all else "that"
            return f"{whose} {which} of a right program in which {deviation.words}. {deviation.question}"
    return ""


def _tell(results: Sequence[Result]) -> bool:
    """Whether there are so many numbers in these that they do not come out by chance."""
    numbers = np.unique(np.concatenate([np.ravel(block) for result in results for block in block_values(result)]))
    return len(numbers) >= ENOUGH_NUMBERS or (len(numbers) > 1 and bool((numbers % 1).any()))


def _elsewhere(exercise: Exercise, deviation: Deviation, run: Execution, arrays: Sequence[int]) -> bool:
    """Whether the same deviation comes to these arrays of another run."""
    key = (deviation.words, deviation.at)
    same = next((one for one in _deviations(exercise, run.case) if (one.words, one.at) == key), None)
    return same is not None and _came_of(same, run, arrays)


def _came_of(deviation: Deviation, run: Execution, arrays: Sequence[int]) -> bool:
    """Whether these arrays of a run are on every device what comes of a deviation."""
    sizes = run.case.mesh
    for place in range(sizes[deviation.along] if deviation.along else 1):
        try:
            with np.errstate(all="ignore"):
                made = deviation.made(place)
        except Exception:  # what it does may not fit these shapes
            return False
        devices = _devices_at(place, deviation.along, run.case)
        if any(k >= len(made) or not _hold(run.results[k], made[k], devices, run.case) for k in arrays):
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
def _model(exercise: Exercise, case: Case) -> Model | None:
    """The reference on a case; none where it is not to be traced."""
    arrays = {name: a for name, a in case.arguments.items() if holds_arrays(a)}
    numbers = {name: a for name, a in case.arguments.items() if type(a) in (int, float)}
    try:
        return Model(of_arrays(exercise, case), arrays, numbers, case.mesh)
    except Exception:  # it may do what is not to be traced
        return None


def _deviations(exercise: Exercise, case: Case) -> Iterator[Deviation]:
    model = _model(exercise, case)
    try:
        yield from deviations(model) if model else ()
    except Exception:  # what it is made of may be nothing that NumPy knows, such as a key
        return
