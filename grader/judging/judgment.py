"""The answers to one exercise, judged by its checks, whatever its form.

The checks are made in order, each on every case. After the first one that is missed the others are not made, so that a
student reads about one thing at a time. What went wrong is explained elsewhere (`grader.explaining`): no points depend
on it.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeGuard

from grader.exercises.answers import Answer, Problem, Script
from grader.exercises.case import Case
from grader.exercises.exercise import Exercise
from grader.exercises.verdict import Blamed, Outcome, Score, Verdict
from grader.findings.finding import Finding
from grader.findings.programs import NothingDone
from grader.judging import together
from grader.judging.behaviour import Execution
from grader.judging.compilations import Compilation, run_or_compile
from grader.judging.describing import describe
from grader.judging.miss import Miss, unanswered
from grader.processes.launch import Launch
from grader.programs.program import Program

# What an answer does on a case: the answer itself, or what running it came to.
Behavior = Answer | Execution | Compilation | Launch
Runners = Mapping[type, Callable[[Any, Case], Behavior]]
HERE: Runners = {Program: run_or_compile, Script: together.start}


@dataclass(frozen=True)
class Check:
    """One check: its name, its points, and why the answer to a case misses it, if it does."""

    name: str
    points: float
    miss: Callable[[int], Miss | None]


@dataclass(frozen=True)
class Missed:
    """The number of a check that is missed, the number of the case, and why."""

    number: int
    case: int
    why: Miss


@dataclass(frozen=True)
class Explained:
    """What explains a miss: findings, the most specific first; a declared mistake, by its name; what of the answer it
    is about."""

    findings: tuple[Finding, ...] = ()
    mistake: str = ""
    blamed: Blamed | None = None


Explain = Callable[[str, int, Miss], Explained]  # given the name of a check, the number of a case, and the miss


def unexplained(check: str, case: int, miss: Miss) -> Explained:
    return Explained()


class Judgment(ABC):
    """The answers to the cases of one exercise, and its checks. One subclass for each form."""

    runs: ClassVar[type | None] = None  # the kind of answer that is run before it is judged

    def __init__(self, exercise: Exercise, cases: Sequence[Case], answers: Sequence[Answer], runners: Runners = HERE):
        self.exercise, self.cases, self.answers, self.runners = exercise, cases, answers, runners

    @property
    @abstractmethod
    def checks(self) -> Sequence[Check]: ...

    @functools.cached_property
    def behaviors(self) -> list[Behavior]:
        """What the answers do, case by case."""
        return [
            self.runners[self.runs](answer, case) if self.runs and isinstance(answer, self.runs) else answer
            for case, answer in zip(self.cases, self.answers, strict=True)
        ]

    def witnesses(self, failing: int) -> Sequence[int]:
        """The cases, besides the failing one, that are looked at before something is said of an answer."""
        return [k for k in range(len(self.cases)) if k != failing]

    def is_untouched(self, case: int) -> bool:
        """Whether an answer that misses a check on this case does just what the formula does if nothing is done."""
        return False

    def score(self) -> Score | None:
        """How a right answer compares with the compiler's."""
        return None

    def where(self, case: int) -> Finding | None:
        """The case in which a check was missed."""
        return describe(self.cases[case])

    @functools.cached_property
    def first_miss(self) -> Missed | None:
        """The first check that is missed, in the first case that misses it."""
        tried = (
            (number, case, check.miss(case))
            for number, check in enumerate(self.checks)
            for case in range(len(self.cases))
        )
        return next((Missed(number, case, miss) for number, case, miss in tried if miss), None)

    def misses(self, check: str, case: int) -> bool:
        """Whether this check is missed in a case."""
        return any(one.miss(case) is not None for one in self.checks if one.name == check)

    def verdict(self, explain: Explain = unexplained) -> Verdict:
        first = self.answers[0]
        return unanswered(self.exercise, first) if is_absent(first) else self.verdict_on_checks(explain)

    def verdict_on_checks(self, explain: Explain) -> Verdict:
        """The verdict on an answer that is there."""
        name, checks, missed = self.exercise.name, self.checks, self.first_miss
        if missed is None:
            return Verdict(name, tuple(Outcome.earned(name, c.name, c.points) for c in checks), score=self.score())
        check, why, before = checks[missed.number], missed.why, checks[: missed.number]
        floor = sum(one.points for one in before)
        idle = floor > 0 and self.is_untouched(missed.case)
        earned = [Outcome.earned(name, one.name, 0.0 if idle else one.points) for one in before]
        if idle:
            check = replace(check, points=check.points + floor)
            why = replace(why, findings=(*why.findings, NothingDone()))
        explained = explain(check.name, missed.case, why)
        rest = [Outcome.untried(name, one.name, one.points, check.name) for one in checks[missed.number + 1 :]]
        return Verdict(
            name,
            (*earned, self.missed(check, why, explained), *rest),
            self.where(missed.case),
            why.expected,
            why.found,
            why.ratios,
            blamed=explained.blamed,
            failing=missed.case,
        )

    def missed(self, check: Check, why: Miss, explained: Explained) -> Outcome:
        """The outcome of a check that is missed."""
        findings = (*why.findings, *explained.findings)
        return Outcome.missed(self.exercise.name, check.name, check.points, findings, explained.mistake)


def is_absent(answer: Answer) -> TypeGuard[Problem]:
    return isinstance(answer, Problem) and answer.kind in ("missing", "starter")
