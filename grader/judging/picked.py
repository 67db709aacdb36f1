"""Where rows of an argument are to be picked: whether a wrong result is made of such rows, and how far off they are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from grader.arrays.laid import Array
from grader.judging.behaviour import Execution, block_values
from grader.judging.results import Expected

FEWEST_ROWS = 4  # different ones: fewer are there by chance


def wrong_rows(run: Execution, due: Expected) -> str:
    """That every row of a single array is a row of an argument, but not the one that is due; "" where it is not so."""
    if len(run.results) != 1 or len(due) != 1:
        return ""
    (result,), (whole,) = run.results, due.values()
    if result.blocks.shape != whole.shape or whole.ndim < 2:
        return ""
    pairs = [
        (block.reshape(-1, block.shape[-1]), whole[index].reshape(-1, block.shape[-1]), index[-1])
        for block, index in zip(block_values(result), result.blocks.indices, strict=True)
    ]
    for name, array in run.case.arguments.items():
        if not isinstance(array, Array) or array.value.ndim != 2 or array.value.shape[1] != whole.shape[-1]:
            continue
        numbers = [
            (_numbers(found, known), _numbers(right, known))
            for found, right, columns in pairs
            for known in [_known(array.value[:, columns])]
        ]
        found, right = (np.concatenate(side) for side in zip(*numbers, strict=True))
        if words := _words(name, found, right, in_parts=any(block.shape[-1] < whole.shape[-1] for block, *_ in pairs)):
            return words
    return ""


def _known(table: np.ndarray) -> Mapping[bytes, int]:
    """The number of each row that occurs once; -1 stands for one of zeros."""
    rows = [(row.astype(np.float32) + 0).tobytes() for row in table]
    return {row: k for k, row in enumerate(rows) if rows.count(row) == 1} | {np.zeros_like(table[0]).tobytes(): -1}


def _numbers(rows: np.ndarray, known: Mapping[bytes, int]) -> np.ndarray:
    """The numbers of rows; -2 for those that are not known."""
    return np.array([known.get((row.astype(np.float32) + 0).tobytes(), -2) for row in rows])


def _words(name: str, found: np.ndarray, due: np.ndarray, in_parts: bool) -> str:
    """What is said of rows, or of the parts of rows that devices have."""
    if (
        (due < 0).any()
        or (found == -2).any()
        or len(np.unique(due)) < FEWEST_ROWS
        or len(np.unique(found)) < FEWEST_ROWS
    ):
        return ""
    wrong = found != due
    zeros = " or nothing but zeros" if (found == -1).any() else ""
    told = (
        f"On each device, every part of a row is that of a row of `{name}`{zeros}, but not always of the one due."
        if in_parts
        else f"Every row of it (along the last dimension) is a row of `{name}`{zeros}, but not always the one due."
    )
    off = np.unique((found - due)[wrong & (found >= 0)])
    if len(off) == 1:
        which = "Where it is another one" if zeros else "Where it is not"
        where = "behind" if off[0] > 0 else "before"
        return f"{told} {which}, it is {abs(int(off[0]))} {where} that one. From where do you count?"
    return f"{told} What says which row is picked?"
