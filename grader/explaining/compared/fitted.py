"""The factor by which all elements of a wrong array are off.

A factor explains whatever is near zero. So it is a finding only if enough elements are large beside the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from grader.arrays.numbers import close, tolerance
from grader.explaining.compared.compared import ENOUGH, Compared, devices_along, flat
from grader.findings.arrays import FactorIs, OffByFactor
from grader.findings.finding import Finding
from grader.findings.quantities import Quantity

_EXACT = 1e-4  # relative: how near a factor has to be to the one it is taken for
_SEEN_OFF = 10  # times the tolerance: how far off an element has to be to say by what factor
SMALL_FACTOR = 2.5  # up to here a factor is some number of the case by chance
OFF_WHOLE = 0.01  # off a whole number: every large number is near to one


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
