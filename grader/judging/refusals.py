"""Programs that do not run: JAX or XLA refuses them, or we do.

We refuse one in which a device might wait for ever, and one that calls code outside of the devices.
"""

from __future__ import annotations

from grader.exercises.answers import Problem
from grader.exercises.errors import meaning, stopped
from grader.judging.behaviour import Execution
from grader.judging.ladder import Done
from grader.judging.miss import Miss
from grader.programs.execution import Failed, Unreduced
from grader.programs.structure import Collective, Structure, times


def why_not_run(run: Done) -> Miss | None:
    """Why an answer is no program, or none that runs to its end."""
    if isinstance(run, Problem):
        return Miss(stopped(run))
    if not isinstance(run, Execution):
        return Miss("The answer should be a program: a function of arrays.")
    try:
        if miss := _waits(run) or _calls_out(run):
            return miss
        run.finish()
    except Failed as error:
        return Miss(stopped(_refused(error)))
    return None


def _refused(error: Failed) -> Problem:
    return Problem("refused" if error.kind == Unreduced.__name__ else "error", error.kind, str(error))


def meaning_of_refusal(run: Done) -> str:
    """What it means that a program does not run."""
    if isinstance(run, Problem):
        return meaning(run)
    if isinstance(run, Execution):
        try:
            run.finish()
        except Failed as error:
            return meaning(_refused(error))
    return ""


def _waits(run: Execution) -> Miss | None:
    if not run.may_wait_for_ever:
        return None
    unsure = [c for c in run.structure.collectives if c.times is None]
    about = next((n for n, c in enumerate(run.structure.authored) if c.times is None), None)
    waiting = next((words for c in unsure if (words := _who_waits(run.structure, c))), None)
    return Miss(
        (
            waiting
            or f"The {unsure[0].kind}{_over(unsure[0])} stands in a branch, or in a loop without a fixed number of "
            "turns. A device that does not come by leaves the others waiting for ever, so this was not run."
        )
        + " Let every device call it, and choose between results with jnp.where.",
        about=() if about is None else (about,),
    )


def _who_waits(structure: Structure, collective: Collective) -> str:
    """Who waits for whom at a collective, if the text of the program says so."""
    visits, pair = collective.visits, structure.waiting(collective)
    if visits is None or pair is None:
        return ""
    waiting, missing = pair
    alike = [c for c in structure.collectives if (c.kind, c.axes) == (collective.kind, collective.axes)]
    which = f"one of {len(alike)} {collective.kind}s" if alike[1:] else f"the {collective.kind}"
    return (
        f"Device {waiting} calls {which}{_over(collective)} {times(visits[waiting])}, device {missing} "
        f"{times(visits[missing])}: it stands in a branch, or in a loop, and each device decides for "
        f"itself. Device {waiting} would be left waiting for ever for device {missing}, so this was not run."
    )


def _over(collective: Collective) -> str:
    return f" over {', '.join(collective.axes)}" if collective.axes else ""


def _calls_out(run: Execution) -> Miss | None:
    if not (foreign := run.structure.foreign):
        return None
    return Miss(
        f"The program calls `{foreign[0]}`, which is no operation of the devices but code outside of them, so "
        "this was not run. Compute with jax.numpy and jax.lax; what jax.numpy.linalg takes from LAPACK is not needed "
        "here."
    )
