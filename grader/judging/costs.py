"""The upper checks of a program: what it sends, and whether the work is divided.

A case's limits say how much is too much (`grader.exercises.limits`); what no program with shard_map may do is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grader.exercises.limits import (
    Besides,
    BytesSent,
    EitherWay,
    Excess,
    Facts,
    Limit,
    Meanwhile,
    in_order,
    sending,
    transfers,
)
from grader.findings.costs import WrongForm
from grader.findings.finding import Finding
from grader.judging.behaviour import Execution
from grader.judging.miss import Miss
from grader.programs.execution import Failed
from grader.programs.structure import Collective


def sent_as_written(run: Execution) -> Miss | None:
    """What the author wrote may cost no more than the limits, and nothing may be sent besides."""
    if any(isinstance(limit, EitherWay) for limit in run.case.limits) and not run.structure.manual:
        return sent_as_compiled(run)
    if not (run.structure.manual or run.structure.collectives):  # along axes of one device JAX leaves no shard_map
        return Miss((WrongForm("no shard_map"),))
    if implicit := [c for c in sending(run.structure.collectives) if c.implicit]:
        return Miss((WrongForm("in_specs", (), transfers(_really_sent(run, implicit))),))
    limits = run.case.limits
    besides = [] if any(isinstance(limit, Besides) for limit in limits) else [Besides()]
    try:
        return _exceeded(run, [*besides, *limits], lambda limit, facts: limit.of_written(facts))
    except Failed as error:  # XLA has refused the program without its collectives
        return Miss((WrongForm("unwritten unknown", (error.kind, str(error))),))


def _really_sent(run: Execution, implicit: Sequence[Collective]) -> Sequence[Collective]:
    """What the compiler sends that nobody wrote, if that is something else than was read from the text."""
    try:
        unwritten = sending(run.unwritten)
    except Failed:
        return implicit
    as_read = {(c.kind, c.axes, c.bytes_sent) for c in implicit} <= {(c.kind, c.axes, c.bytes_sent) for c in unwritten}
    return implicit if as_read or not unwritten else unwritten


def sent_as_compiled(run: Execution) -> Miss | None:
    """What the compiler made of a program that is left to it."""
    return _exceeded(run, run.case.limits, lambda limit, facts: limit.of_compiled(facts))


def sent_otherwise(run: Execution) -> Finding | None:
    """That a program with shard_map, whose values are wrong, sends less than it may. (If its gradient is judged, the
    bytes that it may send are those of the backward pass, too.)"""
    if not run.structure.manual or run.case.cotangents is not None:
        return None
    limits = (limit for limit in run.case.limits if isinstance(limit, BytesSent))
    return next((found for limit in limits if (found := limit.of_wrong(_facts_of(run)))), None)


def work_divided(run: Execution) -> Miss | None:
    return _exceeded(run, run.case.limits, lambda limit, facts: limit.of_work(facts))


def idle_transfers(run: Execution) -> set[tuple[str, tuple[str, ...], bool, bool]]:
    """The transfers that too little can overlap with, by kind and axes, and whether matmuls come before them, and
    after them."""
    limits = [limit for limit in run.case.limits if isinstance(limit, Meanwhile)]
    written = sending(run.structure.collectives)
    idle = (c for c in written if any(limit.is_missed_by(c) for limit in limits))
    return {(c.kind, c.axes, c.around[0] > 0, c.around[1] > 0) for c in idle}


def _exceeded(run: Execution, limits: Sequence[Limit], by: Callable[[Limit, Facts], Excess | None]) -> Miss | None:
    """The first limit that is exceeded."""
    facts = _facts_of(run)
    found = next((excess for limit in in_order(limits) if (excess := by(limit, facts))), None)
    return Miss((found.finding,), about=found.about, most=found.most) if found else None


def _facts_of(run: Execution) -> Facts:
    return Facts(run.structure, run.ran, lambda: run.unwritten, run.case.mesh)
