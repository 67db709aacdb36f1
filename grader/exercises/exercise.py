"""The vocabulary of an exercise: *case*, *check*, *mistake*.

An author describes an exercise once, in `grader/lessons/`:

* a **reference**: what a single device would compute, on plain NumPy values;
* **cases**: what the answer is tried on, drawn afresh from a random generator;
* **mistakes**: wrong answers as a student would write them, whose docstrings are what we say.

Everything expected is computed from these; nothing is stored. The *checks* are in
`grader.judging`, the same for every exercise of a form.

This file has what all exercises share. An exercise is of the class of its form, in `grader.exercises.forms`.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import jax
import numpy as np

from grader.arrays.devices import eight_devices
from grader.arrays.laid import holds_arrays
from grader.exercises.answers import Answer, Ask, Layout
from grader.exercises.case import Case, Draw


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that students give. `words` is what we say to the student who gave it."""

    name: str
    words: str
    wrong: Callable[..., Any]

    def spellings(self) -> list[Callable[..., Any]]:
        """The wrong answer with shard_map's check off and, where it takes `check_vma`, also on."""
        if "check_vma" not in inspect.signature(self.wrong).parameters:
            return [self.wrong]
        return [functools.partial(self.wrong, check_vma=check) for check in (False, True)]


@dataclass(eq=False)
class Exercise(ABC):
    """One exercise: its worth, its reference, how its cases are drawn, and its mistakes.

    A `piece` is one of the model that a learner's accepted answers grow into.
    A gate is checked in a notebook once the exercise named by `after` was right there; grading judges it all the same.
    `taught_in` names the lessons, such as 14_fsdp, to which a student who misses a check is sent.

    Each form is a subclass. Its name, `form`, is what crosses the wire; `costly`: an answer takes seconds to be judged.
    """

    form: ClassVar[str]
    costly: ClassVar[bool] = False

    name: str
    points: float
    reference: Callable[..., Any]
    mistakes: list[Mistake] = field(default_factory=list)
    drawn: Callable[[Draw], Iterable[Case] | Case] | None = None
    piece: bool = False
    after: str = ""
    taught_in: tuple[str, ...] = ()

    @staticmethod
    @abstractmethod
    def answer(work: Any, ask: Ask) -> Answer:
        """What the student's work answers to one ask. Raises whatever the work raises, or Refused.

        This runs behind the walls, so it needs nothing of the exercise but its form.
        """

    def ask(self, case: Case) -> Ask:
        """What a case asks of an answer."""
        arguments = {name: _unvalued(argument) for name, argument in case.arguments.items()}
        return Ask(
            case.mesh,
            arguments,
            key=case.key,
            explicit=case.explicit,
            cotangents=_unvalued(case.cotangents),
            pod=case.pod,
        )

    def rounds(self, rng: np.random.Generator, *, thorough: bool) -> list[Draw]:
        """What cases are drawn with."""
        return [Draw(rng)]

    def mistaken(self, mistake: Mistake) -> Any:
        """The full answer of a student who makes this mistake."""
        return mistake.wrong

    def with_points(self, points: float) -> Self:
        """The same exercise, worth so many points."""
        return self if points == self.points else replace(self, points=points)

    def cases(self, draw: Callable[[Draw], Any]) -> Callable[[Draw], Any]:
        """Decorator: the function that yields (or returns) cases for one `Draw`."""
        self.drawn = draw
        return draw

    def mistake(self, wrong: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: a wrong answer; its docstring is what the student hears."""
        words = inspect.cleandoc(wrong.__doc__ or "")
        if not words:
            raise ValueError(f"the mistake {wrong.__name__} of {self.name} has nothing to say")
        self.mistakes.append(Mistake(wrong.__name__, words, wrong))
        return wrong

    @functools.lru_cache  # noqa: B019 - exercises live as long as the process
    def draw_cases(self, seed: int = 0, *, thorough: bool = False) -> tuple[Case, ...]:
        """The cases of one run: a few for the notebook, every mesh and more sizes for grading."""
        eight_devices()  # some cases are made by experiments
        rng = np.random.default_rng([seed, *self.name.encode()])
        return tuple(case for draw in self.rounds(rng, thorough=thorough) for case in self.cases_of(draw))

    def cases_of(self, draw: Draw) -> list[Case]:
        """The cases of one `Draw`."""
        if self.drawn is None:
            raise ValueError(f"{self.name} has no cases: decorate a function with @{self.name}.cases")
        drawn = self.drawn(draw)
        return [drawn] if isinstance(drawn, Case) else list(drawn)


@dataclass(eq=False)
class ValueExercise(Exercise):
    """An exercise whose answers come to plain values, which are compared with what the reference returns.

    If equality is too much to ask, `same` says whether two values are the same answer:
    `same(one, other, **arguments)`.
    """

    same: Callable[..., bool] | None = None


def _unvalued(argument: Any) -> Any:
    if not holds_arrays(argument):
        return argument
    return jax.tree.map(lambda a: Layout(a.value.shape, str(a.value.dtype), a.spec), argument)
