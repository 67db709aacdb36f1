"""How a wrong number relates to the expected one: factors, differences, units."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from grader.findings.finding import Finding
from grader.findings.quantities import Quantity
from grader.findings.relations import OffByQuantity, OnOneSide, TimesExpected, TooLargeBy

SAME_RATIO = 1e-5  # relative: how near a ratio has to be to the one it is taken for
NEAR_WHOLE = 1e-3  # how near a ratio has to be to a whole number
LARGEST_RATIO = 10_000  # that anybody recognizes
LARGEST_TIMES = 16  # a difference is some number, so many times
QUARTERS, LARGEST_PART = 4, 2  # or so many quarters of it, up to so many times
LAST_COUNT = 4  # up to here a difference is one of counting


def is_number(value: Any) -> bool:
    """Whether it is one, and no truth value; of whole numbers one that a float can be."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max
    return isinstance(value, (float, np.integer, np.floating))


def number_relations(found: float, expected: float, sizes: Mapping[Quantity, float]) -> Iterator[Finding]:
    """How a wrong number relates to the expected one; `sizes` may be factors."""
    if not (math.isfinite(found) and math.isfinite(expected)):
        return
    if expected and found:
        yield from _factors(found, expected, sizes)
    off = found - expected
    if off == round(off) and 0 < abs(off) <= LAST_COUNT:
        yield TooLargeBy(off, None)
    for quantity, n in sizes.items():
        times = round(QUARTERS * off / n) / QUARTERS if n and math.isfinite(n) else 0.0
        few = abs(times) <= (LARGEST_TIMES if times.is_integer() else LARGEST_PART)
        if times and few and is_ratio(off, times * n):
            yield TooLargeBy(times, quantity)
    if not is_ratio(found, expected):
        yield OnOneSide("large" if found > expected else "small")


def _factors(found: float, expected: float, sizes: Mapping[Quantity, float]) -> Iterator[Finding]:
    for quantity, n in sizes.items():
        if n not in (0, 1) and abs(expected) != 1 and is_ratio(found, expected * n):  # n times 1 is n itself
            yield OffByQuantity(quantity, divided=False)
        if n > 1 and is_ratio(found * n, expected):
            yield OffByQuantity(quantity, divided=True)
    ratio = found / expected
    if abs(ratio) < LARGEST_RATIO and (is_ratio(ratio, few := float(f"{ratio:.3g}")) or _is_whole(ratio)):
        yield TimesExpected(few if is_ratio(ratio, few) else round(ratio))
    elif abs(1 / ratio) < LARGEST_RATIO and _is_whole(1 / ratio):
        yield TimesExpected(1 / round(1 / ratio))


def sizes_in(given: Mapping[str, Any]) -> Iterator[tuple[Quantity, float]]:
    """Numbers that a function was given: as such, sizes of a mesh, values of a dict, lengths of lists."""
    for name, value in given.items():
        sizes = getattr(value, "sizes", value)
        if isinstance(value, str):
            along = (getattr(mesh, "sizes", mesh) for mesh in given.values())
            yield from ((Quantity("devices along", name), float(m[value])) for m in along if _is_mesh(m) and value in m)
        if is_number(value):
            yield Quantity("argument", name), float(value)
        elif _is_mesh(sizes) and sizes is value and not re.search("mesh|axis|axes", name):
            yield Quantity("product", name), float(math.prod(sizes.values()))
            yield from ((Quantity("argument", f"{name}[{key!r}]"), float(size)) for key, size in sizes.items())
        elif _is_mesh(sizes):
            yield Quantity("all devices"), float(math.prod(sizes.values()))
            yield from ((Quantity("devices along", str(axis)), float(size)) for axis, size in sizes.items())
    for name, value in given.items():
        if isinstance(value, (list, tuple)) and value and not _is_mesh(getattr(value, "sizes", value)):
            yield Quantity("items", name), float(len(value))


def _is_mesh(sizes: Any) -> bool:
    """Whether these may be the sizes of axes: numbers by name."""
    return isinstance(sizes, Mapping) and len(sizes) > 0 and all(map(is_number, sizes.values()))


def _is_whole(ratio: float) -> bool:
    """Whether it is a whole number, which it is not by chance: every large number is near to one."""
    return is_ratio(ratio, round(ratio)) and abs(ratio - round(ratio)) < NEAR_WHOLE


def is_ratio(one: float, other: float) -> bool:
    """Whether two numbers are the same, except for rounding."""
    return math.isclose(one, other, rel_tol=SAME_RATIO)
