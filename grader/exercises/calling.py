"""What holds of any function that a student hands in: it is called, and returns something."""

from __future__ import annotations

from typing import Any

from grader.exercises.script import is_starter
from grader.findings.problems import Refusal
from grader.programs.program import Refused


def must_be_callable(work: Any) -> None:
    if not callable(work):
        raise Refused(Refusal("no function", (type(work).__name__,)))


def something(result: Any, work: Any) -> Any:
    """What the student's work returned. If that is nothing, raises NotImplementedError for a body that is still the
    starter's, and Refused for any other."""
    if result is None or result is ...:
        raise NotImplementedError if result is ... or is_starter(work) else Refused(Refusal("returns nothing"))
    return result
