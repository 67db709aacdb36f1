"""Mistakes that the author of an exercise described; their words are beside them, in the exercise."""

from __future__ import annotations

from dataclasses import dataclass

from grader.findings.finding import Finding, Rank

BOTH = " and "  # between the names of two mistakes


@dataclass(frozen=True)
class KnownMistake(Finding, rank=Rank.KNOWN):
    """A declared mistake gives this result, exactly or almost."""

    name: str
    exactly: bool


@dataclass(frozen=True)
class TwoMistakes(Finding, rank=Rank.KNOWN):
    """Two declared mistakes explain all that is wrong, each in some of the parts."""

    one: str
    other: str


@dataclass(frozen=True)
class MistakeInSomeCases(Finding, rank=Rank.KNOWN):
    """Some cases are right; in all others a declared mistake gives this result."""

    name: str


EXAMPLES = (
    KnownMistake("forgot_psum", exactly=True),
    KnownMistake("forgot_psum", exactly=False),
    TwoMistakes("forgot_psum", "averaged"),
    MistakeInSomeCases("forgot_psum"),
)
