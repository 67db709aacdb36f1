"""Three questions from earlier lessons, drawn afresh each time: to recall is to learn.

A lesson begins with `review = grader.review("04_automatic")`. Nothing is graded: `review.check(answers)`
says at once what is right, and why. Questions are made in `grader/reviews/`, one module a lesson.
"""

from __future__ import annotations

import html
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.answers import plain
from grader.behaviour import same_value

SEED = "GRADER_REVIEW_SEED"  # for authors: the same questions whenever a lesson is built


@dataclass(frozen=True)
class Question:
    """What is asked, the right answer (a plain value, worked out and not stored), and why it is right."""

    ask: str
    answer: Any
    why: str

    def accepts(self, given: Any) -> bool:
        if isinstance(given, str) and isinstance(self.answer, str):
            return given.strip().casefold() == self.answer.casefold()
        return same_value(plain(given), plain(self.answer))


@dataclass(frozen=True)
class Text:
    """Lines to show: as they are in a terminal, as paragraphs in a notebook."""

    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        return "".join(f'<p style="margin:.4em 0;white-space:pre-wrap">{html.escape(line)}</p>' for line in self.lines)


@dataclass(frozen=True)
class Review:
    """The questions of one run of a lesson."""

    questions: tuple[Question, ...]

    @property
    def _asked(self) -> Text:
        return Text(tuple(f"{k}. {q.ask}" for k, q in enumerate(self.questions, 1)))

    def __repr__(self) -> str:
        return repr(self._asked)

    def _repr_html_(self) -> str:
        return self._asked._repr_html_()

    def check(self, answers: Sequence[Any]) -> Text:
        """For each answer whether it is right, and why; an answer `...` is left open."""
        if len(answers) != len(self.questions):
            return Text((f"There are {len(self.questions)} questions, and {len(answers)} answers.",))
        return Text(tuple(f"{k}. {_said(question, given)}" for k, (question, given)
                          in enumerate(zip(self.questions, answers, strict=True), 1)))


def _said(question: Question, given: Any) -> str:
    if given is ...:
        return "Open: write your answer in place of the `...`, then run this cell again."
    if question.accepts(given):
        return f"✓ Right. {question.why}"
    return f"✗ Not {given!r}, but {question.answer!r}. {question.why}"


def fresh(seed: int | None = None) -> np.random.Generator:
    """A generator that is new every time; with a seed, or while a lesson is built, the same again."""
    return np.random.default_rng(seed if seed is not None else int(os.environ.get(SEED, secrets.randbits(32))))


def review(lesson: str, count: int = 3, seed: int | None = None) -> Review:
    """Fresh questions for a lesson, from those before it: the last one, the one before, and an older one.

    Args:
      lesson: the lesson that begins, such as "04_automatic".
      count: how many questions.
      seed: for the same questions again; by default they are new every time.
    """
    from grader.reviews import MAKERS  # here, so that `import grader` stays quick

    rng = fresh(seed)
    earlier = sorted((name for name in MAKERS if name < lesson), reverse=True)
    if not earlier:
        return Review(())
    picked: list[Callable[[np.random.Generator], Question]] = []
    for back in (1, 2, 5, *range(1, count)):
        makers = [m for m in MAKERS[earlier[min(back, len(earlier)) - 1]] if m not in picked]
        if makers and len(picked) < count:
            picked.append(makers[rng.integers(len(makers))])
    return Review(tuple(maker(rng) for maker in picked))
