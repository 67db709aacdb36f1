"""Tables: one choice for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from grader.exercises.answers import Answer, Ask, Problem, Value
from grader.exercises.case import Case, Draw
from grader.exercises.exercise import Mistake, ValueExercise
from grader.exercises.own_cells import line_of_a_row
from grader.exercises.plain import plain
from grader.findings.problems import Refusal
from grader.programs.program import Refused


@dataclass(eq=False)
class TableExercise(ValueExercise):
    """A dict from each case's `key` to the option chosen; the reference does the experiment.

    `options` says of a word that may be chosen what it stands for: a student who chose it in a wrong row is told so,
    unless a mistake says more.
    `stand_for` says what a wrong answer would stand for, in words that are true of it and do not tell the right one.
    `questions` say of rows, by a part of their keys, what is asked there: a student whose wrong answer nothing else
    explains is asked that again, in other words.
    """

    form: ClassVar[str] = "table"

    options: Mapping[str, str] = field(default_factory=dict)
    stand_for: Callable[..., str] | None = None
    questions: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def answer(work: Any, ask: Ask) -> Answer:
        if not isinstance(work, Mapping):
            raise Refused(Refusal("no dict", (type(work).__name__,)))
        if ask.key not in work or work[ask.key] is None or work[ask.key] is ...:
            return Problem("starter")
        value = plain(work[ask.key])
        listable = isinstance(value, np.ndarray) and value.dtype.kind != "c"  # complex ones cross as they are
        listed = value.tolist() if listable else value
        return Value(listed, line=line_of_a_row(ask.key, work[ask.key]))

    def mistaken(self, mistake: Mistake) -> dict[str, Any]:
        """Every row that the mistake is about; the others as they should be."""

        def entry(case: Case) -> Any:
            wrong = mistake.wrong(**case.arguments)
            return self.reference(**case.arguments) if wrong is None else wrong

        return {case.key: entry(case) for case in self.draw_cases()}

    def rows(
        self,
        keys: Iterable[str] | Callable[[], Iterable[str]],
        mesh: Mapping[str, int] | None = None,
        argument: str = "row",
    ) -> None:
        """The cases of a table that needs no data: one for each key, which is also its only argument."""

        def drawn(draw: Draw) -> list[Case]:
            return [Case({argument: key}, mesh or {}, key=key) for key in (keys() if callable(keys) else keys)]

        self.drawn = drawn

    def stands_for(self, words: Callable[..., str]) -> Callable[..., str]:
        """Decorator: the function of a wrong answer and of the row's arguments that says what it would stand for."""
        self.stand_for = words
        return words

    def question(self, row: str) -> str:
        """What is asked in a row, in other words; "" if there are none."""
        return next((words for part, words in self.questions.items() if part in row), "")
