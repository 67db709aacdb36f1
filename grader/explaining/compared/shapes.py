"""How a wrong shape relates to the expected one.

A relation carries none of the case's own lengths, so that it can be compared with those of other cases: only what is
true in every case whose shape is wrong is said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from grader.findings import arrays as kinds
from grader.findings.finding import Finding
from grader.findings.quantities import Quantity

_Shape = tuple[int, ...]


@dataclass(frozen=True)
class Shaped:
    """A shape that was found, and the expected one. `numbers` are those of the case that a length may be off by, such
    as the devices along an axis; `given` the shapes of the arrays that were handed over, by name."""

    found: _Shape
    expected: _Shape
    numbers: Mapping[Quantity, float] = field(default_factory=dict)
    given: Mapping[str, _Shape] = field(default_factory=dict)

    @property
    def factors(self) -> Mapping[Quantity, float]:
        """The numbers by which a length can be off."""
        return {quantity: n for quantity, n in self.numbers.items() if n > 1}


def shape_relations(one: Shaped) -> Iterator[Finding]:
    """How a wrong shape relates to the expected one, the most telling first."""
    found, expected = one.found, one.expected
    if len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        each = [list(_lengths(one, k, *pair)) for k, pair in pairs if pair[0] != pair[1]]
        yield from map(kinds.WrongLengths, itertools.product(*each))
    elif len(found) == len(expected) + 1:
        at = [k for k in range(len(found)) if found[:k] + found[k + 1 :] == expected]
        for dimension in _which(at):
            length = found[at[0]]  # of neighbors any of which may be the one, all lengths are the same
            if length == 1:
                yield kinds.ExtraDimension(dimension, 1)
            yield from (kinds.ExtraDimension(dimension, q) for q, n in one.factors.items() if n == length)
            yield kinds.ExtraDimension(dimension, None)
    elif len(found) == len(expected) - 1:
        at = [k for k in range(len(expected)) if expected[:k] + expected[k + 1 :] == found]
        yield from map(kinds.MissingDimension, _which(at))
    if math.prod(found) == math.prod(expected):
        yield kinds.SameSizeOtherShape(same_elements=False)


def _which(at: Sequence[int]) -> Iterator[int | None]:
    """The dimension that is at one of these places: by its number if there is no other; else, or elsewhere, unnamed."""
    if len(at) == 1:
        yield at[0]
    if at:
        yield None


def _lengths(one: Shaped, k: int, found: int, expected: int) -> Iterator[kinds.WrongLength]:
    """How one wrong length relates to the expected one."""
    yield from (kinds.WrongLength(k, None, q, None) for q, n in one.factors.items() if found == expected * n)
    yield from (kinds.WrongLength(k, None, None, q) for q, n in one.factors.items() if found * n == expected)
    for (times, many), (over, parts) in itertools.permutations(one.factors.items(), 2):
        if found * parts == expected * many:
            yield kinds.WrongLength(k, None, times, over)
    given = ((Quantity("length", name, j), n) for name, shape in one.given.items() for j, n in enumerate(shape))
    numbers = itertools.chain(given, one.numbers.items())
    yield from (kinds.WrongLength(k, quantity, None, None) for quantity, n in numbers if n == found)
