"""By which factor a wrong result is too large or too small, and which number that follows from one mesh to another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from grader.arrays.numbers import close, tolerance
from grader.judging.compared import ENOUGH, Compared
from grader.judging.proportions import EXACT, as_factor

SEEN_OFF = 10  # times the tolerance: how far off a number has to be to say by what factor
SMALL_FACTOR = 2.5  # up to here a factor is the length of something by chance
OFF_WHOLE = 0.01  # off a whole number: every large number is near to one
FOLLOWS = ": that is "  # and what a ratio follows from one mesh to another
SUM_OR_MEAN = "Is a sum taken where a mean is due, or the other way round?"
_TOO_LARGE = "Was something added up once too often, or a division left out?"
_TOO_SMALL = "Was something divided once too often, or a mean taken where a sum was due?"
POWERS = (  # of a number by which a result is too large
    (1, _TOO_LARGE),
    (2, _TOO_LARGE),
    (-1, _TOO_SMALL),
    (-2, _TOO_SMALL),
    (0.5, "Is it multiplied by a root that is not asked for, or a division left out?"),
    (-0.5, "Is it divided by a root that is not asked for, or a factor left out?"),
)


def off_by(seen: Compared, elsewhere: Compared | None, of_few: bool = False) -> str:
    """Every entry is the same number of times too large. Of axes it speaks when the number follows them.

    A single number is some number of times what is due, whatever it is: that is said only where it is asked for.
    """
    if elsewhere is None:
        alone = _factor(seen)
        return _ratio_on_one_mesh(alone, seen.mesh) if alone is not None else ""
    factor, other = _factor(seen, 1), _factor(elsewhere, 1)
    if factor is None or other is None:
        return ""
    if not (of_few or _factor(seen) or (_is_whole(factor) and _is_whole(other))):
        return ""
    for words, size in _sizes(seen, elsewhere):
        for power, kind in POWERS:
            if _is(factor, size(seen) ** power) and _is(other, size(elsewhere) ** power):
                square = {2: "the square of ", 0.5: "the root of "}.get(abs(power), "")
                return (
                    f"Every entry is {as_factor(factor)} on {seen.on}, and {as_factor(other)} on {elsewhere.on}"
                    f"{FOLLOWS}{square}{words}. {SUM_OR_MEAN if words in seen.lengths and abs(power) >= 1 else kind}"
                )
    for words, length in _lengths_on_one(seen, elsewhere):
        for power in (1, -1):
            if _is(factor, length(seen) ** power) and _is(other, length(elsewhere) ** power):
                return (
                    f"Every entry is {as_factor(factor)} on {seen.on}, and {as_factor(other)} on {elsewhere.on}"
                    f"{FOLLOWS}{words}. {SUM_OR_MEAN}"
                )
    if _is(factor, other):
        both = f"Every entry is {as_factor(factor)}, here on {seen.on} and in a case on {elsewhere.on}"
        if words := _length_of(factor, seen, elsewhere):
            return f"{both}. That is {words}. {SUM_OR_MEAN}"
        asked = "What is taken from what?" if _is(factor, -1) else "Which factor was left out, or taken twice?"
        return f"{both}. {asked}"
    if _is_place(seen) or _is_place(elsewhere):
        return ""
    return f"Every entry is {as_factor(factor)} on {seen.on}, and {as_factor(other)} on {elsewhere.on}. Why that many?"


def opposite(one: tuple[Compared, Compared | None], other: tuple[Compared, Compared | None]) -> bool:
    """Whether one array is as many times too large as another is too small, on every mesh that is tried."""
    factors = [(_factor(*pair) for pair in ((a, 1), (b, 1))) for a, b in zip(one, other, strict=True) if a and b]
    return all(f is not None and g is not None and _is(f * g, 1) for f, g in factors)


def _length_of(factor: float, *cases: Compared) -> str:
    """A length that is in all cases the factor, or what is divided by it; of an argument rather than of its parts."""
    size = max(factor, 1 / factor)
    told = [
        words
        for words in cases[0].lengths
        if size > SMALL_FACTOR and all(_is(size, case.lengths.get(words, 1)) for case in cases)
    ]
    return min(told, key=lambda words: "[" in words, default="")


def _is_place(seen: Compared) -> bool:
    """Whether it is a single whole number, such as the place of something: of such a ratio says nothing."""
    return seen.expected[0].size == 1 and seen.expected[0].dtype.kind in "iu"


def _ratio_on_one_mesh(factor: float, mesh: Mapping[str, int]) -> str:
    if _is(factor, -1):
        return "Every entry has the wrong sign."
    names = [name for name, size in mesh.items() if size > 1 and (_is(factor, size) or _is(factor, 1 / size))]
    along = f" Along {names[0]} there are {mesh[names[0]]} devices: is it that?" if names else ""
    return f"Every entry is {as_factor(factor)}.{along or ' Which factor was left out, or taken twice?'}"


def _sizes(*cases: Compared) -> list[tuple[str, Callable[[Compared], int]]]:
    """Numbers that differ from case to case: of devices, those given, one times the other, and the lengths of arrays;
    the number of all devices, which may not differ, comes last."""
    names = [name for name in cases[0].mesh if len({case.mesh.get(name) for case in cases}) > 1]
    counts = [name for name in cases[0].counts if len({case.counts.get(name) for case in cases}) > 1]
    along = [(f"the number of devices along {name}", lambda case, name=name: case.mesh[name]) for name in names]
    given = [(f"`{name}`", lambda case, name=name: case.counts[name]) for name in counts]
    lengths = [words for words in cases[0].lengths if len({case.lengths.get(words) for case in cases}) > 1]
    long = [(words, lambda case, words=words: case.lengths[words]) for words in lengths]
    both = [
        (f"{count} times {words}", lambda case, one=one, other=other: one(case) * other(case))
        for (words, one), (count, other) in itertools.product(along, given)
    ]
    return [*along, *given, *both, *long, ("the number of all devices", lambda case: math.prod(case.mesh.values()))]


def _lengths_on_one(*cases: Compared) -> Iterator[tuple[str, Callable[[Compared], float]]]:
    """The lengths of arrays' dimensions that devices along an axis share, where they differ from case to case."""
    along = [axis for axis in cases[0].mesh if not _is_a_length(axis, cases)]
    for words, axis in itertools.product(cases[0].lengths, along):
        if words.startswith("the length"):

            def share(case: Compared, words: str = words, axis: str = axis) -> float:
                return case.lengths.get(words, 0) / case.mesh.get(axis, 1)

            if len({share(case) for case in cases}) > 1 and all(share(case) >= 1 for case in cases):
                yield f"{words}, divided by the number of devices along {axis}", share
    for words, name in itertools.product(cases[0].lengths, cases[0].counts):
        if words.startswith("the length") and words.endswith("on a device"):

            def part(case: Compared, words: str = words, name: str = name) -> float:
                return case.lengths.get(words, 0) / max(case.counts.get(name, 1), 1)

            if len({part(case) for case in cases}) > 1 and all(part(case) >= 1 for case in cases):
                yield f"{words}, divided by `{name}`", part


def _is_a_length(axis: str, cases: Sequence[Compared]) -> bool:
    """Whether an array is always as long as there are devices along an axis: then it may be either."""
    return any(
        words.startswith("the length") and all(case.lengths.get(words) == case.mesh.get(axis) for case in cases)
        for words in cases[0].lengths
    )


def _is_whole(factor: float) -> bool:
    """Whether it is a whole number, or one divided by one: of a single entry no other says anything."""
    larger = max(abs(factor), 1 / abs(factor))
    return _is(larger, round(larger)) and abs(larger - round(larger)) < OFF_WHOLE


def _factor(seen: Compared, enough: int = ENOUGH) -> float | None:
    """By what every entry is multiplied; None where that differs, or is nothing, or there are not enough to tell."""
    pairs = zip(seen.blocks, seen.expected, strict=True)
    if any(b.shape != e.shape or b.dtype.kind not in "fiu" for b, e in pairs):
        return None
    blocks, expected = (np.concatenate([np.ravel(x) for x in side]) for side in (seen.blocks, seen.expected))
    blocks, expected = blocks.astype(np.float64), expected.astype(np.float64)
    size = expected @ expected
    if not np.isfinite(blocks).all() or len(np.unique(np.abs(expected[expected != 0]))) < enough:
        return None
    factor = float(blocks @ expected / size)
    off = [(np.abs((factor - 1) * np.ravel(e)), SEEN_OFF * tolerance(e)) for e in seen.expected]
    if len(np.unique(np.concatenate([by[by > least] for by, least in off]))) < enough:  # else any factor is near enough
        return None
    exact = all(close(b, e * factor) for b, e in zip(seen.blocks, seen.expected, strict=True))
    return factor if exact and factor and not _is(factor, 1) else None


def _is(factor: float, size: float) -> bool:
    return abs(factor / size - 1) < EXACT
