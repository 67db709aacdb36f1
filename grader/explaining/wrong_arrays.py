"""Which arrays of a program's result are wrong, and what they are instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.explaining.wrong_program import WrongProgram
from grader.findings.finding import Finding
from grader.findings.programs import AlikeParts, ResultPart, RightParts

_MOST_NAMED = 3  # arrays that are named at once


def right_parts(wrong: WrongProgram) -> Iterator[Finding]:
    """The arrays that are right in a result of several."""
    if well := [wrong.part(k) for k, is_right in enumerate(wrong.right) if is_right]:
        yield RightParts(*_first(well))


def alike_parts(wrong: WrongProgram, alike: Sequence[int]) -> AlikeParts:
    """Of which wrong arrays something is true, and which others are wrong."""
    others = [k for k in wrong.wrong if k not in alike]
    return AlikeParts(*_first([wrong.part(k) for k in alike]), *_first([wrong.part(k) for k in others]))


def _first(parts: Sequence[ResultPart]) -> tuple[tuple[ResultPart, ...], int]:
    """The first few, and how many more there are."""
    return tuple(parts[:_MOST_NAMED]), max(len(parts) - _MOST_NAMED, 0)
