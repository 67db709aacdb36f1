"""Why a check was missed."""

from __future__ import annotations

from dataclasses import dataclass

from grader.arrays.blocks import Blocks
from grader.arrays.ratios import Ratio
from grader.exercises.answers import Problem
from grader.exercises.exercise import Exercise
from grader.exercises.verdict import Outcome, Verdict


@dataclass(frozen=True)
class Miss:
    """Why a rung was missed in one case. `about` are the numbers of the written collectives that it is about."""

    words: str
    expected: Blocks | None = None
    found: Blocks | None = None
    ratios: tuple[Ratio, ...] = ()
    about: tuple[int, ...] = ()
    most: bool = False


def unanswered(exercise: Exercise, problem: Problem) -> Verdict:
    """The verdict on an answer that is not there."""
    words = {
        "missing": f"There is no `{exercise.name}`: the cell that defines it did not run to its end, or the "
        "name was changed.",
        "starter": f"`{exercise.name}` is still the starter. Replace the `...` with your own code, "
        "run the cell, then run this check again.",
    }.get(problem.kind, problem.message)
    return Verdict(exercise.name, (Outcome.left_open(exercise.name, "open", exercise.points, words),))
