"""Numbers that are close, and values that are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

ROUNDINGS = 320  # enough for sums of a few hundred terms


def close(found: Any, expected: Any, roundings: int = ROUNDINGS) -> bool:
    """Equal up to rounding: `roundings` of them, one after the other, relative to the largest entry expected.

    A sum of n terms is off by at most n·u times the sum of their magnitudes, to first order, in whatever order they
    are added; u is half the distance from 1 to the next number, 2⁻²⁴ in float32 (Higham, Accuracy and Stability of
    Numerical Algorithms, 2nd ed., §4.2). The largest entry stands for that sum of magnitudes.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if found.dtype.kind in "OUSM":
        return False
    return bool(close_entries(found, expected, roundings).all())


def close_entries(found: np.ndarray, expected: np.ndarray, roundings: int = ROUNDINGS) -> np.ndarray:
    """Which entries of an array are close, by the measure of all of it."""
    if expected.dtype.kind not in "fc":
        return np.asarray(found == expected)
    return np.asarray(np.isclose(found, expected, rtol=0, atol=tolerance(expected, roundings)))


def tolerance(expected: np.ndarray, roundings: int = ROUNDINGS) -> float:
    """How far an entry may be from the one expected (see `close`). Devices compute in float32, whatever is expected."""
    finite = np.abs(expected[np.isfinite(expected)])
    return roundings * float(np.finfo(np.float32).eps) / 2 * max(float(np.max(finite, initial=0.0)), 1e-30)


def same_numbers(one: np.ndarray, other: np.ndarray, roundings: int = ROUNDINGS) -> bool:
    """Close, and infinite or no number in the same places: a wrong program may overflow, or divide 0 by 0."""
    if one.shape != other.shape:
        return False
    odd = ~np.isfinite(other)
    alike = np.array_equal(one[odd], other[odd], equal_nan=True)
    return alike and close(np.where(odd, 0, one), np.where(odd, 0, other), roundings)


def same_value(found: Any, expected: Any) -> bool:
    """Equality of plain values: containers item by item, a list, a tuple and an array of numbers being alike."""
    if isinstance(expected, (list, tuple)) and isinstance(found, np.ndarray):
        found = found.tolist()
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and found.keys() == expected.keys()
            and all(same_value(found[k], expected[k]) for k in expected)
        )
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(found, (list, tuple)) and len(found) == len(expected) and all(map(same_value, found, expected))
        )
    if expected is None or found is None or isinstance(expected, str) or isinstance(found, str):
        return type(found) is type(expected) and found == expected
    if isinstance(found, (dict, list, tuple)):
        return False
    return close(found, expected)
