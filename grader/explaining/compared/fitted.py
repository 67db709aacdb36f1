"""Factors that are fitted to a wrong array: of all elements, of each row, or of what is added to an argument.

A factor explains whatever is near zero, or near another explanation. So each is told only if enough elements are large
compared with the tolerance, and none of what it explains could be explained without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from grader.arrays.numbers import close, close_entries, tolerance
from grader.explaining.compared.compared import ENOUGH, Compared, devices_along, flat
from grader.findings.arrays import FactorIs, OffByFactor
from grader.findings.finding import Finding
from grader.findings.quantities import Quantity

_MANY = 6  # different elements: a few are fitted by chance
_EXACT = 1e-4  # relative: how near a factor has to be to the one it is taken for
VERY_EXACT = 1e-5  # how near a share has to be to the round number it is taken for
DECIMALS = 3  # of the share of an argument that a running mean keeps
SEEN = 100  # times the tolerance: how large elements are of which a factor is told
_SEEN_OFF = 10  # times the tolerance: how far off an element has to be to say by what factor
SMALL_FACTOR = 2.5  # up to here a factor is some number of the case by chance
OFF_WHOLE = 0.01  # off a whole number: every large number is near to one
FREE = 2  # elements of a row that a factor has to explain: to one of them alone it is fitted


def factor_relations(cases: Sequence[Compared]) -> Iterator[Finding]:
    """By what factor all elements are off, and of which number of the cases that is a consequence.

    Of a program such a number is told only if it follows the factor into other cases. Of plain arrays the caller
    compares the cases. A single element is off by some factor whatever it is: by a whole one in two cases, or none.
    """
    factors = [f for case in cases if (f := _factor(case, 1)) is not None]
    several = _factor(cases[0], ENOUGH) is not None
    if len(factors) < len(cases) or not (several or (len(cases) > 1 and all(map(_is_whole, factors)))):
        return
    other = next((factor for factor in factors if not _is(factor, factors[0])), None)
    if len(cases) > 1 or not cases[0].mesh:
        yield from _followed(cases, factors, same=other is None)
    if other is None:
        yield OffByFactor(_rounded(factors[0]), None)
    elif several or cases[0].are_floats:
        yield OffByFactor(_rounded(factors[0]), _rounded(other))


def _followed(cases: Sequence[Compared], factors: Sequence[float], *, same: bool) -> Iterator[Finding]:
    """The numbers of the cases that give the factors, or their inverses: first those that aren't always the same."""
    each = [_numbers(case) for case in cases]
    differing = [q for q in each[0] if len({numbers.get(q) for numbers in each}) > 1]
    large = len(cases) == 1 or max(abs(factors[0]), 1 / abs(factors[0])) > SMALL_FACTOR
    for quantity in dict.fromkeys([*differing, *(each[0] if same and large else ())]):
        values = [numbers.get(quantity, 0) for numbers in each]
        if all(n not in (0, 1) for n in values):
            for too_large in (True, False):
                pairs = zip(factors, values, strict=True)
                if all(_is(factor, n if too_large else 1 / n) for factor, n in pairs):
                    yield FactorIs(quantity, too_large)


def _numbers(case: Compared) -> Mapping[Quantity, float]:
    devices = {Quantity("all devices"): math.prod(case.mesh.values())} if case.mesh else {}
    return {**devices_along(case.mesh), **case.numbers, **devices}


def _factor(seen: Compared, enough: int) -> float | None:
    """By what every element is multiplied; None if that differs, or is 0 or 1, or too few elements tell it."""
    found, expected = flat(seen.found), flat(seen.expected)
    if not np.isfinite(found).all() or len(np.unique(np.abs(expected[expected != 0]))) < enough:
        return None
    factor = float(found @ expected / (expected @ expected))
    off = [(np.abs((factor - 1) * np.ravel(e)), _SEEN_OFF * tolerance(e)) for e in seen.expected]
    if len(np.unique(np.concatenate([by[by > least] for by, least in off]))) < enough:  # else any factor is near enough
        return None
    exact = all(close(f, e * factor) for f, e in seen.pairs)
    return factor if exact and factor and not _is(factor, 1) else None


def _is(factor: float, other: float) -> bool:
    return abs(factor / other - 1) < _EXACT


def _is_whole(factor: float) -> bool:
    """Whether it is a whole number, or one divided by one."""
    larger = max(abs(factor), 1 / abs(factor))
    return _is(larger, round(larger)) and abs(larger - round(larger)) < OFF_WHOLE


def _rounded(factor: float) -> float:
    """In so few digits that the same factor is equal in all cases."""
    return float(f"{factor:.4g}")


def update_off_by_factor(
    found: np.ndarray, expected: np.ndarray, argument: np.ndarray, roundings: int
) -> tuple[float, float] | None:
    """The share of an argument that is in an array, as it should be; and by what factor what is added to it is off."""
    columns = np.stack([argument, expected], axis=1)
    if len(found) < _MANY or not np.isfinite([found, expected, argument]).all() or _are_one_row(columns.T):
        return None  # (of one row times a number it is made in any number of ways)
    (kept, factor), *_ = np.linalg.lstsq(columns, found, rcond=None)
    if abs(factor - 1) < _EXACT or abs(factor) < _EXACT:
        return None
    if not close(kept * argument + factor * expected, found, roundings):
        return None
    # What neither alone explains has to be seen, as has what it is off by; else two factors fit whatever is near both:
    # _MANY elements, of which two are fitted, each come within 1 / SEEN of the rest in one of 10⁸ cases.
    of_argument, of_expected = _each_alone(columns)
    told = [of_argument, of_expected, (factor - 1) * of_expected, factor * of_expected]
    if not all(_are_seen(elements, tolerance(found, roundings)) for elements in told):
        return None
    share = kept / (1 - factor)  # found is share × argument + factor × (expected − share × argument)
    whole = round(float(share), DECIMALS)
    return (whole, _rounded(factor)) if abs(share - whole) <= VERY_EXACT and 0 < whole <= 1 else None


def rows_off_by_factors(seen: Compared) -> bool:
    """Whether the elements of each row of a block are off by one factor, and those of other rows by others."""
    if any(expected.ndim < 2 or not expected.size for expected in seen.expected):
        return False
    if len({expected.shape[-1] for expected in seen.expected}) > 1:
        return False
    one, other = (
        np.concatenate([b.reshape(-1, b.shape[-1]) for b in side]).astype(np.float64)
        for side in (seen.found, seen.expected)
    )
    if not np.isfinite([one, other]).all():
        return False
    least = SEEN * tolerance(other, seen.roundings)  # of smaller elements any factor is near enough
    told = (np.abs(other) > least).sum(axis=1) >= FREE
    if np.count_nonzero(told) < _MANY or not close_entries(one, other, seen.roundings)[~told].all():
        return False
    factors = (one * other).sum(axis=1)[told] / (other * other).sum(axis=1)[told]
    if not close(factors[:, None] * other[told], one[told], seen.roundings):
        return False
    off = (np.abs((factors - 1)[:, None] * other[told]) > least).sum(axis=1)
    if np.maximum(off - 1, 0).sum() < _MANY:  # one element of each row is what its factor is fitted to
        return False
    return len(np.unique(np.round(factors[off >= FREE], 3))) > 1 and not _are_one_row(other[told])


def _are_seen(elements: np.ndarray, least: float) -> bool:
    """Whether many of these are large against what two elements may differ by: only those could have disagreed."""
    return len(np.unique(elements[np.abs(elements) > SEEN * least])) >= _MANY


def _each_alone(columns: np.ndarray) -> list[np.ndarray]:
    """Of each of two columns what the other does not explain."""
    one, other = columns.T
    both = float(one @ other)
    return [one - both / float(other @ other) * other, other - both / float(one @ one) * one]


def _are_one_row(rows: np.ndarray) -> bool:
    """Whether all rows are one and the same, times a number: then so are those of many a wrong array."""
    largest, *others = np.linalg.svd(rows, compute_uv=False)
    return not others or bool(others[0] < _EXACT * largest)
