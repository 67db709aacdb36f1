"""Three questions from earlier lessons, drawn afresh each time: to recall is to learn.

A lesson begins with `review = grader.review("04_automatic")`. Nothing is graded: `review.check(answers)`
says at once what is right, and why. Questions are made in a lesson's own `review.py`. They are about the lessons'
cores; those about stretch are asked only where one asks for them.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader import lessons
from grader.arrays.fresh import fresh
from grader.questions import Maker, Question, Text


@functools.cache
def makers() -> dict[str, list[Maker]]:
    """Who makes questions, by the lesson they belong to.

    A lesson's `review` has `LESSON`, and functions declared as `core` or `stretch` that each make one `Question`.
    """
    topics = [info.name for info in pkgutil.iter_modules(lessons.__path__) if info.ispkg]
    reviews = [importlib.import_module(f"{lessons.__name__}.{topic}.review") for topic in topics]
    return {of_one.LESSON: [one for one in vars(of_one).values() if isinstance(one, Maker)] for of_one in reviews}


@dataclass(frozen=True, repr=False)
class Review(Text):
    """The questions of one run of a lesson, and their text."""

    questions: tuple[Question, ...] = ()

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


def review(
    lesson: str, count: int = 3, seed: int | None = None, of: Collection[str] | None = None, stretch: bool = False
) -> Review:
    """Fresh questions for a lesson, from the core of those before it: the last one, the one before, and an older one.

    Args:
      lesson: the lesson that begins, such as "04_automatic".
      count: how many questions.
      seed: for the same questions again; by default they are new every time.
      of: the lessons that may be asked about, where a course has not all of them.
      stretch: questions about what only the stretch of these lessons teaches, each marked so.

    Example:
      >>> len(grader.review("04_automatic", count=2).questions)
      2
    """
    rng = fresh(seed)
    makers_of = {name: [m for m in all_of_it if m.is_core is not stretch] for name, all_of_it in makers().items()}
    may_be_asked = (name for name, some in makers_of.items() if some and name < lesson and (of is None or name in of))
    earlier = sorted(may_be_asked, reverse=True)
    if not earlier:
        return Review(())
    picked: dict[Maker, str] = {}
    for back in (1, 2, 5, *range(1, count)):
        about = earlier[min(back, len(earlier)) - 1]
        left = [m for m in makers_of[about] if m not in picked]
        if left and len(picked) < count:
            picked[left[rng.integers(len(left))]] = about
    questions = [maker(rng) for maker in picked]
    if stretch:
        questions = [
            replace(question, ask=f"(Stretch of {about}.) {question.ask}")
            for question, about in zip(questions, picked.values(), strict=True)
        ]
    return Review(tuple(f"{k}. {q.ask}" for k, q in enumerate(questions, 1)), tuple(questions))
