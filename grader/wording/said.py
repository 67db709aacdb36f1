"""The parts of a card, and the table of templates: one for each kind of finding.

A module of this room writes the templates of some kinds:

    @says(WrongShape)
    def _(f: WrongShape) -> Said:
        return Said("The shape is wrong.", expected=shape(f.expected), found=shape(f.found))

A template that needs the exercise (the words of a mistake are beside it) takes it as a second argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from grader.arrays.words import legible
from grader.exercises.exercise import Exercise
from grader.findings.finding import Finding

_T = TypeVar("_T", bound=Callable[..., "Said"])
TEMPLATES: dict[type[Finding], Callable[[Any, Exercise | None], Said]] = {}


@dataclass(frozen=True)
class Said:
    """What a card says, in this order; a part that is "" is left out.

    `headline`: the one fact, ten words at most. `expected` and `found`: values. `where`: device, shard, element, cases.
    `detail`: lines that are quoted, such as JAX's message, or a list of collectives. `cause`: at most two sentences.
    `question`: the last one; if there is nothing to ask, what to do next.
    """

    headline: str = ""
    expected: str = ""
    found: str = ""
    where: str = ""
    detail: str = ""
    cause: str = ""
    question: str = ""


def says(kind: type[Finding]) -> Callable[[_T], _T]:
    """Decorator: the template of this kind of finding."""

    def register(template: _T) -> _T:
        with_exercise = len(inspect.signature(template).parameters) > 1
        TEMPLATES[kind] = template if with_exercise else lambda finding, _: template(finding)
        return template

    return register


def said(finding: Finding, exercise: Exercise | None = None) -> Said:
    """What one finding says, without characters of a stranger's that steer what shows them."""
    words = TEMPLATES[type(finding)](finding, exercise)
    return Said(**{f.name: legible(getattr(words, f.name)) for f in fields(Said)})


def together(findings: Sequence[Finding], exercise: Exercise | None = None) -> Said:
    """What several findings say on one card: the first is what is wrong, the others explain it, the best first.

    What explains it comes before what the first says of the cause; there is one question, if the cause asks none.
    """
    parts = [said(finding, exercise) for finding in findings]
    explaining = [*parts[1:], *parts[:1]]
    first = {f.name: next(filter(None, (getattr(one, f.name) for one in parts)), "") for f in fields(Said)}
    asking = next((one for one in explaining if one.cause), next((one for one in explaining if one.question), Said()))
    others = "" if "?" in asking.cause else next(filter(None, (one.question for one in explaining)), "")
    return Said(
        **first
        | {
            "where": " · ".join(filter(None, (one.where for one in parts))),
            "detail": "\n\n".join(filter(None, (one.detail for one in parts))),
            "cause": asking.cause,
            "question": _asked_once(asking.question or others, asking.cause),
        }
    )


def _asked_once(question: str, cause: str) -> str:
    """A question, unless the cause says it already: an author's words may be both."""
    return "" if question in cause else question


def in_short(finding: Finding, exercise: Exercise | None = None) -> str:
    """What a finding says without its cause, in a line."""
    words = said(finding, exercise)
    return " ".join(f"{words.headline} {words.where} {words.detail}".split())
