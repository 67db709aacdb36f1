"""How wrong numbers stand to those that are due and to what was given: by a factor of each row, or beside an argument.

Said of what was found in one case; each of it is computed from the numbers, and enough of them to be no chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grader.arrays.numbers import ROUNDINGS, close, close_entries, tolerance
from grader.arrays.words import enumeration, number

EXACT = 1e-4  # relative: how near a factor has to be to the one it is taken for
VERY_EXACT = 1e-5  # how near a share has to be to the round number it is taken for
DECIMALS = 3  # of the share of an argument that a running mean keeps
NEARLY_ONE = 1.01  # times: up to here three decimals do not tell a factor from 1
SEEN = 100  # times the tolerance: how large numbers are of which a factor is told
MANY_NUMBERS = 6  # different numbers: a few come out by chance
FREE = 2  # numbers of a row that a factor has to explain: to one of them alone it is fitted
MOST_ADDED, MOST_TIMES, PARTS = 4, 4, 4  # arguments that are added up, how often each, and in which parts of it

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
        by_far = _are_seen(argument, tolerance(other, roundings))
        if by_far and close(one + argument, other, roundings):
            return f"Every number would be right with `{name}` added to it. Where does that come in?"
        if by_far and close(one - argument, other, roundings):
            return f"Every number would be right without `{name}`. Is that added too often, or never taken off?"
        if words := _of_what_is_besides(name, one, other, argument, roundings):
            return words
    return ""


def made_of_what_was_given(found: _Side, due: _Side, given: Mapping[str, _Side], roundings: int = ROUNDINGS) -> str:
    """Of which arguments a result is made, number by number, and how often each counts, where they are only added up.
    `given` are arguments, in the same blocks."""
    one, other = (np.concatenate([np.ravel(block) for block in side]).astype(np.float64) for side in (found, due))
    arguments = {name: np.concatenate([np.ravel(b) for b in side]) for name, side in given.items()}
    if not 0 < len(arguments) <= MOST_ADDED or len(np.unique(one)) < MANY_NUMBERS or not np.isfinite(one).all():
        return ""
    if words := _of_one_alone(one, arguments, roundings):
        return words
    columns = np.stack([*arguments.values()], axis=1).astype(np.float64)
    if len(one) < MANY_NUMBERS + len(arguments) or np.linalg.matrix_rank(columns) < len(arguments):
        return ""
    if not all(_are_seen(alone, tolerance(one, roundings)) for alone in _each_alone(columns)):
        return ""
    times, *_ = np.linalg.lstsq(columns, one, rcond=None)
    whole = np.round(PARTS * times) / PARTS
    if (np.abs(times - whole) > EXACT).any() or (np.abs(whole) > MOST_TIMES).any():
        return ""
    if np.count_nonzero(whole) == 0 or not close((columns @ whole).astype(np.float32), one, roundings):
        return ""
    off_by_far = _are_seen(one - other, tolerance(one, roundings))  # else what is due is made of them as well
    if not off_by_far and not np.array_equal((columns @ whole).astype(np.float32), one.astype(np.float32)):
        return ""
    made = _added({name: float(n) for name, n in zip(arguments, whole, strict=True) if n})
    nothing = [f"`{name}`" for name, n in zip(arguments, whole, strict=True) if not n]
    return f"It is {made}, number by number{f', and nothing of {enumeration(nothing)}' if nothing else ''}."


def _of_one_alone(found: np.ndarray, arguments: Mapping[str, np.ndarray], roundings: int) -> str:
    """That a result is an argument and one number more, or its square."""
    for name, numbers in arguments.items():
        argument = numbers.astype(np.float64)
        if len(np.unique(argument)) < MANY_NUMBERS or argument.dtype.kind != "f":
            continue
        more, least = float(np.mean(found - argument)), tolerance(found, roundings)
        differ = _are_seen(argument - argument.mean(), least)  # else any numbers that are alike do
        if abs(more) > max(EXACT, SEEN * least) and differ and close(argument + more, found, roundings):
            return f"It is `{name}` {'+' if more > 0 else '−'} {number(abs(more))}, number by number."
        bent = _each_alone(np.stack([argument * argument, argument, np.ones_like(argument)], axis=1))[0]
        if _are_seen(bent, least) and close(argument * argument, found, roundings):
            return f"It is the square of `{name}`, number by number."
    return ""


def _added(times: Mapping[str, float]) -> str:
    """Arguments that are added up, as a formula."""
    each = [
        f"{'−' if n < 0 else '+'} {'' if abs(n) == 1 else f'{number(abs(n))} × '}`{name}`" for name, n in times.items()
    ]
    return " ".join(each).removeprefix("+ ")


def _of_what_is_besides(name: str, found: np.ndarray, due: np.ndarray, argument: np.ndarray, roundings: int) -> str:
    """That what comes to an argument, or to a part of it as in a running mean, is off by one factor."""
    columns = np.stack([argument, due], axis=1)
    if _are_one_row(columns.T):  # then it is made of them in any number of ways
        return ""
    (kept, factor), *_ = np.linalg.lstsq(columns, found, rcond=None)
    if abs(factor - 1) < EXACT or not close(kept * argument + factor * due, found, roundings):
        return ""
    # What neither alone explains has to be seen, as has what it is off by; else two factors fit whatever is near both:
    # MANY_NUMBERS, of which two are fitted, each come within 1 / SEEN of the rest in one of 10⁸ cases.
    least, (of_argument, of_due) = tolerance(found, roundings), _each_alone(columns)
    told = [of_argument, of_due, (factor - 1) * of_due, *([factor * of_due] if abs(factor) > EXACT else [])]
    if not all(_are_seen(numbers, least) for numbers in told):
        return ""
    if abs(kept - 1) < VERY_EXACT and abs(factor) > EXACT:
        sign, times = "−" if factor < 0 else "+", "" if abs(abs(factor) - 1) < EXACT else f"{number(abs(factor), 3)} × "
        return f"It is `{name}` {sign} {times}what is due, number by number. Is the one to come to the other here?"
    share = kept / (1 - factor)  # found is share × argument + factor × (due − share × argument)
    if abs(share - round(share, DECIMALS)) > VERY_EXACT or not 0 < round(share, DECIMALS) <= 1:
        return ""
    much = f"`{name}`" if abs(share - 1) < EXACT else f"{number(round(share, DECIMALS))} × `{name}`"
    if abs(factor) < EXACT:
        return f"It is {much}, and nothing besides. What should come to that?"
    return f"It is {much} and something besides; and of that, every number is {as_factor(float(factor))}."


def by_rows(found: _Side, due: _Side, row: str = "a row of a device's block", roundings: int = ROUNDINGS) -> str:
    """That all numbers of a row of a block are off by one factor, and those of other rows by others."""
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
    least = SEEN * tolerance(other, roundings)  # of smaller numbers any factor is near enough
    told = (np.abs(other) > least).sum(axis=1) >= FREE
    factors = (one * other).sum(axis=1)[told] / (other * other).sum(axis=1)[told]
    rest = close_entries(one, other, roundings)[~told].all()
    if len(factors) < MANY_NUMBERS or not rest or not close(factors[:, None] * other[told], one[told], roundings):
        return ""
    off = (np.abs((factors - 1)[:, None] * other[told]) > least).sum(axis=1)
    if np.maximum(off - 1, 0).sum() < MANY_NUMBERS:  # one number of each row is what its factor is fitted to
        return ""
    wrong = factors[off >= FREE]
    if len(np.unique(np.round(wrong, 3))) < 2 or _are_one_row(other[told]):
        return ""
    return (
        f"In {row}, along the last dimension, all numbers are off by one factor, and in other such rows by another "
        f"(from {number(float(factors.min()), 3)} to {number(float(factors.max()), 3)}). By what is a row to be "
        "divided, or multiplied?"
    )


def _are_seen(numbers: np.ndarray, least: float) -> bool:
    """Whether many of these are large against what two numbers may differ by: only those could have disagreed."""
    return len(np.unique(numbers[np.abs(numbers) > SEEN * least])) >= MANY_NUMBERS


def _each_alone(columns: np.ndarray) -> list[np.ndarray]:
    """Of each column what the others do not explain."""
    alone = []
    for k in range(columns.shape[1]):
        others = np.delete(columns, k, axis=1)
        alone.append(columns[:, k] - others @ np.linalg.lstsq(others, columns[:, k], rcond=None)[0])
    return alone


def _are_one_row(rows: np.ndarray) -> bool:
    """Whether all rows are one and the same, times a number: then so are those of many a wrong result."""
    largest, *others = np.linalg.svd(rows, compute_uv=False)
    return not others or bool(others[0] < EXACT * largest)


def as_factor(factor: float) -> str:
    """How numbers are that are so many times what is due."""
    if abs(factor + 1) < EXACT:
        return "of the wrong sign"
    if factor >= 1:
        return f"{number(round(factor, 3)) if factor > NEARLY_ONE else number(factor)} times too large"
    if factor <= -1:
        return f"{number(round(factor, 3))} times what it should be"
    inverse = abs(1 / factor) if factor else np.inf
    whole = np.isfinite(inverse) and abs(inverse / round(inverse) - 1) < EXACT
    part = f"{'-' if factor < 0 else ''}1/{number(round(inverse))}" if whole else number(factor, 3)
    return f"{part} of what it should be"
