"""The smallest case on which an answer misses a check: there its program is easily watched."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.exercise import Exercise
from grader.exercises.forms import ProgramExercise
from grader.exercises.small import small_cases
from grader.findings.finding import Finding
from grader.judging.judge import judgment_of
from grader.programs.program import Program

MOST_SMALL = 8  # cases that are tried: what is missed on none of them is missed on few small ones


@dataclass(frozen=True)
class Probe:
    """A case, the check that an answer misses on it ("" for none), and why."""

    case: Case
    check: str = ""
    findings: tuple[Finding, ...] = ()


def tried(exercise: Exercise, cases: Iterable[Case], work: Any) -> Iterator[Probe]:
    """What a program misses on each of these cases, one by one; those of which JAX makes no program are left out."""
    return (_probe(exercise, case, program) for case, program in _programs(exercise, cases, work))


def _probe(exercise: Exercise, case: Case, program: Program) -> Probe:
    judgment = judgment_of(exercise, [case], [program])
    missed = judgment.first_miss
    return Probe(case, judgment.checks[missed.number].name, missed.why.findings) if missed else Probe(case)


def smallest(exercise: ProgramExercise, work: Any, check: str) -> Probe:
    """The smallest case on which it misses this check; for one that misses none, a small one on the first mesh.

    There nothing is judged: it was, on the exercise's own cases.
    """
    own, small = exercise.draw_cases(), small_cases(exercise)
    if not check:
        first = (case for case in small if tuple(case.mesh.values()) == exercise.mesh_shapes[0])
        return Probe(next((case for case, _ in _programs(exercise, first, work)), own[0]))
    each = tried(exercise, itertools.chain(itertools.islice(small, MOST_SMALL), own), work)
    return next((one for one in each if one.check == check), Probe(own[0], check))


def _programs(exercise: Exercise, cases: Iterable[Case], work: Any) -> Iterator[tuple[Case, Program]]:
    for case in cases:
        (answer,) = collect(exercise.form, asks(exercise, [case]), work)
        if isinstance(answer, Program):
            yield case, answer
