"""A wrong entry of a table beside the one that is due, in words from which that one cannot be worked out."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from grader.judging.evidence import SMALL
from grader.judging.relations import NUMBER_DUE, TRUTH_DUE, WORD_DUE, relations_of
from grader.judging.single_numbers import TOO_LARGE, TOO_SMALL, is_number

TOLD_ONE_BY_ONE = 4  # counts that are told one by one
A_LITTLE, TWICE, A_LOT = 1.05, 1.99, 10  # times too large, or too small
DIGITS_KEPT, MOST_DIGITS = 3, 16  # of a number that somebody has rounded
FACTORS = 64  # up to here one number is a multiple of another for a reason
OFF_ALIKE = "Each number of it is off by as much as every other."
LEAVE_OPEN = (  # on lists: what is true, and leaves open where to look
    "The entries are right",
    "It begins right, and from some place on it is wrong to its end.",
    "What is there is right, but entries are missing.",
    "All that is due is there, and more besides.",
    OFF_ALIKE,
)
LESS_THAN_TWICE = "but by no whole factor: by less than twice."
RIGHT_SO_FAR = "What is there is right", "All that is due is there", "The entries are right"
ASKED_OF_ANY_FACTOR = (
    "What was counted too often, or not divided by?",
    "What was left out, or divided by too often?",
)


def is_spec(value: Any) -> bool:
    """Whether it is made of what a spec is made of: what cuts a dimension stands in the place of that."""
    return isinstance(value, (list, tuple)) and all(
        entry is None or isinstance(entry, (str, list, tuple)) for entry in value
    )


def too_long(spec: Sequence[Any], due: Any) -> str:
    """Where a spec is the one that is due but for more Nones behind it, and is wrong by them alone."""
    longer = isinstance(due, (list, tuple)) and len(spec) > len(due)
    if not longer or _without_nones(spec) != _without_nones(due):
        return ""
    return "It has more entries than the array has dimensions, which JAX refuses. Nothing else is wrong with it."


def _without_nones(spec: Sequence[Any]) -> list[Any]:
    """The entries of a spec up to the last that cuts something."""
    return list(spec[: max((k + 1 for k, entry in enumerate(spec) if entry), default=0)])


def same_word(one: Any, other: Any) -> bool:
    """Whether two words differ by nothing but capitals, blanks and hyphens."""
    return isinstance(one, str) and isinstance(other, str) and _letters(one) == _letters(other)


def _letters(word: str) -> str:
    return "".join(word.split()).casefold().replace("-", "_")


def kind_due(value: Any, due: Any, words: Sequence[str]) -> str:
    if isinstance(due, bool) and not isinstance(value, bool):
        return "Write True or False."
    if isinstance(due, str) and words and not any(same_word(value, word) for word in words):
        return f"The answer is one of these words: {', '.join(map(repr, words))}."
    if isinstance(due, (int, float)) and not isinstance(value, (int, float)):
        return "The answer is a number."
    if isinstance(due, (list, tuple)) and isinstance(value, str):
        return "No text is due, but a spec, a list or a tuple: leave the quotation marks away."
    if isinstance(due, (list, tuple)) and not isinstance(value, (list, tuple, np.ndarray)):
        return "The answer is a list, or a tuple."
    return ""


def untold(value: Any, due: Any) -> str:
    """How a wrong entry stands to the one that is due, in words from which that one cannot be worked out."""
    related = (words for words in relations_of(value, due, {}) if _may_be_told(words))
    words = _in_units(value, due) or _one_by_one(value, due) or next(related, "")
    return (_by_how_much(value, due) or words) if words in (TOO_LARGE, TOO_SMALL) else words


def _may_be_told(words: str) -> bool:
    """Whether nothing in a sentence tells what is due; of what kind that is, is said in other words."""
    of_kind = words.startswith((NUMBER_DUE, TRUTH_DUE, WORD_DUE))
    return not of_kind and not re.search(r"\d|\bsign\b", _without_places(words))


def leaves_to_other_rows(told: str) -> bool:
    """Whether words say less than what stands in other rows: to which side a number is off, but by no factor."""
    to_a_side = told.startswith((TOO_LARGE[:-1], TOO_SMALL[:-1])) and "by a whole factor" not in told
    return not told or to_a_side or told.startswith(LEAVE_OPEN[:2])


def _by_how_much(value: Any, due: Any) -> str:
    """Roughly, where that says something."""
    if not (is_number(value) and is_number(due)) or min(value, due) <= 0 or _are_counts(value, due):
        return ""
    larger, how = value > due, TOO_LARGE if value > due else TOO_SMALL
    times = max(value, due) / min(value, due)
    if times < A_LITTLE:
        part = "in it that is not due" if larger else "missing"
        return f"{how[:-1]}, but only a little. Is a small part {part}, or is it made of another number?"
    if times < TWICE:
        return f"{how[:-1]}, {LESS_THAN_TWICE}"
    if times > A_LOT:
        return f"{how[:-1]}, and more than {A_LOT} times. Is the unit right, and is each factor where it belongs?"
    return ""


def _one_by_one(value: Any, due: Any) -> str:
    """Which length of a shape is too large or too small; of a list of counts, that it begins elsewhere."""
    listed = all(isinstance(one, (list, tuple)) and all(map(is_number, one)) for one in (value, due))
    if not listed or len(value) != len(due) or len(due) < 2 or sorted(value) == sorted(due):
        return ""
    if isinstance(due, tuple) and len(due) <= TOLD_ONE_BY_ONE:
        each = (f"number {k} is {_how(*pair)}" for k, pair in enumerate(zip(value, due, strict=True)))
        return f"Counted from the left, and from 0: {', '.join(each)}."
    off = {one - other for one, other in zip(value, due, strict=True)}
    counted = " From where do you count?" if off <= {1, -1} else ""
    return f"{OFF_ALIKE}{counted}" if off != {0} and len(off) == 1 else ""


def _how(found: float, due: float) -> str:
    """How a count stands to the one that is due."""
    if found == due:
        return "right"
    larger, smaller = max(found, due), min(found, due)
    factor = " by a whole factor" if smaller > 0 and larger % smaller == 0 else ""
    return f"too {'large' if found > due else 'small'}{factor}"


def _without_places(words: str) -> str:
    """Words without the numbers of entries, which tell nothing of what stands there."""
    return re.sub(r"(?<=only )`\[\d+\]`(, `\[\d+\]`)*", "", words)


def _are_counts(*numbers: float) -> bool:
    """Whether these are small whole numbers: of those one is so many times another by chance."""
    return all(abs(number) <= SMALL and number == round(number) for number in numbers)


def _in_units(value: Any, due: Any) -> str:
    """Whether one number is so many times the other that a factor may have been forgotten, or taken once too often."""
    numbers = [x for x in (value, due) if is_number(x) and 0 < x < math.inf]
    if len(numbers) < 2 or _are_counts(*numbers):
        return ""
    times = value / due
    for how, factor, asked in zip(("large", "small"), (times, 1 / times), ASKED_OF_ANY_FACTOR, strict=True):
        whole = round(factor)
        if 1 < whole <= FACTORS and math.isclose(factor, whole, rel_tol=1e-4):
            nearly = "" if math.isclose(factor, whole, rel_tol=1e-9) else "nearly "
            return f"It is too {how}, by {nearly}a whole factor. {asked}"
    return ""


def rounded_alike(one: Any, other: Any) -> bool:
    """Whether one number is the other, rounded: to a whole number, as `// 2` does, or to three digits or more."""
    if not (is_number(one) and is_number(other)) or abs(other) <= SMALL or not math.isfinite(other):
        return False
    digits = math.floor(math.log10(abs(other)))
    rounded = (round(other, places - digits) for places in range(DIGITS_KEPT - 1, MOST_DIGITS))
    return one in (math.floor(other), math.ceil(other)) or any(math.isclose(one, r, rel_tol=1e-12) for r in rounded)
