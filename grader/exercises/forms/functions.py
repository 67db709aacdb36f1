"""Functions of plain values, which are called."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from grader.arrays.described import WITHOUT_WAITING, built, moved, waiting_refused
from grader.exercises.answers import Answer, Ask, Value
from grader.exercises.calling import must_be_callable, something
from grader.exercises.case import Case
from grader.exercises.exercise import ValueExercise
from grader.exercises.own_cells import result_and_line
from grader.exercises.plain import plain


@dataclass(eq=False)
class FunctionExercise(ValueExercise):
    """A function of plain Python and NumPy values, and of meshes and arrays that are on devices.

    `grader.arrays.described` says how these last are written. The function is called once per case, and must raise
    ValueError if the reference does.

    `barred` is a way by which none of its arrays should come: `FROM_HOST`, `TO_THE_HOST`, `FROM_ANYWHERE`, or
    `NOT_IN_PLACE` if new arrays should take the memory of those that it was given.
    If `way_counts`, half of the points are for that.
    If it `must_not_wait`, `block_until_ready` is an error in it, and its arrays should not come `FROM_HOST`.
    If the reference is an experiment, a `formula` may stand beside it, which returns the same as a student would
    compute it: a wrong answer is compared with what small changes to it return.
    `facts` are what a text says, by what a student would call it: a student with a wrong text is told which of them
    are wrong.
    """

    form: ClassVar[str] = "function"

    barred: str = ""
    way_counts: bool = False
    must_not_wait: bool = False
    formula: Callable[..., Any] | None = None
    facts: Callable[[Any], Mapping[str, Any]] | None = None

    @staticmethod
    def answer(work: Any, ask: Ask) -> Answer:
        return value_of_call(work, ask)

    def ask(self, case: Case) -> Ask:
        return replace(super().ask(case), barred=WITHOUT_WAITING if self.must_not_wait else self.barred)

    def by_formula(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: what the reference finds by an experiment, as a student computes it."""
        self.formula = formula
        return formula


def value_of_call(work: Any, ask: Ask) -> Value:
    """What a function returns when it is called with the arguments of an ask."""
    must_be_callable(work)
    with waiting_refused() if ask.barred == WITHOUT_WAITING else contextlib.nullcontext():
        result, line = result_and_line(work, _built(ask))
    return Value(plain(something(result, work)), moved(work, functools.partial(_built, ask), ask.barred), line)


def _built(ask: Ask) -> dict[str, Any]:
    return built(copy.deepcopy(dict(ask.arguments)))  # a function may change what it is given
