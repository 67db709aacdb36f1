"""What a wrong row of a table has to do with the other rows, and with the numbers that its own text names."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from grader.arrays.numbers import same_value
from grader.judging.evidence import SMALL
from grader.judging.single_numbers import SAME_BYTES, is_number

ENOUGH_ROWS = 3  # with different answers: fewer are exchanged by chance
ENOUGH_ANSWERS = 3  # different ones that are due: of fewer any two wrong rows have each other's
LEAST_FACTOR = 3  # below, one number of a text is so many times another by chance
ENOUGH_ENTRIES = 3  # of a list: one of two is turned round by chance
SAME_QUESTION = 0.6  # so much of their text have two rows in common that ask for the same of two things
OF_ROWS = "What do they have in common that the right ones have not?"
NAMED_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")  # and no part of a word, as float32 is


@dataclass(frozen=True, eq=False)
class TableRow:
    """A row: its text, what was answered, what is due, whether that is right, and whether a value would be."""

    key: str
    found: Any
    due: Any
    right: bool
    would_do: Callable[[Any], bool]


def moved_rows(rows: Sequence[TableRow]) -> str:
    """That what stands in the rows is right in others: they stand in the opposite order, or one row off."""
    due, found = [row.due for row in rows], [row.found for row in rows]
    if len(due) < ENOUGH_ROWS or any(same_value(*pair) for pair in itertools.combinations(due, 2)):
        return ""
    for words, here, there in (
        ("The answers are right, but the rows stand in the opposite order", found, due[::-1]),
        ("What stands in each row but the last is due one row later", found[:-1], due[1:]),
        ("What stands in each row but the first is due one row earlier", found[1:], due[:-1]),
    ):
        if all(map(same_value, here, there)):
            return f"{words}. What is counted, and from where?"
    return ""


def rows_off_alike(rows: Sequence[TableRow]) -> str:
    """What is so of all rows that are wrong, and of how much they are off, without the number."""
    pairs = [(row.found, row.due) for row in rows if not row.right]
    if not 1 < len(pairs) < len(rows) or not all(is_number(value) for pair in pairs for value in pair):
        return ""
    which = "Both wrong rows" if len(pairs) == 2 else f"All {len(pairs)} wrong rows"
    if not all(math.isfinite(value) for pair in pairs for value in pair):
        return ""
    off = [float(found - due) for found, due in pairs]
    times = [float(found / due) if due else math.inf for found, due in pairs]
    if len({*off}) == 1 and off[0] in _right_numbers(rows):
        how = "large" if off[0] > 0 else "small"
        return f"{which} are too {how} by the same, and by what you have in another row. What was it counted for?"
    if len(pairs) > 2 and len({*off}) == 1:
        return f"{which} are off by the same, and in the same direction. {OF_ROWS}"
    differ = len({due for _, due in pairs}) > 1 and times[0] > 0
    if differ and all(math.isclose(t, times[0], rel_tol=1e-6) for t in times):
        return f"{which} are off by the same factor. {OF_ROWS}"
    return ""


def _right_numbers(rows: Sequence[TableRow]) -> set[float]:
    """The numbers in rows that are right, of either sign."""
    numbers = (row.found for row in rows if row.right)
    return {sign * float(value) for value in numbers if is_number(value) and value for sign in (1, -1)}


def right_in_row(rows: Sequence[TableRow], k: int, *, words: bool = False) -> str:
    """The row most like this one in which the student gave the same answer, and it is right; of few `words` to choose
    from some row has each."""
    if words and not _are_many(rows, k):
        return ""
    alike = [row.key for row in rows if row is not rows[k] and row.right and same_value(row.found, rows[k].found)]
    if not alike:
        return ""
    key = max(alike, key=lambda key: _likeness(key, rows[k].key))
    return f"The same answer is right in “{key}”. In what does this row differ from that one?"


def each_others(rows: Sequence[TableRow], k: int) -> str:
    """The row that has the answer of this one, where this one has that row's; of few answers that would be chance."""
    if not _are_many(rows, k):
        return ""
    others = (row for row in rows if not row.right and row is not rows[k])
    other = next((row for row in others if row.would_do(rows[k].found) and rows[k].would_do(row.found)), None)
    return f"This row and “{other.key}” have each other's answers. In what do they differ?" if other else ""


def beside_others(rows: Sequence[TableRow], k: int) -> Iterator[str]:
    """Sentences on a wrong number or list by what stands in other rows."""
    found = rows[k].found
    if isinstance(found, (list, tuple)) or _tells(found):
        yield right_in_row(rows, k)
    elif is_number(found):
        yield right_in_row([rows[k], *(r for r in rows if _likeness(r.key, rows[k].key) > SAME_QUESTION)], 0)
    yield _turned(rows, k)
    yield _added(rows, k)
    told = not isinstance(found, (bool, str)) and (_tells(found) or not is_number(found))
    if told and any(row.would_do(found) for row in rows if row is not rows[k]):
        yield "It is what is due in another row of this table."  # which one would give that row away


def _turned(rows: Sequence[TableRow], k: int) -> str:
    """The right row that this one is, from its end."""
    found = rows[k].found
    if not isinstance(found, (list, tuple)) or len(found) < ENOUGH_ENTRIES or same_value(found, found[::-1]):
        return ""
    lists = (row for row in rows if row.right and isinstance(row.found, (list, tuple)))
    row = next((row for row in lists if same_value(found, row.found[::-1])), None)
    return f"It is your answer in “{row.key}”, which is right there, from its end." if row else ""


def _added(rows: Sequence[TableRow], k: int) -> str:
    """The two right rows of which a number is the sum."""
    found = rows[k].found
    numbers = [row for row in rows if row.right and is_number(row.found) and row.found]
    if not is_number(found) or not _tells(found):
        return ""
    for one, other in itertools.combinations(numbers, 2):
        apart = not same_value(one.found, other.found)  # else it is a factor
        if apart and math.isclose(found, one.found + other.found, rel_tol=SAME_BYTES):
            return f"It is what you have in “{one.key}” and in “{other.key}”, both right, added up."
    return ""


def factor_of_the_text(row: TableRow) -> str:
    """That a number is off by a factor which the row's text names, or which is between two numbers of it."""
    found, due = row.found, row.due
    if not (is_number(found) and is_number(due)) or not 0 < min(found, due) < max(found, due) < math.inf:
        return ""
    named = list(dict.fromkeys(float(number) for number in NAMED_NUMBER.findall(row.key)))
    times, how = max(found, due) / min(found, due), "large" if found > due else "small"
    if times < LEAST_FACTOR or not _tells(max(found, due)):
        return ""
    for number in named:
        if math.isclose(times, number, rel_tol=SAME_BYTES):
            return f"It is too {how}, by a factor that is one of the numbers in this row."
    for one, other in itertools.permutations(named, 2):
        if other and math.isclose(times, one / other, rel_tol=SAME_BYTES):
            return f"It is too {how}, by the factor that is between two numbers of this row. Does it depend on that?"
    return ""


def _tells(number: Any) -> bool:
    """Whether it is a number that two rows have in common by no chance."""
    return is_number(number) and math.isfinite(number) and (abs(number) > SMALL or number != round(number))


def _are_many(rows: Sequence[TableRow], k: int) -> bool:
    """Whether so many different answers of this row's kind are due in the table that no two rows agree by chance."""
    kept: list[Any] = []
    for due in (row.due for row in rows if _kind(row.due) == _kind(rows[k].due)):
        kept += [] if any(same_value(due, other) for other in kept) else [due]
    return len(kept) >= ENOUGH_ANSWERS


def _kind(value: Any) -> str:
    """Number, list or the name of another type."""
    return "number" if is_number(value) else "list" if isinstance(value, (list, tuple)) else type(value).__name__


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()
