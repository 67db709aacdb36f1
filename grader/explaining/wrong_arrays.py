"""Which arrays of a program's result are wrong, and what they are instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import jax
import numpy as np

from grader.arrays.laid import holds_arrays
from grader.arrays.numbers import close
from grader.explaining.wrong_program import WrongProgram
from grader.findings.finding import Finding
from grader.findings.programs import AlikeParts, PartsExchanged, ResultPart, ReturnedAsGiven, RightParts
from grader.judging.behaviour import block_values
from grader.judging.results import result_part, right
from grader.programs.execution import Result

FEW_ROUNDINGS = 8  # more, and an array is no longer as it was given
_MOST_NAMED = 3  # arrays that are named at once
MOST_PAIRS = 2
_TELLING = 3  # different elements that an array needs to be known again


def exchanged(wrong: WrongProgram) -> Iterator[Finding]:
    """Each wrong array is another one that is expected."""
    run, expected = wrong.run, wrong.expected
    if not len(run.forms) == len(expected) > 1 or run.case.cotangents is not None:
        return
    numbers = [k for k, well in enumerate(right(run, run.results, expected)) if not well]
    places, found = list(expected), dict[int, int]()
    for k in numbers:
        one = {places[k]: expected[places[k]]}
        same = (j for j in numbers if j != k and right(run, [run.results[j]], one)[0])
        found[k] = next(same, -1)
    if found and -1 not in found.values() and len(set(found.values())) == len(numbers):
        pairs = [(wrong.part(k), result_part(run.case, run.forms[j][0])) for k, j in found.items()]
        yield PartsExchanged(tuple(pairs[:MOST_PAIRS]))


def as_given(wrong: WrongProgram) -> Iterator[Finding]:
    """Wrong arrays that are arguments, unchanged."""
    run, expected = wrong.run, wrong.expected
    if len(run.results) != len(expected):
        return
    given = [
        (f"{name}{jax.tree_util.keystr(path)}", np.asarray(array.value))
        for name, argument in run.case.arguments.items()
        if holds_arrays(argument)
        for path, array in jax.tree.leaves_with_path(argument)
    ]
    full = list(expected.values())
    pairs = []
    for k in (k for k in wrong.wrong if _is_telling(full[k])):
        same = (name for name, array in given if array.shape == full[k].shape and _is(run.results[k], array))
        pairs += [(wrong.part(k), name) for name in list(same)[:1]]
    if pairs:
        yield ReturnedAsGiven(tuple(pairs[:MOST_PAIRS]))


def _is(result: Result, array: np.ndarray) -> bool:
    pairs = zip(result.blocks.indices, block_values(result), strict=True)
    return _is_telling(array) and all(close(block, array[index], FEW_ROUNDINGS) for index, block in pairs)


def _is_telling(array: np.ndarray) -> bool:
    return len(np.unique(array)) >= _TELLING


def right_parts(wrong: WrongProgram) -> Iterator[Finding]:
    """The arrays that are right in a result of several."""
    if well := [wrong.part(k) for k, is_right in enumerate(wrong.right) if is_right]:
        yield RightParts(*_first(well))


def alike_parts(wrong: WrongProgram, alike: Sequence[int]) -> AlikeParts:
    """Of which wrong arrays something is true, and which others are wrong."""
    others = [k for k in wrong.wrong if k not in alike]
    return AlikeParts(*_first([wrong.part(k) for k in alike]), *_first([wrong.part(k) for k in others]))


def _first(parts: Sequence[ResultPart]) -> tuple[tuple[ResultPart, ...], int]:
    """The first few, and how many more there are."""
    return tuple(parts[:_MOST_NAMED]), max(len(parts) - _MOST_NAMED, 0)
