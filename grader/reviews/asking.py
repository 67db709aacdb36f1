"""Three questions from earlier lessons, drawn afresh each time: to recall is to learn.

A lesson begins with `review = grader.review("04_automatic")`. Nothing is graded: `review.check(answers)`
says at once what is right, and why. Questions are made in `grader/reviews/`, one module a lesson.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import types
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader import reviews
from grader.arrays.fresh import fresh
from grader.reviews.question import Question, Text

Maker = Callable[[np.random.Generator], Question]


@functools.cache
def makers() -> dict[str, list[Maker]]:
    """Who makes questions, by the lesson they belong to.

    A module of a lesson has `LESSON`, and public functions of a random generator `rng` that each make one `Question`.
    """
    modules = [
        importlib.import_module(f"{reviews.__name__}.{info.name}") for info in pkgutil.iter_modules(reviews.__path__)
    ]
    return {module.LESSON: _made_by(module) for module in modules if hasattr(module, "LESSON")}


def _made_by(module: types.ModuleType) -> list[Maker]:
    return [
        f
        for name, f in vars(module).items()
        if inspect.isfunction(f)
        and not name.startswith("_")
        and f.__module__ == module.__name__
        and list(inspect.signature(f).parameters) == ["rng"]
    ]


@dataclass(frozen=True)
class Review:
    """The questions of one run of a lesson."""

    questions: tuple[Question, ...]

    @property
    def _text(self) -> Text:
        return Text(tuple(f"{k}. {q.ask}" for k, q in enumerate(self.questions, 1)))

    def __repr__(self) -> str:
        return repr(self._text)

    def _repr_html_(self) -> str:
        return self._text._repr_html_()

    def check(self, answers: Sequence[Any]) -> Text:
        """For each answer whether it is right, and why; an answer `...` is left open."""
        if len(answers) != len(self.questions):
            return Text((f"There are {len(self.questions)} questions, and {len(answers)} answers.",))
        return Text(
            tuple(
                f"{k}. {_reply(question, answer)}"
                for k, (question, answer) in enumerate(zip(self.questions, answers, strict=True), 1)
            )
        )


def _reply(question: Question, answer: Any) -> str:
    if answer is ...:
        return "Open: write your answer in place of the `...`, then run this cell again."
    if question.accepts(answer):
        return f"✓ Right. {question.why}"
    return f"✗ Not {answer!r}, but {question.answer!r}. {question.why}"


def review(lesson: str, count: int = 3, seed: int | None = None, of: Collection[str] | None = None) -> Review:
    """Fresh questions for a lesson, from those before it: the last one, the one before, and an older one.

    Args:
      lesson: the lesson that begins, such as "04_automatic".
      count: how many questions.
      seed: for the same questions again; by default they are new every time.
      of: the lessons that may be asked about, where a course has not all of them.

    Example:
      >>> len(grader.review("04_automatic", count=2).questions)
      2
    """
    rng, makers_of = fresh(seed), makers()
    earlier = sorted((name for name in makers_of if name < lesson and (of is None or name in of)), reverse=True)
    if not earlier:
        return Review(())
    picked: list[Maker] = []
    for back in (1, 2, 5, *range(1, count)):
        left = [m for m in makers_of[earlier[min(back, len(earlier)) - 1]] if m not in picked]
        if left and len(picked) < count:
            picked.append(left[rng.integers(len(left))])
    return Review(tuple(maker(rng) for maker in picked))
