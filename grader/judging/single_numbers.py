"""What a wrong number has to do with the one that is due: factors, differences, units."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from grader.arrays.words import number

SAME_RATIO = 1e-5  # relative: how near a ratio has to be to the one it is taken for
AS_WRITTEN = 1e-7  # relative: how near to it float32 keeps a number
NEAR_WHOLE = 1e-3  # how near a ratio has to be to a whole number
ROUNDED = 5e-3  # relative: how near, where somebody has written three digits
LARGEST_RATIO = 10_000  # that anybody recognizes
LARGEST_TIMES = 16  # a difference is some number, so many times
QUARTERS, LARGEST_PART = 4, 2  # or so many quarters of it, up to so many times
LAST_COUNT = 4  # up to here a difference is one of counting
UNITS = (100, 1000, 1024, 10**6, 2**20, 10**9, 2**30)  # percent, kilo, kibi, mega, mebi, giga, gibi
TOO_LARGE, TOO_SMALL = "It is too large.", "It is too small."
TIMES_DUE = " times what is due."
BY_1024 = (1.024, 1.024**2, 1.024**3)  # kibi for kilo, mebi for mega, gibi for giga
SAME_BYTES = 1e-4  # relative: how near a ratio has to be to one of these
FEWER_DIGITS = {2: "two", 3: "three", 4: "four"}
ASKED_OF_SQUARES = "Is it a factor where it should be a divisor, or the other way round?"
ASKED_OF_SHARES = "What belongs to the share, and what to the rest?"


def is_number(value: Any) -> bool:
    """Whether it is one, and no truth value; of whole numbers one that a float can be."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= sys.float_info.max
    return isinstance(value, (float, np.integer, np.floating))


def of_two_numbers(found: float, due: float, sizes: Mapping[str, float]) -> Iterator[str]:
    """Sentences on a number where another is due; `sizes` may be factors, by what they are called."""
    if not (math.isfinite(found) and math.isfinite(due)):
        return
    if due and found:
        if is_ratio(found, -due):
            yield "It has the wrong sign."
        for words, n in sizes.items():
            yield from _by_factor(found, due, words, n)
        for words, n in sizes.items():
            yield from (f"{said} {ASKED_OF_SQUARES}" for said in _by_factor(found, due, f"the square of {words}", n**2))
        yield from (
            f"It is {words}, divided by what is due."
            for words, n in sizes.items()
            if n > 1 and is_ratio(found * due, n)
        )
        if is_ratio(found * due, 1):
            yield "It is 1 divided by what is due."
        ratio = found / due
        if any(math.isclose(ratio * times, 1, rel_tol=ROUNDED) for unit in UNITS for times in (unit, 1 / unit)):
            if any(is_ratio(ratio * times, 1) for unit in UNITS for times in (unit, 1 / unit)):
                yield "It is off by a factor such as there is between two units. Which one is asked for?"
            yield "It is off by nearly a factor such as there is between two units. Which one is asked for?"
        if any(math.isclose(ratio * times, 1, rel_tol=SAME_BYTES) for unit in BY_1024 for times in (unit, 1 / unit)):
            yield "It is off by a factor such as there is between MB and MiB. Which are asked for?"
        if abs(ratio) < LARGEST_RATIO and (is_ratio(ratio, float(f"{ratio:.3g}")) or _is_whole(ratio)):
            yield f"It is {number(ratio)}{TIMES_DUE}"
        elif abs(1 / ratio) < LARGEST_RATIO and _is_whole(1 / ratio):
            yield f"It is 1/{number(1 / ratio)} of what is due."
    if 0 < found < 1 and 0 < due < 1 and (ratio_words := _small_ratio(found / (1 - found), due / (1 - due))):
        yield f"As a share against the rest, x / (1 − x), it is {ratio_words} what is due. {ASKED_OF_SHARES}"
    if found - due == round(found - due) and 0 < abs(found - due) <= LAST_COUNT:
        yield f"It is {number(abs(found - due))} too {'large' if found > due else 'small'}."
    for words, n in sizes.items():
        times = round(QUARTERS * (found - due) / n) / QUARTERS if n else 0.0
        few = abs(times) <= (LARGEST_TIMES if times.is_integer() else LARGEST_PART)
        if times and few and is_ratio(found - due, times * n):
            much = "" if abs(times) == 1 else f"{number(abs(times))} × "
            yield f"It is {much}{words} too {'much' if times > 0 else 'little'}."
    if found and found in (math.floor(due), math.ceil(due)) and not is_ratio(due, round(due)):
        yield "What is due is no whole number, and this is the next one to it. Has it been rounded?"
    yield from _with_fewer_digits(found, due)
    if not is_ratio(found, due):
        yield TOO_LARGE if found > due else TOO_SMALL


def _with_fewer_digits(found: float, due: float) -> Iterator[str]:
    """That a number is the one that is due but for the digits behind some place."""
    for digits, named in FEWER_DIGITS.items():
        rounded, cut = round(due, digits), math.trunc(due * 10**digits) / 10**digits
        if found and any(_is_written(found, value) and not is_ratio(due, value) for value in (rounded, cut)):
            yield f"It is what is due, but with no more than {named} digits behind the point. Where do the others go?"


def _is_written(number: float, digits: float) -> bool:
    """Whether a number is one that was written with few digits, but for what float32 leaves of it."""
    return math.isclose(number, digits, rel_tol=AS_WRITTEN)


def _small_ratio(one: float, other: float) -> str:
    """How one number stands to another where that is by a small whole factor: `2 times` or `1/2 of`."""
    for times in range(2, LAST_COUNT + 1):
        if is_ratio(one, times * other):
            return f"{times} times"
        if is_ratio(one * times, other):
            return f"1/{times} of"
    return ""


def _by_factor(found: float, due: float, words: str, n: float) -> Iterator[str]:
    if n not in (0, 1) and is_ratio(found, due * n):
        if n > 1 and due > 0:  # what is below 0 gets smaller
            yield f"It is {words} times too large."
        yield f"It is {words} times what is due."
    if n > 1 and is_ratio(found * n, due):
        yield f"It is what is due, divided by {words}."


def sizes_in(given: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Numbers that a function was given, in words: themselves, the sizes of a mesh, what a dict has under its keys, how
    many entries a list has."""
    for name, value in given.items():
        sizes = getattr(value, "sizes", value)
        if isinstance(value, str):
            along = (getattr(mesh, "sizes", mesh) for mesh in given.values())
            yield from ((f"the size of `{name}`", float(one[value])) for one in along if _is_mesh(one) and value in one)
        if is_number(value):
            yield f"`{name}`", float(value)
        elif _is_mesh(sizes) and sizes is value and not re.search("mesh|axis|axes", name):
            yield f"the product of all numbers in `{name}`", float(math.prod(sizes.values()))
            yield from ((f"`{name}[{key!r}]`", float(size)) for key, size in sizes.items())
        elif _is_mesh(sizes):
            yield "the number of all devices", float(math.prod(sizes.values()))
            yield from ((f"the size of {axis}", float(size)) for axis, size in sizes.items())
    for name, value in given.items():
        if isinstance(value, (list, tuple)) and value and not _is_mesh(getattr(value, "sizes", value)):
            yield f"the number of `{name}`", float(len(value))


def _is_mesh(sizes: Any) -> bool:
    """Whether these may be the sizes of axes: numbers by name."""
    return isinstance(sizes, Mapping) and len(sizes) > 0 and all(map(is_number, sizes.values()))


def _is_whole(ratio: float) -> bool:
    """Whether it is a whole number, which it is not by chance: every large number is near to one."""
    return is_ratio(ratio, round(ratio)) and abs(ratio - round(ratio)) < NEAR_WHOLE


def is_ratio(one: float, other: float) -> bool:
    """Whether two numbers are the same, but for rounding."""
    return math.isclose(one, other, rel_tol=SAME_RATIO)
