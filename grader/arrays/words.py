"""Parts of arrays, numbers and devices as one writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any


def region(bounds: Iterable[tuple[int, int]]) -> str:
    """A part of an array by where it starts and stops in each dimension: [0:4, 2:4]."""
    return f"[{', '.join(f'{start}:{stop}' for start, stop in bounds)}]"


def number(value: Any, digits: int = 6) -> str:
    """A number in so many digits."""
    return f"{value:.{digits}g}"


def numbered(noun: str, numbers: Collection[int | str]) -> str:
    """Things by their numbers: device 3; devices 0, 1."""
    return f"{noun}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
