"""Why a check was missed."""

from __future__ import annotations

from dataclasses import dataclass

from grader.arrays.blocks import Blocks
from grader.arrays.ratios import Ratio
from grader.exercises.answers import Problem
from grader.exercises.exercise import Exercise
from grader.exercises.verdict import Outcome, Verdict
from grader.findings.finding import Finding
from grader.findings.problems import Refusal


@dataclass(frozen=True)
class Miss:
    """Why a check was missed in one case. `about` are the numbers of the written collectives that it is about, `most`
    whether others send less."""

    findings: tuple[Finding, ...]
    expected: Blocks | None = None
    found: Blocks | None = None
    ratios: tuple[Ratio, ...] = ()
    about: tuple[int, ...] = ()
    most: bool = False


def unanswered(exercise: Exercise, problem: Problem) -> Verdict:
    """The verdict on an answer that is not there."""
    why = Refusal("missing" if problem.kind == "missing" else "starter", (exercise.name,))
    return Verdict(exercise.name, (Outcome.left_open(exercise.name, "open", exercise.points, (why,)),))
