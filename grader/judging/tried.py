"""What a plain function made of a case: what the facts about its wrong answers are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ENOUGH_CASES = 3  # in which to answer the same is no chance


@dataclass(frozen=True, eq=False)
class Tried:
    """What a function returned in one case, what is due, and what it was given."""

    found: Any
    due: Any
    given: Mapping[str, Any]
    right: bool = False
