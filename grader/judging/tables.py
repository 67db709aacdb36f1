"""Tables: every row is a check of its own, tried whatever became of the others."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from grader.exercises.answers import Problem, Value
from grader.exercises.case import Case
from grader.exercises.exercise import Mistake
from grader.exercises.verdict import Outcome, Verdict
from grader.judging.differing import short
from grader.judging.errors import in_plain_words
from grader.judging.ladder import Ladder, Rung, is_absent
from grader.judging.miss import Miss, unanswered
from grader.judging.values import expected_value, same_answer, worded

SMALL = 20  # up to here a number is a count: one more or less is another
HINT = "Do the experiment: what does each device hold, and what does it lack?"


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
        """Every row earns its share; the first wrong one is explained."""
        return Verdict(self.exercise.name, tuple(self._outcome(rung, k) for k, rung in enumerate(self.rungs)))

    def _outcome(self, rung: Rung, k: int) -> Outcome:
        name = self.exercise.name
        if is_absent(self.answers[k]):
            return Outcome.left_open(name, rung.check, rung.worth, f"{rung.check}: no answer yet.")
        miss = rung.miss(k)
        return self.missed(rung, k, miss) if miss else Outcome.earned(name, rung.check, rung.worth)

    def signature(self, check: str, k: int) -> str:
        return HINT if isinstance(self.answers[k], Value) else ""

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
        if same_answer(self.exercise, case, answer.value, expected_value(self.exercise, case)):
            return None
        value = answer.value
        return Miss(f"{case.key}: {worded(lambda: f'not {short(value)}.')}")


def _rounded_alike(one: Any, other: Any) -> bool:
    """Whether two numbers differ by rounding: `// 2` gives another than `/ 2`."""
    numbers = [x for x in (one, other) if isinstance(x, (int, float)) and not isinstance(x, bool)]
    return len(numbers) == 2 and abs(other) > SMALL and abs(one - other) <= max(0.5, 1e-3 * abs(other))


@functools.lru_cache(maxsize=1024)
def _wrong_entry(mistake: Mistake, case: Case) -> Any:
    """What a mistake says in a row of a table; None where it is about another."""
    return mistake.wrong(**case.arguments)
