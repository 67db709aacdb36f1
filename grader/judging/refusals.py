"""Programs that do not run: JAX or XLA refuses them, or we do.

We refuse one in which a device might wait forever, and one that calls code outside of the devices.
"""

from __future__ import annotations

import contextlib

from grader.exercises.answers import Problem
from grader.exercises.errors import meaning, stopped
from grader.findings.problems import ErrorMeaning, Refusal, WouldDeadlock
from grader.judging.behaviour import Execution
from grader.judging.judgment import Behavior
from grader.judging.miss import Miss
from grader.programs.execution import Failed, Unreduced
from grader.programs.structure import Collective, Structure


def why_not_run(run: Behavior) -> Miss | None:
    """Why an answer is no program, or none that runs to its end."""
    with contextlib.suppress(Failed):  # it can't be read
        if isinstance(run, Execution) and (why := _waits(run) or _calls_out(run)):
            return why
    problem = _problem(run)
    return Miss((stopped(problem),)) if problem else None


def meaning_of_refusal(run: Behavior) -> ErrorMeaning | None:
    """What it means that a program does not run."""
    problem = _problem(run)
    return meaning(problem) if problem else None


def _problem(run: Behavior) -> Problem | None:
    """What an answer stops with, if it does."""
    if isinstance(run, Problem):
        return run
    if not isinstance(run, Execution):
        return Problem("refused", refusal=Refusal("no program"))
    try:
        run.finish()
    except Failed as error:
        if error.kind == Unreduced.__name__:
            return Problem("refused", refusal=Refusal("unreduced", (str(error),)))
        return Problem("error", error.kind, str(error))
    return None


def _waits(run: Execution) -> Miss | None:
    unsure = [c for c in run.structure.collectives if c.times is None]
    if not unsure:
        return None
    about = [n for n, c in enumerate(run.structure.authored) if c.times is None][:1]
    known = next((found for c in unsure if (found := _who_waits(run.structure, c))), None)
    return Miss((known or WouldDeadlock(unsure[0].kind, unsure[0].axes),), about=tuple(about))


def _who_waits(structure: Structure, collective: Collective) -> WouldDeadlock | None:
    """Which device waits for which at a collective, if the text of the program says so."""
    visits, pair = collective.visits, structure.waiting(collective)
    if visits is None or pair is None:
        return None
    alike = [c for c in structure.collectives if (c.kind, c.axes) == (collective.kind, collective.axes)]
    calls = visits[pair[0]], visits[pair[1]]
    return WouldDeadlock(collective.kind, collective.axes, pair, calls, len(alike))


def _calls_out(run: Execution) -> Miss | None:
    return Miss((Refusal("calls outside", run.structure.foreign[:1]),)) if run.structure.foreign else None
