"""A question that asks for a plain value, who makes it, and lines to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grader.arrays.numbers import same_value
from grader.arrays.words import as_inline_html
from grader.exercises.plain import plain


@dataclass(frozen=True)
class Question:
    """What is asked, the right answer (a plain value, worked out and not stored), and why it is right.

    `given` are the facts that the answer follows from, by name, so that it can be worked out again without the words.
    """

    ask: str
    answer: Any
    why: str
    given: Mapping[str, Any] = field(default_factory=dict)

    def accepts(self, reply: Any) -> bool:
        if isinstance(reply, str) and isinstance(self.answer, str):
            return reply.strip().casefold() == self.answer.casefold()
        return same_value(plain(reply), plain(self.answer))


@dataclass(frozen=True)
class Maker:
    """Makes one kind of question; `places` are what it asks about: exercises by name, parts by number.

    A question of the core needs nothing that only the lesson's stretch teaches.
    """

    make: Callable[[np.random.Generator], Question]
    is_core: bool
    places: tuple[str | int, ...]

    @property
    def name(self) -> str:
        return self.make.__name__

    def __call__(self, rng: np.random.Generator) -> Question:
        return self.make(rng)


def core(*places: str | int) -> Callable[[Callable[[np.random.Generator], Question]], Maker]:
    """Declares that a question is about the core of its lesson, and about which places in it."""
    return lambda make: Maker(make, True, places)


def stretch(*places: str | int) -> Callable[[Callable[[np.random.Generator], Question]], Maker]:
    """Declares that a question is about what only the stretch of its lesson teaches."""
    return lambda make: Maker(make, False, places)


@dataclass(frozen=True)
class Text:
    """Lines to show: as they are in a terminal, as paragraphs in a notebook."""

    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        shown = map(as_inline_html, self.lines)
        return "".join(f'<p style="margin:.4em 0;white-space:pre-wrap">{line}</p>' for line in shown)
