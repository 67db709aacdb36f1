"""Tables: every row is a check of its own, tried whatever became of the others."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import spelled
from grader.arrays.numbers import same_value
from grader.exercises.answers import Problem, Value
from grader.exercises.case import Case
from grader.exercises.errors import in_plain_words
from grader.exercises.exercise import Mistake
from grader.exercises.plain import NO_PLAIN_VALUE
from grader.exercises.verdict import Blamed, Outcome, Verdict, told_rows
from grader.judging.differing import short
from grader.judging.evidence import SMALL, is_vague
from grader.judging.ladder import Ladder, Rung, is_absent
from grader.judging.layouts import dimension_by_dimension, notation_in_words, spec_in_words, type_by_parts
from grader.judging.miss import Miss, unanswered
from grader.judging.relations import NUMBER_DUE, TRUTH_DUE, WORD_DUE, relations_of
from grader.judging.rows import TableRow, beside_others, each_others, factor_of_the_text, right_in_row
from grader.judging.single_numbers import TOO_LARGE, TOO_SMALL, is_number
from grader.judging.values import expected_value, is_layout_due, same_answer, worded
from grader.programs.origins import VALUE

ENOUGH_ROWS = 3  # with different answers: fewer are exchanged by chance
TOLD_ONE_BY_ONE = 4  # counts that are told one by one
A_LITTLE, TWICE, A_LOT = 1.05, 1.99, 10  # times too large, or too small
DIGITS_KEPT, MOST_DIGITS = 3, 16  # of a number that somebody has rounded
FACTORS = 64  # up to here one number is a multiple of another for a reason
MOST_OPTIONS = 8  # words to choose from that are listed
SEVERAL_WORDS = "These are several of the words to choose from. Which one alone?"
NO_SUCH_WORD = "It is none of the words to choose from. Which of them do you mean?"
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
OF_ROWS = "What do they have in common that the right ones have not?"
ASKED_OF_ANY_FACTOR = (
    "What was counted too often, or not divided by?",
    "What was left out, or divided by too often?",
)


class TableLadder(Ladder):
    """A rung for each row, each worth an equal share and independent of the others."""

    between = " "

    @property
    def rungs(self) -> Sequence[Rung]:
        share = self.exercise.points / len(self.cases)
        return [Rung(case.key, share, self._row) for case in self.cases]

    def verdict(self) -> Verdict:
        first = self.answers[0]
        if is_absent(first) and all(map(is_absent, self.answers)):
            return unanswered(self.exercise, first)
        return self.climbed()

    def climbed(self) -> Verdict:
        """Every row earns its share; a mistake that was made in several is explained in the first."""
        outcomes: list[Outcome] = []
        for k, rung in enumerate(self.rungs):
            outcome = self._outcome(rung, k)
            earlier = next((o for o in outcomes if o.mistake and o.mistake == outcome.mistake), None)
            if earlier:
                difference = f"{rung.check}: {self._not_so(k)}"
                outcome = replace(outcome, words=f"{difference} The same as in “{earlier.check}”.")
            outcomes.append(outcome)
        return Verdict(self.exercise.name, tuple(outcomes), blamed=self._blamed_rows(outcomes))

    def _blamed_rows(self, outcomes: Sequence[Outcome]) -> Blamed | None:
        """The rows of which it is told why they are wrong."""
        rows = [k for k, one in enumerate(outcomes) if one in told_rows(outcomes) and isinstance(self.done[k], Value)]
        return Blamed(rows[0], (0,), (VALUE,), others=tuple(rows[1:])) if rows else None

    def _outcome(self, rung: Rung, k: int) -> Outcome:
        name = self.exercise.name
        if is_absent(self.answers[k]):
            return Outcome.left_open(name, rung.check, rung.worth, f"{rung.check}: no answer yet.")
        miss = rung.miss(k)
        return (
            self.missed(rung, k, miss, self.hint_if_any(rung.check, k))
            if miss
            else Outcome.earned(name, rung.check, rung.worth)
        )

    def signature(self, check: str, k: int) -> str:
        """Of the first wrong row what is so of all of them; then what is said of this one."""
        first = not any(self._row(j) for j in range(k))
        if self._in_other_rows:
            return self._in_other_rows if first else ""
        return " ".join(filter(None, (self._of_all_rows() if first else "", self._of_row(check, k))))

    def _of_row(self, check: str, k: int) -> str:
        """What kind of answer is due, where it is of another; else what the chosen word stands for, what can be said
        without telling numbers, or where it is right, and what is asked."""
        answer, due = self.answers[k], self._due(k)
        if not isinstance(answer, Value):
            no_value = isinstance(answer, Problem) and NO_PLAIN_VALUE in answer.message
            return _kind_due(None, due, self._words) if no_value else ""
        words = [] if self._is_due_elsewhere(answer.value) else self._words
        if kind := _kind_due(answer.value, due, words) or self._no_option(answer.value, due):
            return kind
        layout = is_layout_due(self.exercise, self.cases[k]) or (_is_spec(due) and None in due)
        if layout and _is_spec(answer.value):
            said = (
                right_in_row(self._all_rows, k)
                or each_others(self._all_rows, k)
                or _too_long(answer.value, due)
                or " ".join(filter(None, (dimension_by_dimension(answer.value, due), spec_in_words(answer.value))))
            )
            return " ".join(filter(None, (said, self.exercise.question(check))))
        meant = self.exercise.options.get(self._as_option(answer.value), "") if isinstance(answer.value, str) else ""
        if meant:
            others = (
                self._stands_twice(k, answer.value)
                or each_others(self._all_rows, k)
                or right_in_row(self._all_rows, k, words=True)
            )
            return f"{others} {meant}".strip()
        listed = isinstance(answer.value, (list, tuple))
        if listed and (elsewhere := right_in_row(self._all_rows, k)):
            return elsewhere
        told = _untold(answer.value, due)
        if not told.startswith(RIGHT_SO_FAR) and (stands_for := self._stands_for(k, answer.value)):
            return stands_for
        little = each_others(self._all_rows, k) or factor_of_the_text(self._all_rows[k])
        if not little and _leaves_to_other_rows(told):
            little = self._by_other_rows(k)
        if not little and not (is_vague(told) or told.startswith(LEAVE_OPEN)):
            return self._asked_of_factor(check, told)
        little = little or told or self._in_notation(answer.value, due)
        return " ".join(filter(None, (little, self.exercise.question(check))))

    def _by_other_rows(self, k: int) -> str:
        """What a wrong row has to do with others; a word no more than where it is right."""
        if isinstance(self._given(k), (bool, str)):
            return right_in_row(self._all_rows, k)
        return next(filter(None, beside_others(self._all_rows, k)), "")

    def _in_notation(self, value: Any, due: Any) -> str:
        """What a word says of an array, in the lessons' notation, or in that of JAX."""
        if not isinstance(value, str):
            return ""
        return (type_by_parts(value, due) if isinstance(due, str) else "") or notation_in_words(value)

    @functools.cached_property
    def _all_rows(self) -> list[TableRow]:
        return [
            TableRow(case.key, self._given(k), self._due(k), self._row(k) is None, functools.partial(self._would_do, k))
            for k, case in enumerate(self.cases)
        ]

    def _would_do(self, k: int, value: Any) -> bool:
        return same_answer(self.exercise, self.cases[k], self._as_option(value), self._due(k))

    def _stands_for(self, k: int, value: Any) -> str:
        """What the author can say of any answer, here of this one."""
        words = self.exercise.stand_for
        return words(value, **self.cases[k].arguments) if words else ""

    def _no_option(self, value: Any, due: Any) -> str:
        """That a word is not among those to choose from, where these are declared, and are too many to be listed."""
        options = self.exercise.options
        if not isinstance(due, str) or due not in options or not isinstance(value, str):
            return ""
        if any(_same_word(value, word) for word in (*options, *self._other_words)):
            return ""
        parts = [part.strip() for part in re.split(r",|;|\+|/| and | or | then ", value)]
        several = len(parts) > 1 and all(any(_same_word(part, word) for word in options) for part in parts)
        return SEVERAL_WORDS if several else NO_SUCH_WORD

    @functools.cached_property
    def _other_words(self) -> set[str]:
        """The words that are due, and those of mistakes: a word may be among them that is declared as no option."""
        made = (_wrong_entry(mistake, case) for mistake in self.exercise.mistakes for case in self.cases)
        due = (self._due(k) for k in range(len(self.cases)))
        return {word for word in (*made, *due) if isinstance(word, str)}

    def _asked_of_factor(self, check: str, told: str) -> str:
        """These words; where they are of a whole factor, with what is asked of the row in place of what fits any."""
        asked = self.exercise.question(check)
        of_any = next((words for words in ASKED_OF_ANY_FACTOR if told.endswith(words)), "")
        if asked and told.endswith(LESS_THAN_TWICE):
            return f"{told} {asked}"
        return f"{told.removesuffix(of_any)}{asked}" if asked and of_any else told

    def _stands_twice(self, k: int, word: str) -> str:
        """In which other row the same word stands, where each is the answer of one row alone, and the text says so."""
        rows = (j for j in range(len(self.cases)) if j != k and _same_word(self._given(j), word))
        other = next(rows, None) if self.exercise.once else None
        return "" if other is None else f"You gave the same answer in “{self.cases[other].key}”, and each is due once."

    def _given(self, k: int) -> Any:
        answer = self.answers[k]
        return answer.value if isinstance(answer, Value) else None

    @functools.cached_property
    def _words(self) -> list[str]:
        """The words among which a student chooses in this table; none where to list them would give answers away."""
        dues = [self._due(k) for k in range(len(self.cases))]
        often = Counter(due for due in dues if isinstance(due, str))
        words = sorted(often)
        if len(self.exercise.options) <= MOST_OPTIONS and {*words} <= {*self.exercise.options}:
            return sorted(self.exercise.options)
        chosen = len(words) <= len(self.cases) / 2 and (
            often.total() == len(dues) or min(often.values(), default=0) > 1
        )
        return words if chosen else []

    def _is_due_elsewhere(self, value: Any) -> bool:
        """Whether this would do in another row, or is a number where other rows have some: it is no slip of the pen."""
        rows = range(len(self.cases))
        would_do = isinstance(value, str) and any(
            same_answer(self.exercise, self.cases[k], value, self._due(k)) for k in rows
        )
        return would_do or _is_count(value) and any(_is_count(self._due(k)) for k in rows)

    def _due(self, k: int) -> Any:
        return expected_value(self.exercise, self.cases[k])

    def explanation(self, check: str, failing: int) -> Mistake | None:
        """The mistake that makes this entry of the row. Of several, the one that makes most of the rows."""
        alike = [m for m in self.exercise.mistakes if self._makes(m, failing)]
        mistake = max(alike, key=self._rows_of, default=None)
        if mistake and self._in_other_rows and not all(self._makes(mistake, k) for k in self._wrong_rows):
            return None
        return None if mistake and self._is_refuted(mistake) and self._of_all_rows() else mistake

    def _is_refuted(self, mistake: Mistake) -> bool:
        """Whether it would be made in more other rows, and something else stands there, than it is made in."""
        would = [k for k, case in enumerate(self.cases) if _wrong_entry(mistake, case) is not None]
        answered = [k for k in would if isinstance(self.answers[k], Value)]
        made = sum(self._makes(mistake, k) for k in answered)
        return len(answered) - made > made

    def _of_all_rows(self) -> str:
        """What is so of all rows that are wrong, and of how much they are off, without the number."""
        pairs = [(self._given(k), self._due(k)) for k in self._wrong_rows]
        if not 1 < len(pairs) < len(self.cases) or not all(_is_count(value) for pair in pairs for value in pair):
            return ""
        which = "Both wrong rows" if len(pairs) == 2 else f"All {len(pairs)} wrong rows"
        if not all(math.isfinite(value) for pair in pairs for value in pair):
            return ""
        off = [float(found - due) for found, due in pairs]
        times = [float(found / due) if due else math.inf for found, due in pairs]
        if len({*off}) == 1 and off[0] in self._right_numbers:
            how = "large" if off[0] > 0 else "small"
            return f"{which} are too {how} by the same, and by what you have in another row. What was it counted for?"
        if len(pairs) > 2 and len({*off}) == 1:
            return f"{which} are off by the same, and in the same direction. {OF_ROWS}"
        if (
            len({due for _, due in pairs}) > 1
            and times[0] > 0
            and all(math.isclose(t, times[0], rel_tol=1e-6) for t in times)
        ):
            return f"{which} are off by the same factor. {OF_ROWS}"
        return ""

    @functools.cached_property
    def _right_numbers(self) -> set[float]:
        """The numbers in rows that are right, of either sign."""
        numbers = (self._given(k) for k in range(len(self.cases)) if k not in self._wrong_rows)
        return {sign * float(value) for value in numbers if _is_count(value) and value for sign in (1, -1)}

    @functools.cached_property
    def _wrong_rows(self) -> list[int]:
        return [k for k in range(len(self.cases)) if self._row(k)]

    @functools.cached_property
    def _in_other_rows(self) -> str:
        """That what stands in the rows is right in others: they stand in the opposite order, or one row off."""
        due = [self._due(k) for k in range(len(self.cases))]
        given = [self._given(k) for k in range(len(self.cases))]
        if len(due) < ENOUGH_ROWS or any(same_value(*pair) for pair in itertools.combinations(due, 2)):
            return ""
        for words, found, there in (
            ("The answers are right, but the rows stand in the opposite order", given, due[::-1]),
            ("What stands in each row but the last is due one row later", given[:-1], due[1:]),
            ("What stands in each row but the first is due one row earlier", given[1:], due[:-1]),
        ):
            if all(map(same_value, found, there)):
                return f"{words}. What is counted, and from where?"
        return ""

    def is_exact(self, mistake: Mistake, k: int) -> bool:
        """Whether a mistake says just this number in a row, or this one rounded. (Words and layouts that are called the
        same are so.)"""
        given, wrong = self._given(k), _wrong_entry(mistake, self.cases[k])
        return not is_number(given) or same_value(given, wrong) or _rounded_alike(given, wrong)

    def _rows_of(self, mistake: Mistake) -> int:
        return sum(self._makes(mistake, k) for k in range(len(self.cases)))

    def _makes(self, mistake: Mistake, k: int) -> bool:
        answer, case = self.answers[k], self.cases[k]
        if not isinstance(answer, Value) or (wrong := _wrong_entry(mistake, case)) is None:
            return False
        return same_answer(self.exercise, case, answer.value, wrong) or _rounded_alike(answer.value, wrong)

    def _row(self, k: int) -> Miss | None:
        answer, case = self.answers[k], self.cases[k]
        if isinstance(answer, Problem):
            return Miss(in_plain_words(answer))
        if not isinstance(answer, Value):
            return Miss(f"{case.key}: the answer should be a plain value.")
        value = self._as_option(answer.value)
        if same_answer(self.exercise, case, value, self._due(k)) or _same_word(value, self._due(k)):
            return None
        return Miss(f"{case.key}: {self._not_so(k)}")

    def _as_option(self, value: Any) -> Any:
        """The option that a word is, spelled as the table does; what is none of them as it is."""
        return next((word for word in self.exercise.options if _same_word(value, word)), value)

    def _not_so(self, k: int) -> str:
        answer = self.answers[k]
        assert isinstance(answer, Value)  # else there is nothing that could be wrong
        layout = isinstance(answer.value, tuple) and is_layout_due(self.exercise, self.cases[k])
        return worded(lambda: f"not {spelled(P(*answer.value)) if layout else short(answer.value)}.")


def _is_spec(value: Any) -> bool:
    """Whether it is made of what a spec is made of: what cuts a dimension stands in the place of that."""
    return isinstance(value, (list, tuple)) and all(
        entry is None or isinstance(entry, (str, list, tuple)) for entry in value
    )


def _too_long(spec: Sequence[Any], due: Any) -> str:
    """Where a spec is the one that is due but for more Nones behind it, and is wrong by them alone."""
    longer = isinstance(due, (list, tuple)) and len(spec) > len(due)
    if not longer or _without_nones(spec) != _without_nones(due):
        return ""
    return "It has more entries than the array has dimensions, which JAX refuses. Nothing else is wrong with it."


def _without_nones(spec: Sequence[Any]) -> list[Any]:
    """The entries of a spec up to the last that cuts something."""
    return list(spec[: max((k + 1 for k, entry in enumerate(spec) if entry), default=0)])


def _same_word(one: Any, other: Any) -> bool:
    """Whether two words differ by nothing but capitals, blanks and hyphens."""
    return isinstance(one, str) and isinstance(other, str) and _letters(one) == _letters(other)


def _letters(word: str) -> str:
    return "".join(word.split()).casefold().replace("-", "_")


def _kind_due(value: Any, due: Any, words: Sequence[str]) -> str:
    if isinstance(due, bool) and not isinstance(value, bool):
        return "Write True or False."
    if isinstance(due, str) and words and not any(_same_word(value, word) for word in words):
        return f"The answer is one of these words: {', '.join(map(repr, words))}."
    if isinstance(due, (int, float)) and not isinstance(value, (int, float)):
        return "The answer is a number."
    if isinstance(due, (list, tuple)) and isinstance(value, str):
        return "No text is due, but a spec, a list or a tuple: leave the quotation marks away."
    if isinstance(due, (list, tuple)) and not isinstance(value, (list, tuple, np.ndarray)):
        return "The answer is a list, or a tuple."
    return ""


def _untold(value: Any, due: Any) -> str:
    """How a wrong entry stands to the one that is due, in words from which that one cannot be worked out."""
    related = (words for words in relations_of(value, due, {}) if _may_be_told(words))
    words = _in_units(value, due) or _one_by_one(value, due) or next(related, "")
    return (_by_how_much(value, due) or words) if words in (TOO_LARGE, TOO_SMALL) else words


def _may_be_told(words: str) -> bool:
    """Whether nothing in a sentence tells what is due; of what kind that is, is said in other words."""
    of_kind = words.startswith((NUMBER_DUE, TRUTH_DUE, WORD_DUE))
    return not of_kind and not re.search(r"\d|\bsign\b", _without_places(words))


def _leaves_to_other_rows(told: str) -> bool:
    """Whether words say less than what stands in other rows: to which side a number is off, but by no factor."""
    to_a_side = told.startswith((TOO_LARGE[:-1], TOO_SMALL[:-1])) and "by a whole factor" not in told
    return not told or to_a_side or told.startswith(LEAVE_OPEN[:2])


def _by_how_much(value: Any, due: Any) -> str:
    """Roughly, where that says something."""
    if not (_is_count(value) and _is_count(due)) or min(value, due) <= 0 or _are_counts(value, due):
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
    listed = all(isinstance(one, (list, tuple)) and all(map(_is_count, one)) for one in (value, due))
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


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_counts(*numbers: float) -> bool:
    """Whether these are small whole numbers: of those one is so many times another by chance."""
    return all(abs(number) <= SMALL and number == round(number) for number in numbers)


def _in_units(value: Any, due: Any) -> str:
    """Whether one number is so many times the other that a factor may have been forgotten, or taken once too often."""
    numbers = [x for x in (value, due) if _is_count(x) and 0 < x < math.inf]
    if len(numbers) < 2 or _are_counts(*numbers):
        return ""
    times = value / due
    for how, factor, asked in zip(("large", "small"), (times, 1 / times), ASKED_OF_ANY_FACTOR, strict=True):
        whole = round(factor)
        if 1 < whole <= FACTORS and math.isclose(factor, whole, rel_tol=1e-4):
            nearly = "" if math.isclose(factor, whole, rel_tol=1e-9) else "nearly "
            return f"It is too {how}, by {nearly}a whole factor. {asked}"
    return ""


def _rounded_alike(one: Any, other: Any) -> bool:
    """Whether one number is the other, rounded: to a whole number, as `// 2` does, or to three digits or more."""
    if not (_is_count(one) and _is_count(other)) or abs(other) <= SMALL or not math.isfinite(other):
        return False
    digits = math.floor(math.log10(abs(other)))
    rounded = (round(other, places - digits) for places in range(DIGITS_KEPT - 1, MOST_DIGITS))
    return one in (math.floor(other), math.ceil(other)) or any(math.isclose(one, r, rel_tol=1e-12) for r in rounded)


@functools.lru_cache(maxsize=1024)
def _wrong_entry(mistake: Mistake, case: Case) -> Any:
    """What a mistake says in a row of a table; None where it is about another."""
    return mistake.wrong(**case.arguments)
