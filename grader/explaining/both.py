"""Two mistakes at once: each shows in other parts of the answers, and together they explain all that is wrong.

A part is one array of a program's result, one entry of what a function returned, or the whole of it; of every case.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shown:
    """Where a mistake shows in an answer: the parts that are wrong as the mistake makes them, by case and number."""

    name: str
    parts: frozenset[tuple[int, int]]


def shown_in(
    answer: Sequence[Any], wrong: Sequence[Any], right: Sequence[bool], same: Callable[[Any, Any], bool]
) -> frozenset[int] | None:
    """The parts of an answer to a case that are wrong as a mistake makes them; `right` says which of those are not.

    None where the mistake does not show although it should: it makes a part wrong that is not so in the answer.
    """
    if not len(answer) == len(wrong) == len(right):
        return None
    spoilt = [k for k, well in enumerate(right) if not well]
    return frozenset(spoilt) if all(same(answer[k], wrong[k]) for k in spoilt) else None


def pair_that_explains(shown: Iterable[Shown], wrong: frozenset[tuple[int, int]]) -> tuple[str, str] | None:
    """The first two mistakes that show in all wrong parts together, each in one in which the other does not."""
    telling = [one for one in shown if one.parts]
    for one, other in itertools.combinations(telling, 2):
        if one.parts | other.parts == wrong and one.parts - other.parts and other.parts - one.parts:
            return one.name, other.name
    return None
