"""The upper rungs of a program's ladder: what it sends, and whether the work is divided.

A program with shard_map is held against what its author wrote; one that is left to the compiler against what
came of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from grader.exercises.case import Move
from grader.judging.behaviour import Execution
from grader.judging.miss import Miss
from grader.programs.structure import Collective


def communication(run: Execution) -> Miss | None:
    if not run.structure.manual:
        return Miss(
            "The values are right, but nothing in this program is written per device: the compiler chose "
            "who sends what. This exercise asks for that choice: write it with jax.shard_map."
        )
    if implicit := [c for c in _sent(run.structure.collectives) if c.implicit]:
        return Miss(
            "The result is right, but in_specs do not describe the operands as they lie, so data move "
            "before your function begins:\n" + _listed(implicit)
        )
    # The compiler may write a reduce_scatter or an all_gather as an all_reduce, of twice the bytes; not more.
    if (hidden := run.ran.bytes_sent) > 2 * run.structure.bytes_sent:
        return Miss(
            f"The result is right, but the compiled program sends {hidden:,} B from each device, and what is "
            f"written in shard_map sends {run.structure.bytes_sent:,} B: data move before it or behind it, "
            "where the compiler chose how. Do the work inside, on operands as they lie."
        )
    return _too_many(run) or _too_much(run) or _one_way(run) or _too_slow(run) or _alone(run) or _written_out(run)


def _too_many(run: Execution) -> Miss | None:
    """More turns of a kind of collective than the case allows."""
    allowed, sent = run.case.turns, _sent(run.structure.collectives)
    if allowed is None:
        return None
    turns = {kind: sum(c.times for c in sent if c.kind == kind) for kind in {c.kind for c in sent}}
    if all(count <= allowed.get(kind, 0) for kind, count in turns.items()):
        return None
    enough = ", ".join(f"{kind} × {count}" for kind, count in allowed.items()) or "none"
    return Miss(
        "The result is right, but these collectives are not the ones asked for, or too many:\n"
        f"{_listed(sent)}\n\nEnough: {enough}."
    )


def _too_slow(run: Execution) -> Miss | None:
    """Transfers that wait for one another more often than the case allows."""
    steps, allowed = run.structure.steps, run.case.steps
    if allowed is None or steps <= allowed:
        return None
    return Miss(
        f"The result is right, but {steps} transfers wait for one another, one after the other; a chain of "
        f"{allowed} is enough. Which of them could be under way at the same time?"
    )


def _sent(collectives: Sequence[Collective]) -> list[Collective]:
    """The collectives by which a device really sends something."""
    return [c for c in collectives if c.group > 1]


def _one_way(run: Execution) -> Miss | None:
    """More bytes to one neighbour than need be."""
    allowed, moved = run.case.one_way, run.structure.bytes_one_way
    if allowed is None or moved <= allowed:
        return None
    return Miss(
        f"The result is right, but each device sends {moved:,} B to one and the same neighbour; {allowed:,} B "
        f"are enough when the links in both directions are used:\n{_listed(_sent(run.structure.collectives))}"
    )


def _written_out(run: Execution) -> Miss | None:
    """A collective written down turn by turn, where a loop was asked for."""
    counts = Counter(c.kind for c in _sent(run.structure.collectives))
    allowed = counts if run.case.written is None else run.case.written
    for kind, count in counts.items():
        if count > allowed.get(kind, 0):
            return Miss(
                f"The result is right, but {kind} stands in the program {count} times, where "
                f"{allowed.get(kind, 0)} would do: in a loop it stands there once, on any number of devices."
            )
    return None


def _alone(run: Execution) -> Miss | None:
    """A collective during which the devices have nothing to multiply."""
    idle = next((c for c in _sent(run.structure.collectives) if c.meanwhile < run.case.meanwhile), None)
    if idle is None:
        return None
    return Miss(
        f"The result is right, but during this transfer there is too little to compute:\n- {idle}\n\n"
        f"Products of {idle.meanwhile:,} FLOPs neither wait for it nor it for them; {run.case.meanwhile:,} "
        "should, and each product counts for one transfer only. What a device "
        "holds already it can multiply while the next block is on its way."
    )


def _too_much(run: Execution) -> Miss | None:
    needed, moved = run.case.bytes_sent, run.structure.bytes_sent
    if needed is None or moved <= needed:
        return None
    sent = [c for c in run.structure.collectives if c.bytes_sent]
    return Miss(
        f"The result is right, but each device sends {moved:,} B where {needed:,} B are enough "
        f"({moved / needed:.2g} times as much):\n{_listed(sent)}"
        if needed
        else f"The result is right, but each device sends {moved:,} B where none need be sent:\n{_listed(sent)}"
    )


def by_compiler(run: Execution) -> Miss | None:
    """The compiler's collectives against those that the case allows; a reduce_scatter may stand as an all_reduce."""
    case, sent = run.case, _sent(run.ran.compiled)
    if case.moves is not None and (odd := [c for c in sent if not any(_is(c, m, case.mesh) for m in case.moves)]):
        return Miss(
            f"The result is right, but the compiler has to send what need not be sent:\n{_listed(odd)}\n\n"
            f"{_allowed(case.moves, case.mesh)}"
        )
    if case.bytes_sent is None:
        return None
    if endless := [c for c in sent if c.times is None]:
        return Miss(
            "The result is right, but nobody can tell how often this is sent: it stands in a branch, or in a "
            f"loop whose turns are not known beforehand.\n{_listed(endless)}"
        )
    if (moved := run.ran.bytes_sent) > case.bytes_sent:
        return Miss(
            f"The result is right, but the compiled program sends {moved:,} B from each device where "
            f"{case.bytes_sent:,} B are enough:\n{_listed(sent)}"
        )
    return None


def _is(found: Collective, move: Move, mesh: Mapping[str, int]) -> bool:
    """Whether this is that move. How a compiler orders the dimensions of what it sends is its own affair."""
    alike = {found.kind, move.kind} <= {"all_reduce", "reduce_scatter"} or found.kind == move.kind
    return alike and set(found.axes) == set(_long(move.axes, mesh)) and _as_large(found, move)


def _long(axes: Sequence[str], mesh: Mapping[str, int]) -> list[str]:
    """The axes along which there are several devices: along the others nothing moves."""
    return [a for a in axes if mesh[a] > 1]


def _as_large(found: Collective, move: Move) -> bool:
    """The same lengths, in whatever order; of what only changes places, in pieces of any shape, as many entries."""
    if found.kind in ("all_to_all", "collective_permute"):
        return math.prod(found.operand) == math.prod(move.operand)
    return sorted(n for n in found.operand if n > 1) == sorted(n for n in move.operand if n > 1)


def _listed(collectives: Sequence[Collective]) -> str:
    return "\n".join(f"- {c}" for c in collectives)


def _allowed(moves: Sequence[Move], mesh: Mapping[str, int]) -> str:
    said = dict.fromkeys(
        f"{m.kind} of [{','.join(map(str, m.operand))}] over {', '.join(axes)}"
        for m in moves
        if (axes := _long(m.axes, mesh))
    )
    return f"Nothing else need travel than: {'; or '.join(said)}." if said else "Nothing need travel at all."


def work(run: Execution) -> Miss | None:
    needed = run.case.flops
    if needed is None:
        return None
    # Adding up partial sums, a bias or a relu costs a few operations per entry: not what is asked here.
    local = sum(result.held.entries for result in run.results)
    if run.ran.flops <= 1.5 * needed + 4 * local:
        return None
    return Miss(
        f"The result is right, but the work is not divided: each device computes {run.ran.flops:,} FLOPs where "
        f"{needed:,} are its share. Who multiplies what that another device multiplies too?"
    )
