"""How wrong numbers stand to those that are due and to what was given: by a factor of each row, or beside an argument.

Said of what was found in one case; each of it is computed from the numbers, and enough of them to be no chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grader.arrays.numbers import ROUNDINGS, close
from grader.arrays.words import number

EXACT = 1e-4  # relative: how near a factor has to be to the one it is taken for
DECIMALS = 3  # of the share of an argument that a running mean keeps
NEARLY = 1.01  # times: up to here three decimals do not tell a factor from 1
MANY_NUMBERS = 6  # different numbers: a few come out by chance

_Side = Sequence[np.ndarray]


def beside_what_was_given(found: _Side, due: _Side, given: Mapping[str, _Side], roundings: int = ROUNDINGS) -> str:
    """That a result is right but for an argument, which it lacks or has once too often; or that what it has beside an
    argument is off by one factor. `given` are arguments, in the same blocks."""
    one, other = (np.concatenate([np.ravel(block) for block in side]).astype(np.float64) for side in (found, due))
    if len(np.unique(other)) < MANY_NUMBERS or not np.isfinite(one).all() or not np.isfinite(other).all():
        return ""
    for name, blocks in given.items():
        argument = np.concatenate([np.ravel(block) for block in blocks]).astype(np.float64)
        if (
            len(np.unique(argument)) < MANY_NUMBERS
            or close(one, argument, roundings)
            or close(other, argument, roundings)
        ):
            continue
        if close(one + argument, other, roundings):
            return f"Every number would be right with `{name}` added to it. Where does that come in?"
        if close(one - argument, other, roundings):
            return f"Every number would be right without `{name}`, which has been added once too often."
        if words := _of_what_is_besides(name, one, other, argument, roundings):
            return words
    return ""


def _of_what_is_besides(name: str, found: np.ndarray, due: np.ndarray, argument: np.ndarray, roundings: int) -> str:
    """That what comes to an argument, or to a part of it as in a running mean, is off by one factor."""
    (kept, factor), *_ = np.linalg.lstsq(np.stack([argument, due], axis=1), found, rcond=None)
    if abs(factor - 1) < EXACT or not close(kept * argument + factor * due, found, roundings):
        return ""
    share = kept / (1 - factor)  # found is share × argument + factor × (due − share × argument)
    if abs(share - round(share, DECIMALS)) > EXACT or not 0 < round(share, DECIMALS) <= 1:
        return ""
    much = f"`{name}`" if abs(share - 1) < EXACT else f"{number(round(share, DECIMALS))} × `{name}`"
    if abs(factor) < EXACT:
        return f"It is {much}, and nothing besides. What should come to that?"
    return f"It is {much} and something besides; and of that, every number is {as_factor(float(factor))}."


def by_rows(found: _Side, due: _Side, roundings: int = ROUNDINGS) -> str:
    """That all numbers of a row are off by one factor, and those of other rows by others."""
    if any(
        block.shape != whole.shape or block.ndim < 2 or block.dtype.kind != "f"
        for block, whole in zip(found, due, strict=True)
    ):
        return ""
    one, other = (
        np.concatenate([b.reshape(-1, b.shape[-1]) for b in side]).astype(np.float64) for side in (found, due)
    )
    if not np.isfinite(one).all() or not np.isfinite(other).all():
        return ""
    told = (np.count_nonzero(other, axis=1) > 1) & (np.count_nonzero(one, axis=1) > 1)
    factors = (one * other).sum(axis=1)[told] / (other * other).sum(axis=1)[told]
    rest = close(one[~told], other[~told], roundings)
    if len(factors) < MANY_NUMBERS or not rest or not close(factors[:, None] * other[told], one[told], roundings):
        return ""
    wrong = factors[np.abs(factors - 1) > EXACT]
    if len(np.unique(np.round(wrong, 3))) < 2:
        return ""
    return (
        "In a row, along the last dimension, all numbers are off by one factor, and in other rows by another (from "
        f"{number(float(factors.min()), 3)} to {number(float(factors.max()), 3)}). By what is a row to be divided, or "
        "multiplied?"
    )


def as_factor(factor: float) -> str:
    """How numbers are that are so many times what is due."""
    if abs(factor + 1) < EXACT:
        return "of the wrong sign"
    if abs(factor) >= 1:
        return f"{number(round(factor, 3)) if abs(factor) > NEARLY else number(factor)} times too large"
    inverse = 1 / factor if factor else np.inf
    whole = np.isfinite(inverse) and abs(inverse / round(inverse) - 1) < EXACT
    return f"{f'1/{number(round(inverse))}' if whole else number(factor, 3)} of what it should be"
