"""What a wrong number is of the blocks of an argument: the largest of their means, say.

Held against every case that is tried, so that it is no chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from grader.arrays.blocks import blocks
from grader.arrays.laid import Array
from grader.arrays.numbers import close
from grader.exercises.case import Case
from grader.judging.behaviour import Execution, block_values

_Reduce = Callable[..., Any]
SINGLE: dict[str, _Reduce] = {
    "sum": np.sum,
    "mean": np.mean,
    "largest": np.max,
    "smallest": np.min,
    "median": np.median,
}
PLURAL = {
    "sum": "sums",
    "mean": "means",
    "largest": "largest entries",
    "smallest": "smallest entries",
    "median": "medians",
}


def of_blocks(runs: Sequence[Execution]) -> str:
    """Of which numbers of the blocks of an argument a single number is made, in all of these runs; "" if of none."""
    if any(len(run.results) != 1 or block_values(run.results[0])[0].ndim for run in runs):
        return ""
    for name in (name for name, a in runs[0].case.arguments.items() if _is_float(a)):
        parts = [_blocks(run.case, name) for run in runs]
        if any(len(some) < 2 for some in parts):
            continue
        for over, inside in itertools.product(SINGLE, SINGLE):
            if all(_is(run, some, SINGLE[over], SINGLE[inside]) for run, some in zip(runs, parts, strict=True)):
                return f"It is the {over} of the {PLURAL[inside]} of the blocks of `{name}`. Is that what is due?"
    return ""


def _is_float(given: object) -> bool:
    return isinstance(given, Array) and given.value.dtype.kind == "f" and given.value.ndim > 0


def _blocks(case: Case, name: str) -> list[np.ndarray]:
    """The different blocks in which an argument is laid out."""
    arguments: Mapping[str, Array] = case.arguments
    indices = blocks(arguments[name].value.shape, arguments[name].spec, dict(case.mesh)).indices
    return [arguments[name].value[index] for index in {str(index): index for index in indices}.values()]


def _is(run: Execution, parts: Sequence[np.ndarray], over: _Reduce, inside: _Reduce) -> bool:
    """Whether every device holds this number."""
    number = np.asarray(over([inside(part) for part in parts]), np.float32)
    return all(close(block, number, run.case.roundings) for block in block_values(run.results[0]))
