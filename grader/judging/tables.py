"""Tables: every row is a check of its own, tried whatever became of the others."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import spelled
from grader.arrays.numbers import same_value
from grader.exercises.answers import Problem, Value
from grader.exercises.case import Case
from grader.exercises.errors import in_plain_words
from grader.exercises.exercise import Mistake
from grader.exercises.forms import TableExercise
from grader.exercises.plain import NO_PLAIN_VALUE
from grader.exercises.verdict import Blamed, Outcome, Verdict, told_rows
from grader.judging.differing import short
from grader.judging.evidence import is_vague
from grader.judging.ladder import Ladder, Rung, is_absent
from grader.judging.layouts import dimension_by_dimension, notation_in_words, spec_in_words, type_by_parts
from grader.judging.miss import Miss, unanswered
from grader.judging.rows import (
    TableRow,
    beside_others,
    each_others,
    factor_of_the_text,
    moved_rows,
    right_in_row,
    rows_off_alike,
)
from grader.judging.single_numbers import is_number
from grader.judging.values import expected_value, is_layout_due, same_answer, worded
from grader.judging.wrong_entries import (
    ASKED_OF_ANY_FACTOR,
    LEAVE_OPEN,
    LESS_THAN_TWICE,
    RIGHT_SO_FAR,
    is_spec,
    kind_due,
    leaves_to_other_rows,
    rounded_alike,
    same_word,
    too_long,
    untold,
)
from grader.programs.origins import VALUE

MOST_OPTIONS = 8  # words to choose from that are listed
SEVERAL_WORDS = "These are several of the words to choose from. Which one alone?"
NO_SUCH_WORD = "It is none of the words to choose from. Which of them do you mean?"


class TableLadder(Ladder):
    """A rung for each row, each worth an equal share and independent of the others."""

    exercise: TableExercise
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
        told = told_rows(outcomes)
        rows = [k for k, one in enumerate(outcomes) if one in told and isinstance(self.done[k], Value)]
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
        return " ".join(filter(None, (rows_off_alike(self._all_rows) if first else "", self._of_row(check, k))))

    def _of_row(self, check: str, k: int) -> str:
        """What kind of answer is due, where it is of another; else what the chosen word stands for, what can be said
        without telling numbers, or where it is right, and what is asked."""
        answer, due = self.answers[k], self._due(k)
        if not isinstance(answer, Value):
            no_value = isinstance(answer, Problem) and NO_PLAIN_VALUE in answer.message
            return kind_due(None, due, self._words) if no_value else ""
        words = [] if self._is_due_elsewhere(answer.value) else self._words
        if kind := kind_due(answer.value, due, words) or self._no_option(answer.value, due):
            return kind
        layout = is_layout_due(self.exercise, self.cases[k]) or (is_spec(due) and None in due)
        if layout and is_spec(answer.value):
            said = (
                right_in_row(self._all_rows, k)
                or each_others(self._all_rows, k)
                or too_long(answer.value, due)
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
        told = untold(answer.value, due)
        if not told.startswith(RIGHT_SO_FAR) and (stands_for := self._stands_for(k, answer.value)):
            return stands_for
        little = each_others(self._all_rows, k) or factor_of_the_text(self._all_rows[k])
        if not little and leaves_to_other_rows(told):
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
        if any(same_word(value, word) for word in (*options, *self._other_words)):
            return ""
        parts = [part.strip() for part in re.split(r",|;|\+|/| and | or | then ", value)]
        several = len(parts) > 1 and all(any(same_word(part, word) for word in options) for part in parts)
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
        rows = (j for j in range(len(self.cases)) if j != k and same_word(self._given(j), word))
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
        return would_do or is_number(value) and any(is_number(self._due(k)) for k in rows)

    def _due(self, k: int) -> Any:
        return expected_value(self.exercise, self.cases[k])

    def explanation(self, check: str, failing: int) -> Mistake | None:
        """The mistake that makes this entry of the row. Of several, the one that makes most of the rows."""
        alike = [m for m in self.exercise.mistakes if self._makes(m, failing)]
        mistake = max(alike, key=self._rows_of, default=None)
        if mistake and self._in_other_rows and not all(self._makes(mistake, k) for k in self._wrong_rows):
            return None
        return None if mistake and self._is_refuted(mistake) and rows_off_alike(self._all_rows) else mistake

    def _is_refuted(self, mistake: Mistake) -> bool:
        """Whether it would be made in more other rows, and something else stands there, than it is made in."""
        would = [k for k, case in enumerate(self.cases) if _wrong_entry(mistake, case) is not None]
        answered = [k for k in would if isinstance(self.answers[k], Value)]
        made = sum(self._makes(mistake, k) for k in answered)
        return len(answered) - made > made

    @functools.cached_property
    def _wrong_rows(self) -> list[int]:
        return [k for k in range(len(self.cases)) if self._row(k)]

    @functools.cached_property
    def _in_other_rows(self) -> str:
        return moved_rows(self._all_rows)

    def is_exact(self, mistake: Mistake, k: int) -> bool:
        """Whether a mistake says just this number in a row, or this one rounded. (Words and layouts that are called the
        same are so.)"""
        given, wrong = self._given(k), _wrong_entry(mistake, self.cases[k])
        return not is_number(given) or same_value(given, wrong) or rounded_alike(given, wrong)

    def _rows_of(self, mistake: Mistake) -> int:
        return sum(self._makes(mistake, k) for k in range(len(self.cases)))

    def _makes(self, mistake: Mistake, k: int) -> bool:
        answer, case = self.answers[k], self.cases[k]
        if not isinstance(answer, Value) or (wrong := _wrong_entry(mistake, case)) is None:
            return False
        return same_answer(self.exercise, case, answer.value, wrong) or rounded_alike(answer.value, wrong)

    def _row(self, k: int) -> Miss | None:
        answer, case = self.answers[k], self.cases[k]
        if isinstance(answer, Problem):
            return Miss(in_plain_words(answer))
        if not isinstance(answer, Value):
            return Miss(f"{case.key}: the answer should be a plain value.")
        value = self._as_option(answer.value)
        if same_answer(self.exercise, case, value, self._due(k)) or same_word(value, self._due(k)):
            return None
        return Miss(f"{case.key}: {self._not_so(k)}")

    def _as_option(self, value: Any) -> Any:
        """The option that a word is, spelled as the table does; what is none of them as it is."""
        return next((word for word in self.exercise.options if same_word(value, word)), value)

    def _not_so(self, k: int) -> str:
        answer = self.answers[k]
        assert isinstance(answer, Value)  # else there is nothing that could be wrong
        layout = isinstance(answer.value, tuple) and is_layout_due(self.exercise, self.cases[k])
        return worded(lambda: f"not {spelled(P(*answer.value)) if layout else short(answer.value)}.")


@functools.lru_cache(maxsize=1024)
def _wrong_entry(mistake: Mistake, case: Case) -> Any:
    """What a mistake says in a row of a table; None where it is about another."""
    return mistake.wrong(**case.arguments)
