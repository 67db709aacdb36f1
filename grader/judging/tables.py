"""Tables: every row is a check of its own, made whatever became of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import spelled
from grader.exercises.answers import Problem, Value
from grader.exercises.errors import stopped
from grader.exercises.forms import TableExercise
from grader.exercises.verdict import Blamed, Outcome, Verdict, explained_rows
from grader.findings.tables import NoAnswerYet, RowRefused, SameAsRow, WrongRow
from grader.findings.values import NotPlain
from grader.judging.differing import short
from grader.judging.judgment import Check, Explain, Judgment, is_absent, unexplained
from grader.judging.miss import Miss, unanswered
from grader.judging.values import expected_value, is_spec_expected, same_answer
from grader.programs.origins import VALUE


class TableJudgment(Judgment):
    """A check for each row, each worth an equal share and independent of the others."""

    exercise: TableExercise

    @property
    def checks(self) -> Sequence[Check]:
        share = self.exercise.points / len(self.cases)
        return [Check(case.key, share, self.row) for case in self.cases]

    def verdict_on_checks(self, explain: Explain) -> Verdict:
        """Every row earns its share; a mistake that was made in several is explained in the first."""
        outcomes: list[Outcome] = []
        for k, check in enumerate(self.checks):
            outcome = self._outcome(check, k, explain)
            earlier = next((o for o in outcomes if o.mistake and o.mistake == outcome.mistake), None)
            if earlier:
                outcome = replace(outcome, findings=(outcome.findings[0], SameAsRow(earlier.check)))
            outcomes.append(outcome)
        return Verdict(self.exercise.name, tuple(outcomes), blamed=self._blamed_rows(outcomes))

    def verdict(self, explain: Explain = unexplained) -> Verdict:
        first = self.answers[0]
        if is_absent(first) and all(map(is_absent, self.answers)):
            return unanswered(self.exercise, first)
        return self.verdict_on_checks(explain)

    def _blamed_rows(self, outcomes: Sequence[Outcome]) -> Blamed | None:
        """The rows of which it is explained why they are wrong."""
        told = explained_rows(outcomes)
        rows = [k for k, one in enumerate(outcomes) if one in told and isinstance(self.answers[k], Value)]
        return Blamed(rows[0], (0,), (VALUE,), others=tuple(rows[1:])) if rows else None

    def _outcome(self, check: Check, k: int, explain: Explain) -> Outcome:
        name = self.exercise.name
        if is_absent(self.answers[k]):
            return Outcome.left_open(name, check.name, check.points, (NoAnswerYet(check.name),))
        why = check.miss(k)
        if why is None:
            return Outcome.earned(name, check.name, check.points)
        return self.missed(check, why, explain(check.name, k, why))

    def misses(self, check: str, case: int) -> bool:
        return self.row(case) is not None

    def due(self, k: int) -> Any:
        """What is expected in a row."""
        return expected_value(self.exercise, self.cases[k])

    def row(self, k: int) -> Miss | None:
        """Why a row is wrong, if it is."""
        answer, case = self.answers[k], self.cases[k]
        if isinstance(answer, Problem):
            return Miss((RowRefused(case.key, stopped(answer)),))
        if not isinstance(answer, Value):
            return Miss((RowRefused(case.key, NotPlain()),))
        value = self.as_option(answer.value)
        if same_answer(self.exercise, case, value, self.due(k)) or same_word(value, self.due(k)):
            return None
        return Miss((WrongRow(case.key, self._shown(k)),))

    def as_option(self, value: Any) -> Any:
        """The option that a word is, spelled as the table does; what is none of them as it is."""
        return next((word for word in self.exercise.options if same_word(value, word)), value)

    def _shown(self, k: int) -> str:
        """The answer in a row, as it is shown; a student's value may have any form."""
        answer = self.answers[k]
        assert isinstance(answer, Value)  # else there is nothing that could be wrong
        try:
            spec = isinstance(answer.value, tuple) and is_spec_expected(self.exercise, self.cases[k])
            return spelled(P(*answer.value)) if spec else short(answer.value)
        except Exception:
            return type(answer.value).__name__


def same_word(one: Any, other: Any) -> bool:
    """Whether two words differ by nothing but capitals, blanks and hyphens."""
    return isinstance(one, str) and isinstance(other, str) and _letters(one) == _letters(other)


def _letters(word: str) -> str:
    return "".join(word.split()).casefold().replace("-", "_")
