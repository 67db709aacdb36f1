"""What a plain function made of a case: the facts that evidence about its wrong answers is drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.explaining.compared.single_numbers import is_number

SMALL = 20  # up to here a number is a count: two are the same by chance


@dataclass(frozen=True, eq=False)
class Tried:
    """What a function returned in one case, what is expected, what it was given, and whether it is right."""

    found: Any
    expected: Any
    given: Mapping[str, Any]
    right: bool = False

    @property
    def error_expected(self) -> bool:
        return isinstance(self.expected, Exception)


def is_small(value: Any) -> bool:
    """Whether it is a truth value, or a number such as two may be by chance."""
    return isinstance(value, bool) or (is_number(value) and abs(value) <= SMALL and float(value).is_integer())
