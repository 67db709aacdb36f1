"""What went wrong in the rows of a table, in findings from which the right answer cannot be worked out."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from grader.arrays.numbers import same_value
from grader.exercises.answers import Problem, Value
from grader.exercises.case import Case
from grader.exercises.exercise import Mistake
from grader.exercises.forms import TableExercise
from grader.exercises.verdict import Blamed
from grader.explaining.cases.tried import SMALL
from grader.explaining.compared.relations import relations_of
from grader.explaining.compared.single_numbers import is_number
from grader.explaining.explainer import Explainer
from grader.findings.finding import Finding
from grader.findings.relations import reveals
from grader.findings.tables import (
    AuthorSays,
    KindExpected,
    NumberByNumber,
    NumberStanding,
    OffByInteger,
    OffByRoughly,
    OptionMeans,
    RightInRow,
    RowAsks,
    RowsOffAlike,
    Side,
)
from grader.judging.miss import Miss
from grader.judging.tables import TableJudgment, same_word
from grader.judging.values import is_spec_expected, same_answer

MOST_OPTIONS = 8  # words to choose from that are listed
FEW_NUMBERS = 4  # of a tuple, that are told one by one
FACTORS = 64  # up to here one number is a multiple of another for a reason
TWICE, A_LOT = 1.99, 10  # times too large, or too small
DIGITS_KEPT, MOST_DIGITS = 3, 16  # of a number that somebody has rounded
ENOUGH_ANSWERS = 3  # different ones that are expected: of fewer any two rows agree by chance


class TableExplainer(Explainer[TableJudgment]):
    """Evidence from a row, and from the other rows."""

    exercise: TableExercise

    def blamed(self, check: str, case: int, miss: Miss) -> Blamed | None:
        return None  # the judgment knows which rows are explained

    def evidence(self, check: str, case: int) -> tuple[Finding, ...]:
        """Of the first wrong row what is true of all of them, else the best of the row; and the row's question."""
        alike = self._off_alike if case == self._wrong_rows[0] else None
        found = alike or max(self._of_row(case), key=lambda one: one.rank, default=None)
        asks = next((RowAsks(part) for part in self.exercise.questions if part in check), None)
        return tuple(filter(None, (found, asks)))

    def _of_row(self, k: int) -> list[Finding]:
        """All that is found in a row, whatever it says."""
        answer, expected = self.answers[k], self.judgment.due(k)
        if not isinstance(answer, Value):
            refused = isinstance(answer, Problem) and answer.kind == "refused"
            return list(filter(None, [self._kind_expected(None, expected)])) if refused else []
        found = answer.value
        if not self._is_expected_elsewhere(found) and (kind := self._kind_expected(found, expected)):
            return [kind]
        told = [self._author_says(k, found), self._option_means(found), self._right_in_row(k)]
        of_spec = is_spec_expected(self.exercise, self.cases[k]) or (isinstance(expected, tuple) and None in expected)
        if not of_spec:  # its entries are no elements of a list
            told += [_by_integer(found, expected), _number_by_number(found, expected), _roughly(found, expected)]
            told += [one for one in relations_of(found, expected, {}) if not reveals(one)]
        return list(filter(None, told))

    def _author_says(self, k: int, value: Any) -> Finding | None:
        """What the author can say of any answer, here of this one."""
        says = self.exercise.stand_for
        return AuthorSays(words) if says and (words := says(value, **self.cases[k].arguments)) else None

    def _option_means(self, value: Any) -> Finding | None:
        option = self.judgment.as_option(value)
        return OptionMeans(option) if isinstance(value, str) and self.exercise.options.get(option) else None

    def _right_in_row(self, k: int) -> Finding | None:
        """The row most like this one in which the same answer is right; of few words to choose from some row has each,
        and small numbers are the same by chance."""
        found = self._found[k]
        if isinstance(found, (bool, str)) and not self._are_many(k):
            return None
        if is_number(found) and abs(found) <= SMALL and found == round(found):
            return None
        rows = [j for j, value in enumerate(self._found) if j not in self._wrong_rows and same_value(value, found)]
        keys = [self.cases[j].key for j in rows]
        return RightInRow(max(keys, key=lambda key: _likeness(key, self.cases[k].key))) if keys else None

    def _are_many(self, k: int) -> bool:
        """Whether so many different answers of this row's kind are expected that no two rows agree by chance."""
        kind = type(self.judgment.due(k))
        each = (self.judgment.due(j) for j in range(len(self.cases)))
        return len({repr(due) for due in each if isinstance(due, kind)}) >= ENOUGH_ANSWERS

    def _kind_expected(self, value: Any, expected: Any) -> Finding | None:
        """That something of another kind is expected, or that a word is none of those to choose from."""
        if isinstance(expected, bool):
            return None if isinstance(value, bool) else KindExpected("bool")
        if isinstance(expected, str) and self._words and not any(same_word(value, word) for word in self._words):
            return KindExpected("words", tuple(self._words))
        if isinstance(expected, str) and expected in self.exercise.options and isinstance(value, str):
            return self._no_option(value)
        if isinstance(expected, (int, float)):
            return None if isinstance(value, (int, float)) else KindExpected("number")
        if isinstance(expected, (list, tuple)) and not isinstance(value, (list, tuple, np.ndarray)):
            return KindExpected("unquoted list" if isinstance(value, str) else "list")
        return None

    def _no_option(self, value: str) -> Finding | None:
        """That a word is not among those to choose from, or is several of them."""
        options = self.exercise.options
        if any(same_word(value, word) for word in (*options, *self._other_words)):
            return None
        parts = [part.strip() for part in re.split(r",|;|\+|/| and | or | then ", value)]
        several = len(parts) > 1 and all(any(same_word(part, word) for word in options) for part in parts)
        return KindExpected("single option" if several else "option")

    @functools.cached_property
    def _other_words(self) -> set[str]:
        """The words that are expected, and those of mistakes: one of them may be declared as no option."""
        made = (_wrong_answer(mistake, case) for mistake in self.exercise.mistakes for case in self.cases)
        expected = (self.judgment.due(k) for k in range(len(self.cases)))
        return {word for word in (*made, *expected) if isinstance(word, str)}

    @functools.cached_property
    def _words(self) -> list[str]:
        """The words among which a student chooses in this table; none if a list of them would give answers away."""
        expected = [self.judgment.due(k) for k in range(len(self.cases))]
        often = Counter(word for word in expected if isinstance(word, str))
        if len(self.exercise.options) <= MOST_OPTIONS and {*often} <= {*self.exercise.options}:
            return sorted(self.exercise.options)
        several = often.total() == len(expected) or min(often.values(), default=0) > 1
        return sorted(often) if len(often) <= len(self.cases) / 2 and several else []

    def _is_expected_elsewhere(self, value: Any) -> bool:
        """Whether this would do in another row, or is a number where other rows have some: it is no slip of the pen."""
        expected = [self.judgment.due(k) for k in range(len(self.cases))]
        if is_number(value):
            return any(map(is_number, expected))
        return isinstance(value, str) and any(
            same_answer(self.exercise, case, value, due) for case, due in zip(self.cases, expected, strict=True)
        )

    @functools.cached_property
    def _found(self) -> list[Any]:
        return [answer.value if isinstance(answer, Value) else None for answer in self.answers]

    @functools.cached_property
    def _wrong_rows(self) -> list[int]:
        return [k for k in range(len(self.cases)) if self.judgment.row(k)]

    @functools.cached_property
    def _off_alike(self) -> Finding | None:
        """How all wrong rows are off, if that is the same in several of them, and some row is right."""
        pairs = [(self._found[k], self.judgment.due(k)) for k in self._wrong_rows]
        numbers = [value for pair in pairs for value in pair]
        if not 1 < len(pairs) < len(self.cases) or not all(is_number(n) and math.isfinite(n) for n in numbers):
            return None
        off = {float(found - expected) for found, expected in pairs}
        right = [n for k, n in enumerate(self._found) if k not in self._wrong_rows and is_number(n) and n]
        if len(off) == 1 and (by := off.pop()):
            if abs(by) in map(abs, right):
                return RowsOffAlike("another row", len(pairs), "large" if by > 0 else "small")
            return RowsOffAlike("difference", len(pairs)) if len(pairs) > 2 else None
        factors = [found / expected if expected else math.inf for found, expected in pairs]
        several = len({expected for _, expected in pairs}) > 1 and factors[0] > 0
        alike = several and all(math.isclose(factor, factors[0], rel_tol=1e-6) for factor in factors)
        return RowsOffAlike("factor", len(pairs)) if alike else None

    def mistake(self, check: str, failing: int) -> Mistake | None:
        """The mistake that makes this entry of the row. Of several, the one that makes most of the rows."""
        alike = [m for m in self.exercise.mistakes if self._makes(m, failing)]
        mistake = max(alike, key=self._rows_of, default=None)
        return None if mistake and self._is_refuted(mistake) and self._off_alike else mistake

    def _is_refuted(self, mistake: Mistake) -> bool:
        """Whether it would be made in more other rows, and something else is there, than it is made in."""
        would = [k for k, case in enumerate(self.cases) if _wrong_answer(mistake, case) is not None]
        answered = [k for k in would if isinstance(self.answers[k], Value)]
        made = sum(self._makes(mistake, k) for k in answered)
        return len(answered) - made > made

    def is_exact(self, mistake: Mistake, k: int) -> bool:
        """Whether a mistake says just this number in a row, or this one rounded. (Words and specs that are called the
        same are so.)"""
        found, wrong = self._found[k], _wrong_answer(mistake, self.cases[k])
        return not is_number(found) or same_value(found, wrong) or rounded_alike(found, wrong)

    def _rows_of(self, mistake: Mistake) -> int:
        return sum(self._makes(mistake, k) for k in range(len(self.cases)))

    def _makes(self, mistake: Mistake, k: int) -> bool:
        answer, case = self.answers[k], self.cases[k]
        if not isinstance(answer, Value) or (wrong := _wrong_answer(mistake, case)) is None:
            return False
        return same_answer(self.exercise, case, answer.value, wrong) or rounded_alike(answer.value, wrong)


@functools.lru_cache(maxsize=1024)
def _wrong_answer(mistake: Mistake, case: Case) -> Any:
    """What a mistake says in a row of a table; None if it is about another."""
    return mistake.wrong(**case.arguments)


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _are_counts(*numbers: float) -> bool:
    """Whether these are small whole numbers: of those one is so many times another by chance."""
    return all(abs(number) <= SMALL and number == round(number) for number in numbers)


def _by_integer(found: Any, expected: Any) -> Finding | None:
    """Whether one number is so many times the other that a factor may have been forgotten, or used once too often."""
    if not _are_positive(found, expected) or _are_counts(found, expected):
        return None
    factor = max(found, expected) / min(found, expected)
    if not 1 < round(factor) <= FACTORS or not math.isclose(factor, round(factor), rel_tol=1e-9):
        return None
    return OffByInteger("large" if found > expected else "small")


def _roughly(found: Any, expected: Any) -> Finding | None:
    """Roughly how far off a number is, if that says something."""
    if not _are_positive(found, expected) or _are_counts(found, expected):
        return None
    side: Side = "large" if found > expected else "small"
    factor = max(found, expected) / min(found, expected)
    if TWICE <= factor <= A_LOT:
        return None
    return OffByRoughly(side, "less than twice" if factor < TWICE else "more than ten times")


def _are_positive(*numbers: Any) -> bool:
    return all(is_number(number) and 0 < number < math.inf for number in numbers)


def _number_by_number(found: Any, expected: Any) -> Finding | None:
    """How each number of a short tuple stands to the one expected."""
    if not isinstance(expected, tuple) or not isinstance(found, (list, tuple)):
        return None
    alike = 1 < len(expected) == len(found) and all(map(is_number, (*found, *expected)))
    if not alike or len(expected) > FEW_NUMBERS or sorted(found) == sorted(expected):
        return None
    return NumberByNumber(tuple(map(_standing, found, expected)))


def _standing(found: float, expected: float) -> NumberStanding:
    """How a count stands to the one expected."""
    if found == expected:
        return "right"
    larger, smaller = max(found, expected), min(found, expected)
    if smaller > 0 and larger % smaller == 0:
        return "large by an integer factor" if found > expected else "small by an integer factor"
    return "large" if found > expected else "small"


def rounded_alike(one: Any, other: Any) -> bool:
    """Whether one number is the other, rounded: to a whole number, as `// 2` does, or to three digits or more."""
    if not (is_number(one) and is_number(other)) or abs(other) <= SMALL or not math.isfinite(other):
        return False
    digits = math.floor(math.log10(abs(other)))
    rounded = (round(other, places - digits) for places in range(DIGITS_KEPT - 1, MOST_DIGITS))
    return one in (math.floor(other), math.ceil(other)) or any(math.isclose(one, r, rel_tol=1e-12) for r in rounded)
