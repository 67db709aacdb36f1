"""Tables: every row is a check of its own, tried whatever became of the others."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import spelled
from grader.exercises.answers import Problem, Value
from grader.exercises.case import Case
from grader.exercises.errors import in_plain_words
from grader.exercises.exercise import Mistake
from grader.exercises.verdict import Outcome, Verdict
from grader.judging.differing import short
from grader.judging.ladder import Ladder, Rung, is_absent
from grader.judging.miss import Miss, unanswered
from grader.judging.relations import relations_of
from grader.judging.values import expected_value, is_layout_due, same_answer, worded

SMALL = 20  # up to here a number is a count: one more or less is another


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
        return Verdict(self.exercise.name, tuple(outcomes))

    def _outcome(self, rung: Rung, k: int) -> Outcome:
        name = self.exercise.name
        if is_absent(self.answers[k]):
            return Outcome.left_open(name, rung.check, rung.worth, f"{rung.check}: no answer yet.")
        miss = rung.miss(k)
        return (
            self.missed(rung, k, miss, self.hint(rung.check, k))
            if miss
            else Outcome.earned(name, rung.check, rung.worth)
        )

    def signature(self, check: str, k: int) -> str:
        """What kind of answer is due, where it is of another; else what can be said without telling numbers."""
        answer, due = self.answers[k], self._due(k)
        if not isinstance(answer, Value):
            return ""
        return _kind_due(answer.value, due, self._words) or _untold(answer.value, due)

    @functools.cached_property
    def _words(self) -> list[str]:
        """The words among which a student chooses in this table; none where to list them would give answers away."""
        words = sorted({due for k in range(len(self.cases)) if isinstance(due := self._due(k), str)})
        return words if len(words) <= len(self.cases) / 2 else []

    def _due(self, k: int) -> Any:
        return expected_value(self.exercise, self.cases[k])

    def explanation(self, check: str, failing: int) -> Mistake | None:
        """The mistake that makes this entry of the row. Of several, the one that makes most of the rows."""
        alike = [m for m in self.exercise.mistakes if self._makes(m, failing)]
        return max(alike, key=self._rows_of, default=None)

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
        if same_answer(self.exercise, case, answer.value, self._due(k)) or _same_word(answer.value, self._due(k)):
            return None
        return Miss(f"{case.key}: {self._not_so(k)}")

    def _not_so(self, k: int) -> str:
        answer = self.answers[k]
        assert isinstance(answer, Value)  # else there is nothing that could be wrong
        layout = isinstance(answer.value, tuple) and is_layout_due(self.exercise, self.cases[k])
        return worded(lambda: f"not {spelled(P(*answer.value)) if layout else short(answer.value)}.")


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
    return next((words for words in relations_of(value, due, {}) if not re.search(r"\d|\bsign\b", words)), "")


def _rounded_alike(one: Any, other: Any) -> bool:
    """Whether two numbers differ by rounding: `// 2` gives another than `/ 2`."""
    numbers = [x for x in (one, other) if isinstance(x, (int, float)) and not isinstance(x, bool)]
    return len(numbers) == 2 and abs(other) > SMALL and abs(one - other) <= max(0.5, 1e-3 * abs(other))


@functools.lru_cache(maxsize=1024)
def _wrong_entry(mistake: Mistake, case: Case) -> Any:
    """What a mistake says in a row of a table; None where it is about another."""
    return mistake.wrong(**case.arguments)
