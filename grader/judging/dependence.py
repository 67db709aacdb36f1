"""On whose numbers a wrong result depends, and on whose it should.

The program is run once more with other numbers in one part of an argument, and so is the reference. Where one of the
two results changes and the other stays as it was, something does not come where it belongs, or comes where it does not.
It is no guess: both were computed.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.arrays.blocks import blocks
from grader.arrays.laid import Array
from grader.arrays.numbers import close
from grader.arrays.words import numbered
from grader.exercises.case import Case
from grader.judging.behaviour import Execution, arrays_given, block_values, operands, with_value
from grader.judging.results import Expected, beside, whole_due
from grader.programs.execution import Failed, Result

MOST_PROBED = 24  # parts of arguments that are given other numbers, each alone
MOST_ALONG = 36  # of the numbers along short dimensions
LONGEST_SHORT = 12  # dimension
MOST_CONFIRMED = 3  # findings that are tried again
FEW_COUNTS = 8  # whole numbers, of which all may stay as they are by chance
SECONDS_PROBED = 1  # of computing references, after which no further part is tried: somebody waits


@dataclass(frozen=True, eq=False)
class _Probe:
    """A case with other numbers in one part of an argument: in what some devices hold, or at one place along a
    dimension."""

    argument: str
    parts: int  # that there are of this kind
    tried: int  # of them
    cases: tuple[Case, Case]  # with other numbers, and with others again: one kind may be lost by chance
    owners: Sequence[int] = ()
    dimension: int = -1
    place: int = -1

    @property
    def owned_by_some(self) -> bool:
        """Whether it is one of several devices' parts: on less a result may depend and not show it, at its limit."""
        return self.dimension < 0 and self.parts > 1


def depends(run: Execution, due: Callable[[Case], Expected], array: int, name: str) -> str:
    """Whose numbers do not come into an array of a result, of this number and with this name, or come in and should
    not; "" where neither is found."""
    odd = _odd(run, due, array, [*_on_devices(run.case), *_along(run.case)], 0)
    for key, those in sorted(odd.items(), key=lambda item: item[0][:3])[:MOST_CONFIRMED]:
        if sure := _odd(run, due, array, those, 1).get(key):
            return _told(sure, changes=key[0], device=key[2], name=name)
    return ""


_Key = tuple[bool, int, int, str]


def _odd(
    run: Execution, due: Callable[[Case], Expected], array: int, probes: Sequence[_Probe], time_: int
) -> dict[_Key, list[_Probe]]:
    """The probes by which a result changes where it should not, or the other way round: by whether it does, the
    dimension, the device and the argument."""
    try:
        found = run.results_on([operands(probe.cases[time_]) for probe in probes]) if probes else []
    except Failed:
        return {}
    before = whole_due(due, run.case, array)
    end = math.inf
    odd: dict[_Key, list[_Probe]] = {}
    for probe, results in zip(probes, found, strict=True):
        after = whole_due(due, probe.cases[time_], array)
        if time.process_time() > end:
            break
        end = min(end, time.process_time() + SECONDS_PROBED)  # from the first on, with which JAX compiles
        for device, changes in _unlike(run, run.results[array], results[array], before, after):
            if changes and not probe.owned_by_some:
                continue
            odd.setdefault((changes, probe.dimension, device, probe.argument), []).append(probe)
    return odd


def _told(probes: Sequence[_Probe], changes: bool, device: int, name: str) -> str:
    with_, on = f"With other numbers in {_where(probes)}, yours", f"on device {device}{beside(name)}"
    if changes:
        return f"{with_} changes {on}, and should stay as it is. By which step do they come in?"
    return f"{with_} stays as it is {on}, and should change. Where are they lost?"


def _where(probes: Sequence[_Probe]) -> str:
    """Parts of one argument, in words."""
    first = probes[0]
    if len(probes) == first.tried > 1 or first.parts == 1:
        all_ = "" if first.tried == first.parts else " that was tried"
        return f"any part of `{first.argument}`{all_}" if first.parts > 1 else f"`{first.argument}`"
    if first.dimension >= 0:
        places = numbered("number", [probe.place for probe in probes])
        return f"{places} along dimension {first.dimension} of `{first.argument}` (counted from 0)"
    devices = sorted({device for probe in probes for device in probe.owners})
    return f"what {numbered('device', devices)} {'hold' if len(devices) > 1 else 'holds'} of `{first.argument}`"


def _unlike(
    run: Execution, one: Result, other: Result, before: np.ndarray, after: np.ndarray
) -> Iterator[tuple[int, bool]]:
    """The devices on which a result changes and should not, or the other way round, and whether it changes."""
    pairs = zip(block_values(one), block_values(other), one.blocks.indices, strict=True)
    for device, (was, now, index) in enumerate(pairs):
        changes, should = _changes(run, was, now), _changes(run, before[index], after[index])
        by_chance = changes is False and was.dtype.kind in "iub" and was.size < FEW_COUNTS
        if None not in (changes, should) and changes is not should and not by_chance:
            yield device, bool(changes)


def _changes(run: Execution, was: np.ndarray, now: np.ndarray) -> bool | None:
    """Whether a block has changed; None where that may be rounding."""
    if np.array_equal(was, now, equal_nan=was.dtype.kind == "f"):
        return False
    return None if close(now, was, run.case.roundings) else True


def _probed(case: Case) -> list[tuple[str, str, Array]]:
    """The arrays of fractions and of truth values, and of whole numbers that occur again: where none does, such as in a
    list of places, a program may know them without reading them."""
    return [given for given in arrays_given(case) if np.size(given[2].value) and _may_be_others(given[2].value)]


def _may_be_others(value: np.ndarray) -> bool:
    if value.dtype.kind in "ib":
        return 1 < len(np.unique(value)) < value.size
    return value.dtype.kind == "f" and bool(np.ptp(value))


def _on_devices(case: Case) -> Iterator[_Probe]:
    """Of each array its parts on devices, each in turn with other numbers."""
    arrays = _probed(case)
    for argument, name, array in arrays:
        owners: dict[str, list[int]] = {}
        indices = blocks(array.value.shape, array.spec, dict(case.mesh)).indices
        for device, index in enumerate(indices):
            owners.setdefault(str(index), []).append(device)
        every = -(-len(owners) * len(arrays) // MOST_PROBED)
        tried = list(owners.values())[::every]
        for devices in tried:
            others = _with_others(case, argument, array, indices[devices[0]])
            yield _Probe(name, len(owners), len(tried), others, devices)


def _along(case: Case) -> Iterator[_Probe]:
    """The places along short dimensions, each in turn with other numbers."""
    places = [
        (argument, name, array, dimension, place)
        for argument, name, array in _probed(case)
        for dimension, size in enumerate(array.value.shape)
        for place in range(size)
        if 1 < size <= LONGEST_SHORT and array.value.ndim > 1
    ]
    places.sort(key=lambda one: (one[3], len(one[2].value)))  # rows first, those of short arrays before the others
    tried = Counter((name, dimension) for _, name, _, dimension, _ in places[:MOST_ALONG])
    for argument, name, array, dimension, place in places[:MOST_ALONG]:
        part = (*(slice(None),) * dimension, place)
        other = _with_others(case, argument, array, part)
        counts = array.value.shape[dimension], tried[name, dimension]
        yield _Probe(name, *counts, other, dimension=dimension, place=place)


def _with_others(case: Case, argument: str, array: Array, part: Any) -> tuple[Case, Case]:
    """The case with other numbers in a part of one of its arrays, and with others again."""
    values = [array.value.copy(), array.value.copy()]
    for seed, value in enumerate(values):
        value[part] = _other(value[part], array.value, seed)
    one, other = (with_value(case, argument, array, value) for value in values)
    return one, other


def _other(part: np.ndarray, whole: np.ndarray, seed: int) -> np.ndarray:
    """Fractions times numbers near 1, none of which is 1, and then zeros, where what is near its limit is near it no
    more; for a whole number, or a truth value, another one that occurs, for each its own, so that sums change, too."""
    rng = np.random.default_rng(seed)
    if part.dtype.kind == "f":
        times = 1 + rng.choice([-1, 1], part.shape) * rng.uniform(0.1, 0.5, part.shape)
        return np.zeros_like(part) if seed else (part * times).astype(part.dtype)
    there = np.unique(whole)
    return there[(np.searchsorted(there, part) + rng.integers(1, len(there), part.shape)) % len(there)]
