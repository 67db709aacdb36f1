"""The first place where a plain value differs from the one that is due, in words.

Of a text, such as a script, it is not said what is due: that would be the solution.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.arrays.described import is_observed, where_observed
from grader.arrays.numbers import close_entries, same_value

SHOWN = 200  # characters of a value that are shown
FEW = 12  # entries of an array that are shown
SMALL_VALUE = 100  # characters up to which a value is shown whole
BLANKS = re.compile(r"""(?P<quoted>'[^']*'|"[^"]*")|\s+""")  # those within quotes may be what matters


@dataclass(frozen=True)
class Difference:
    """A part of a value, by the way to it; what it should be; what it is, or what is wrong with it as a whole."""

    where: str
    due: Any
    found: Any
    fault: str = ""

    @property
    def words(self) -> str:
        place = f"entry {self.where}" if self.where else "it"
        if self.fault:
            return f"in {place} {self.fault}" if self.where else self.fault
        if holds_text(self.due):
            return f"{place} is not what is due: yours is {short(self.found)}."
        return f"{place} should be {short(self.due)}; it is {short(self.found)}."


def shown_whole(value: Any, due: Any) -> bool:
    """Whether both are short enough to be seen at a glance, and what is due may be told."""
    whole = not isinstance(due, Mapping) and not holds_text(due)
    texts = {short(value), short(due)}  # one and the same for two large arrays, of which only the type is shown
    return whole and len(texts) == 2 and max(map(len, texts)) <= SMALL_VALUE


def first_difference(found: Any, due: Any, where: str = "") -> Difference | None:
    """None where there is none."""
    if same_value(found, due):
        return None
    if where and shown_whole(found, due):
        return Difference(where, due, found)
    if isinstance(due, Mapping) and isinstance(found, Mapping):
        return _in_mappings(found, due, where)
    if isinstance(due, (list, tuple)) and isinstance(found, (list, tuple)):
        return _in_sequences(found, due, where)
    if isinstance(due, np.ndarray) and isinstance(found, np.ndarray):
        return _in_arrays(found, due, where)
    return Difference(where, due, found)


def _in_mappings(found: Mapping[Any, Any], due: Mapping[Any, Any], where: str) -> Difference:
    for key in due:
        if key not in found:
            return Difference(where, due, found, f"{key!r} is missing.")
        if inside := first_difference(found[key], due[key], f"{where}.{key}" if where else str(key)):
            return inside
    extra = next((key for key in found if key not in due), None)
    return Difference(where, due, found, f"{extra!r} is not due.")


def _in_sequences(found: Sequence[Any], due: Sequence[Any], where: str) -> Difference:
    for k, (one, other) in enumerate(zip(found, due, strict=False)):
        if inside := first_difference(one, other, f"{where}[{k}]"):
            return inside
    return Difference(where, due, found, how_many(len(found), len(due)))


def how_many(found: int, due: int) -> str:
    """How many entries a list has, and how many are due."""
    return (
        f"there {'is 1 entry' if found == 1 else f'are {found} entries'}, and {due} {'is' if due == 1 else 'are'} due."
    )


def _in_arrays(found: np.ndarray, due: np.ndarray, where: str) -> Difference:
    if found.shape != due.shape:
        return Difference(where, due, found, f"the shape should be {due.shape}; it is {found.shape}.")
    wrong = np.argwhere(~close_entries(found, due))
    at = tuple(int(i) for i in wrong[0]) if len(wrong) else (0,) * due.ndim
    return Difference(f"{where}{list(at)}", due[at].item(), found[at].item())


def _is_text(value: Any) -> bool:
    """A line that somebody wrote, not a word that was to be chosen."""
    return isinstance(value, str) and re.search(r"\S\s+\S", value) is not None


def holds_text(value: Any) -> bool:
    """Whether there is such a line anywhere in a value."""
    if isinstance(value, Mapping):
        return any(map(holds_text, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(holds_text, value))
    return _is_text(value)


def in_one_line(value: Any) -> str:
    """A value as Python shows it, without the lines and the columns of arrays."""
    return BLANKS.sub(lambda found: found["quoted"] or " ", repr(value))


def short(value: Any, limit: int = SHOWN) -> str:
    """A value in one line; of a large array only its type and shape, of one on devices where it is."""
    if is_observed(value):
        return f"an array on {where_observed(value)}"
    if isinstance(value, np.ndarray) and value.size > FEW:
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    text = in_one_line(value)
    return text if len(text) <= limit else f"{text[:limit]}…"
