"""A question that asks for a plain value, and lines to show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
class Text:
    """Lines to show: as they are in a terminal, as paragraphs in a notebook."""

    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        shown = map(as_inline_html, self.lines)
        return "".join(f'<p style="margin:.4em 0;white-space:pre-wrap">{line}</p>' for line in shown)
