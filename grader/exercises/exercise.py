"""The vocabulary of an exercise: *case*, *check*, *mistake*.

An author describes an exercise once, in `grader/lessons/`:

* a **reference**: what a single device would compute, on plain NumPy values;
* **cases**: what the answer is tried on, drawn afresh from a random generator;
* **mistakes**: wrong answers as a student would write them, whose docstrings are what we say.

Everything expected is computed from these; nothing is stored. The *checks* are the rungs of
`grader.judging`, the same for every exercise of a form.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from grader.arrays.devices import eight_devices
from grader.arrays.words import enumeration
from grader.exercises.case import Case, Draw
from grader.exercises.forms import FORMS, Form


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
class Exercise:
    """One exercise: its worth, its reference, how its cases are drawn, and its mistakes.

    `form` says what an answer is: `"program"`, `"pod"`, `"function"`, `"timetable"`, `"table"` or `"processes"`, each
    of which is a class of `grader.exercises.forms`.

    A program is written with shard_map, unless it is left to the compiler (`by_compiler`). Where it is written
    `against_compiler`, the bytes that a right one sends are held against those of the compiler, which is given the
    reference: JAX must be able to trace it. Every case has then a limit `BytesSent`. A function may have a way `barred`
    by which none of its arrays should come: `FROM_HOST`, `TO_THE_HOST`, `FROM_ANYWHERE` or, where new ones should take
    the memory of those that it was given, `NOT_IN_PLACE`.
    `same`, where equal is too much to ask, says whether two values are the same answer:
    `same(one, other, **arguments)`. A `piece` is one of the model that a learner's accepted answers grow into.
    A gate is checked in a notebook once the exercise named by `after` was right there; grading judges it all the same.
    Where the reference is an experiment, a `formula` may stand beside it, which returns the same as a student would
    compute it: a wrong answer is held against what small changes to it return.
    `options` says of a word that may be chosen in a table what it stands for: who chose it in a wrong row is told so,
    where no mistake does.
    `stand_for` says what a wrong answer would stand for, in words that are true of it and do not tell the right one.
    `once`: each word of `options` is the answer of one row alone, as the text says.
    `questions` say of rows, by a part of their keys, what is asked there: who gave a wrong answer of which nothing else
    is known is asked that again, in other words.
    `facts` are what a text says, by what a student would call it: of a wrong one it is told which of them are wrong.
    `parts` are what the entries of a tuple are called that processes return: "the number of all devices".
    `taught_in` names the lessons, such as 14_fsdp, to which who misses a check is sent.
    """

    name: str
    points: float
    reference: Callable[..., Any]
    form: str = "program"
    mistakes: list[Mistake] = field(default_factory=list)
    mesh_shapes: tuple[tuple[int, ...], ...] = ((4, 2), (2, 4), (8, 1), (1, 8))
    drawn: Callable[[Draw], Iterable[Case] | Case] | None = None
    by_compiler: bool = False
    against_compiler: bool = False
    barred: str = ""
    same: Callable[..., bool] | None = None
    piece: bool = False
    after: str = ""
    taught_in: tuple[str, ...] = ()
    formula: Callable[..., Any] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    stand_for: Callable[..., str] | None = None
    once: bool = False
    questions: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    facts: Callable[[Any], Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"{self.name}: no form of exercise is called {self.form!r}, but {', '.join(FORMS)} are")

    @property
    def kind(self) -> Form:
        return FORMS[self.form]

    @property
    def where_taught(self) -> str:
        """The sentence that sends a student there; "" where there is none."""
        if not self.taught_in:
            return ""
        pieces = "The pieces of it are" if len(self.taught_in) > 1 else "The piece is"
        return f"{pieces} in {enumeration([f'`{lesson}`' for lesson in self.taught_in])}."

    def question(self, row: str) -> str:
        """What is asked in a row of a table, in other words; "" where there are none."""
        return next((words for part, words in self.questions.items() if part in row), "")

    def with_points(self, points: float) -> Exercise:
        """The same exercise, worth so many points."""
        return self if points == self.points else replace(self, points=points)

    def cases(self, draw: Callable[[Draw], Any]) -> Callable[[Draw], Any]:
        """Decorator: the function that yields (or returns) cases for one `Draw`."""
        self.drawn = draw
        return draw

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
        if self.drawn is None:
            raise ValueError(f"{self.name} has no cases: decorate a function with @{self.name}.cases")
        eight_devices()  # some cases are made by experiments
        rng = np.random.default_rng([seed, *self.name.encode()])
        rounds = self.kind.rounds(rng, self.mesh_shapes, thorough=thorough)
        return tuple(case for draw in rounds for case in _listed(self.drawn(draw)))

    def by_formula(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: what the reference finds by an experiment, as a student computes it."""
        self.formula = formula
        return formula

    def stands_for(self, words: Callable[..., str]) -> Callable[..., str]:
        """Decorator: the function of a wrong answer and of the row's arguments that says what it would stand for."""
        self.stand_for = words
        return words

    def mistaken(self, mistake: Mistake) -> Any:
        """The whole answer of a student who makes this mistake."""
        return self.kind.mistaken(self.draw_cases(), mistake.wrong, self.reference)


def _listed(drawn: Any) -> list[Case]:
    return [drawn] if isinstance(drawn, Case) else list(drawn)
