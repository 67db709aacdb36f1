"""Functions that run in several processes at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from grader.exercises.answers import Answer, Ask, Problem, Script
from grader.exercises.calling import must_be_callable
from grader.exercises.case import Case
from grader.exercises.exercise import ValueExercise
from grader.exercises.script import script_of, untouched


@dataclass(eq=False)
class ProcessExercise(ValueExercise):
    """A function `main(process_id, num_processes, ...)` that is run in several processes at once.

    The case's mesh is `{"processes": 4, "devices": 2}`; the reference says, on one device, what each is to return.
    `parts` are what the elements of a tuple that processes return are called: "the number of all devices".
    """

    form: ClassVar[str] = "processes"
    costly: ClassVar[bool] = True

    parts: tuple[str, ...] = ()

    @staticmethod
    def answer(work: Any, ask: Ask) -> Answer:
        must_be_callable(work)
        source = script_of(work)
        return Problem("starter") if untouched(work) else Script(source, work.__name__)

    def ask(self, case: Case) -> Ask:
        return replace(super().ask(case), arguments={})  # the function is only written down, not called
