"""On whose numbers a wrong result depends, and on whose it should.

The program is run once more with other numbers in what some devices hold of an argument, and so is the reference. Where
one of the two results changes and the other stays as it was, something does not come where it belongs, or comes where
it does not. It is no guess: both were computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from grader.arrays.blocks import blocks
from grader.arrays.laid import Array
from grader.arrays.numbers import close
from grader.arrays.words import number, numbered
from grader.exercises.case import Case
from grader.judging.behaviour import Execution, arrays_given, block_values, operands
from grader.judging.results import Expected
from grader.programs.execution import Failed, Result

MOST_PROBED = 24  # parts of arguments that are given other numbers, each alone
MOST_WITH_ONES = 8  # arguments that are made ones
ENOUGH_NUMBERS = 3  # different ones: fewer are alike by chance
SECONDS_PROBED = 0.5  # of computing references, after which no further part is tried: somebody waits


@dataclass(frozen=True, eq=False)
class _Probe:
    """A case with other numbers in that part of an argument which some devices hold."""

    name: str
    owners: Sequence[int]
    whole: bool  # of the argument
    case: Case


def depends(run: Execution, due: Callable[[Case], Expected], array: int, name: str) -> str:
    """Whose numbers do not come into an array of a result, of this number and with this name, or come in and should
    not; "" where neither is found."""
    case, probes = replace(run.case, cotangents=None), list(_probes(run.case))
    if not probes:
        return ""
    try:
        found = run.results_on([operands(probe.case) for probe in probes])
    except Failed:
        return ""
    end, before = time.process_time() + SECONDS_PROBED, _array(due(case), array)
    odd: dict[tuple[int, str, bool], list[_Probe]] = {}
    for probe, results in zip(probes, found, strict=True):
        if time.process_time() > end:
            break
        after = _array(due(replace(probe.case, cotangents=None)), array)
        for device, changes in _unlike(run, run.results[array], results[array], before, after):
            odd.setdefault((device, probe.name, changes), []).append(probe)
    if not odd:
        return ""
    (device, argument, changes), those = min(odd.items(), key=lambda item: (item[0][2], item[0][0]))
    where = f"`{argument}`" if those[0].whole else f"what {_holders(those)} of `{argument}`"
    if changes:
        return (
            f"With other numbers in {where}, yours changes on device {device} ({name}), and should stay as it is. By "
            "which step do they come in?"
        )
    return (
        f"With other numbers in {where}, yours stays as it is on device {device} ({name}), and should change. Where "
        "are they lost?"
    )


def with_ones(run: Execution, due: Callable[[Case], Expected], array: int, name: str) -> str:
    """What comes of an argument that is nothing but ones: one number is due everywhere, and another was found, or it is
    right and so the argument's numbers are only in the wrong places."""
    arrays = [given for given in arrays_given(run.case) if given[2].value.dtype.kind == "f"]
    cases = [
        replace(
            run.case, arguments=_exchanged(run.case.arguments, argument, a, replace(a, value=np.ones_like(a.value)))
        )
        for argument, _, a in arrays[:MOST_WITH_ONES]
    ]
    try:
        found = run.results_on([operands(case) for case in cases]) if cases else []
    except Failed:
        return ""
    placed = ""
    for (_, argument, a), case, results in zip(arrays, cases, found, strict=False):
        whole = _array(due(replace(case, cotangents=None)), array)
        values = np.concatenate([np.ravel(block) for block in block_values(results[array])])
        pairs = zip(block_values(results[array]), results[array].blocks.indices, strict=True)
        well = all(close(block, whole[index], run.case.roundings) for block, index in pairs)
        if well and len(np.unique(a.value)) > ENOUGH_NUMBERS and len(np.unique(whole)) > ENOUGH_NUMBERS:
            placed = (
                placed or f"With ones for `{argument}` yours would be right ({name}). Which of its numbers goes where?"
            )
        if not well and whole.size > ENOUGH_NUMBERS and close(whole, np.full_like(whole, np.mean(whole))):
            low, high = (number(float(n), 3) for n in (values.min(), values.max()))
            range_ = low if low == high else f"between {low} and {high}"
            mean = number(float(np.mean(whole)), 3)
            return f"With ones for `{argument}` every entry should be {mean} ({name}), and yours is {range_}."
    return placed


def _holders(probes: Sequence[_Probe]) -> str:
    devices = sorted({device for probe in probes for device in probe.owners})
    return f"{numbered('device', devices)} {'hold' if len(devices) > 1 else 'holds'}"


def _array(expected: Expected, number: int) -> np.ndarray:
    return list(expected.values())[number]


def _unlike(
    run: Execution, one: Result, other: Result, before: np.ndarray, after: np.ndarray
) -> Iterator[tuple[int, bool]]:
    """The devices on which a result changes and should not, or the other way round, and whether it changes."""
    pairs = zip(block_values(one), block_values(other), one.blocks.indices, strict=True)
    for device, (was, now, index) in enumerate(pairs):
        changes, should = _changes(run, was, now), _changes(run, before[index], after[index])
        if None not in (changes, should) and changes is not should:
            yield device, bool(changes)


def _changes(run: Execution, was: np.ndarray, now: np.ndarray) -> bool | None:
    """Whether a block has changed; None where that may be rounding."""
    if np.array_equal(was, now, equal_nan=was.dtype.kind == "f"):
        return False
    return None if close(now, was, run.case.roundings) else True


def _probes(case: Case) -> Iterator[_Probe]:
    """Of each array of floats its parts on devices, each in turn with other numbers."""
    arrays = [given for given in arrays_given(case) if given[2].value.dtype.kind == "f" and given[2].value.any()]
    for argument, name, array in arrays:
        owners: dict[str, list[int]] = {}
        indices = blocks(array.value.shape, array.spec, dict(case.mesh)).indices
        for device, index in enumerate(indices):
            owners.setdefault(str(index), []).append(device)
        parts = list(owners.values())
        step = -(-len(parts) * len(arrays) // MOST_PROBED)
        for devices in parts[::step]:
            value = array.value.copy()
            value[indices[devices[0]]] *= _factors(value[indices[devices[0]]].shape).astype(value.dtype)
            changed = _exchanged(case.arguments, argument, array, replace(array, value=value))
            yield _Probe(name, devices, len(parts) == 1, replace(case, arguments=changed))


def _factors(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers near 1, none of which is 1."""
    return 1 + np.random.default_rng(0).uniform(0.1, 0.5, shape) * np.random.default_rng(1).choice([-1, 1], shape)


def _exchanged(given: Mapping[str, Any], argument: str, array: Array, other: Array) -> dict[str, Any]:
    return {**given, argument: jax.tree.map(lambda one: other if one is array else one, given[argument])}
