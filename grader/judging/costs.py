"""The upper rungs of a program's ladder: what it sends, and whether the work is divided.

A case's limits say how much is too much (`grader.exercises.limits`); what no program with shard_map may do is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grader.exercises.limits import Besides, BytesSent, EitherWay, Facts, Limit, Meanwhile, bullets, in_order, sending
from grader.judging.behaviour import Execution
from grader.judging.miss import Miss
from grader.programs.execution import Failed
from grader.programs.structure import Collective


def sent_as_written(run: Execution) -> Miss | None:
    """What the author wrote may cost no more than the limits, and nothing may be sent besides."""
    if any(isinstance(limit, EitherWay) for limit in run.case.limits) and not run.structure.manual:
        return sent_as_compiled(run)
    if not (run.structure.manual or run.structure.collectives):  # along axes of one device JAX leaves no shard_map
        return Miss(
            "The values are right, but nothing in this program is written per device: the compiler chose "
            "who sends what. This exercise asks for that choice: write it with jax.shard_map."
        )
    if implicit := [c for c in sending(run.structure.collectives) if c.implicit]:
        return Miss(
            "The result is right, but in_specs do not describe the operands as they are laid out, so data move "
            "before your function begins:\n" + bullets(_really_sent(run, implicit))
        )
    limits = run.case.limits
    besides = [] if any(isinstance(limit, Besides) for limit in limits) else [Besides()]
    try:
        return _exceeded(run, [*besides, *limits], lambda limit, facts: limit.of_written(facts), written=True)
    except Failed as error:  # XLA has refused the program without its collectives
        return Miss(f"The result is right, but what the compiler sends besides cannot be found: {error}")


def _really_sent(run: Execution, implicit: Sequence[Collective]) -> Sequence[Collective]:
    """What the compiler sends that nobody wrote, where that is something else than was read from the text."""
    try:
        unwritten = sending(run.unwritten)
    except Failed:
        return implicit
    as_read = {(c.kind, c.axes, c.bytes_sent) for c in implicit} <= {(c.kind, c.axes, c.bytes_sent) for c in unwritten}
    return implicit if as_read or not unwritten else unwritten


def sent_as_compiled(run: Execution) -> Miss | None:
    """What the compiler made of a program that is left to it."""
    return _exceeded(run, run.case.limits, lambda limit, facts: limit.of_compiled(facts))


def sent_otherwise(run: Execution) -> str:
    """How what a program with shard_map sends differs from what it may, whatever its result is. (Where its gradient is
    judged, the bytes that it may send are those of the way back, too.)"""
    if not run.structure.manual:
        return ""
    facts, way_back = _facts_of(run), run.case.cotangents is not None
    limits = (limit for limit in in_order(run.case.limits) if not (way_back and isinstance(limit, BytesSent)))
    return next((words for limit in limits if (words := limit.of_wrong(facts))), "")


def work_divided(run: Execution) -> Miss | None:
    return _exceeded(run, run.case.limits, lambda limit, facts: limit.of_work(facts))


def idle_transfers(run: Execution) -> set[tuple[str, tuple[str, ...], bool, bool]]:
    """The transfers beside which too little is computed, by kind and axes, and whether products stand before them, and
    behind them."""
    limits = [limit for limit in run.case.limits if isinstance(limit, Meanwhile)]
    written = sending(run.structure.collectives)
    idle = (c for c in written if any(limit.is_missed_by(c) for limit in limits))
    return {(c.kind, c.axes, c.around[0] > 0, c.around[1] > 0) for c in idle}


def _exceeded(
    run: Execution, limits: Sequence[Limit], by: Callable[[Limit, Facts], str], *, written: bool = False
) -> Miss | None:
    """The first limit that is exceeded; where what is `written` exceeds it, with what it is about."""
    facts = _facts_of(run)
    for limit in in_order(limits):
        if words := by(limit, facts):
            return Miss(words, about=limit.about(facts), most=limit.about_most(facts)) if written else Miss(words)
    return None


def _facts_of(run: Execution) -> Facts:
    return Facts(run.structure, run.ran, lambda: run.unwritten, run.case.mesh)
