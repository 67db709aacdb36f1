"""The ladder of a program: it runs; its shape; its values on every device; its layout; its communication; its work.

Each rung is tried on every case, and after the first miss the rest are not tried, so that a student hears
one thing at a time and zeros with a right layout earn nothing. A missed rung is then named: by the mistake
that behaves the same, else by a general signature, else by the first difference and nothing more.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from grader.answers import Answer, Problem
from grader.behaviour import Execution, Failed, Result, close, explain, specs, spelled
from grader.blocks import Blocks, blocks
from grader.errors import in_plain_words
from grader.exercise import Array, Case, Exercise, Move, Outcome
from grader.signatures import signature
from grader.structure import Collective
from grader.verdict import Miss, Verdict

# What each rung of a program's ladder is worth, as a share of the exercise's points.
LADDER = {"runs": 0.0, "shape": 0.0, "values": 0.5, "layout": 0.0, "communication": 0.25, "work": 0.25}


def judge_program(exercise: Exercise, cases: Sequence[Case], runs: Sequence[Execution | Answer]) -> Verdict:
    rungs: dict[str, Callable[[int], Miss | None]] = {
        "runs": lambda k: _runs(runs[k]),
        "shape": lambda k: _shape(runs[k], _expected(exercise, cases[k])),
        "values": lambda k: _values(runs[k], _expected(exercise, cases[k])),
        "layout": lambda k: _layout(runs[k], _expected(exercise, cases[k])),
        "communication": lambda k: (_by_compiler if exercise.by_compiler else _communication)(runs[k]),
        "work": lambda k: _work(runs[k]),
    }
    outcomes: list[Outcome] = []
    for check, rung in rungs.items():
        worth = exercise.points * LADDER[check]
        failing, miss = next(((k, m) for k in range(len(cases)) if (m := rung(k))), (0, None))
        if miss:
            named = explain(exercise, cases, runs, failing)
            words = named.words if named else _signature(exercise, cases[failing], runs[failing], check)
            missed = Outcome(exercise.name, check, 0.0, worth, named.name if named else "",
                             "\n\n".join(filter(None, (miss.words, words))))
            outcomes.append(missed)
            outcomes += _not_tried(exercise, check)
            return Verdict(exercise.name, tuple(outcomes), describe(cases[failing]), miss.expected, miss.found)
        outcomes.append(Outcome(exercise.name, check, worth, worth))
    return Verdict(exercise.name, tuple(outcomes))


def _not_tried(exercise: Exercise, missed: str) -> list[Outcome]:
    rest = list(LADDER)[list(LADDER).index(missed) + 1:]
    return [Outcome(exercise.name, c, 0.0, exercise.points * LADDER[c], words=f"Not tried: “{missed}” comes first.")
            for c in rest]


@functools.lru_cache(maxsize=1024)
def _expected(exercise: Exercise, case: Case) -> list[np.ndarray]:
    plain = [a.value if isinstance(a, Array) else a for a in case.arguments.values()]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(exercise.reference(*plain))]


def _runs(run: Execution | Answer) -> Miss | None:
    if isinstance(run, Problem):
        return Miss(in_plain_words(run))
    if not isinstance(run, Execution):
        return Miss("The answer should be a program: a function of arrays.")
    try:
        return _waits(run) or _calls_out(run) or (run.ran and None)
    except Failed as error:
        return Miss(in_plain_words(Problem("error", error.kind, str(error))))


def _waits(run: Execution) -> Miss | None:
    if run.may_wait_for_ever:
        which = next(c for c in run.structure.collectives if c.times is None)
        return Miss(f"The {which.kind} over {', '.join(which.axes)} stands in a branch, or in a loop without a "
                    "fixed number of turns. A device that does not come by leaves the others waiting for ever, so "
                    "this was not run. Let every device call it, and choose between results with jnp.where.")
    return None


def _calls_out(run: Execution) -> Miss | None:
    if not (foreign := run.structure.foreign):
        return None
    return Miss(f"The program calls `{foreign[0]}`, which is no operation of the devices but code outside of them, so "
                "this was not run. Compute with jax.numpy and jax.lax.")


def _shape(run: Execution, expected: list[np.ndarray]) -> Miss | None:
    wanted, got = [e.shape for e in expected], run.shapes
    if wanted == got:
        return None
    if len(wanted) != len(got):
        return Miss(f"The function should return {len(wanted)} array(s); it returns {len(got)}.")
    name, want, have = next((n, w, g) for n, w, g in zip(_result_names(wanted), wanted, got, strict=True) if w != g)
    return Miss(f"{name} should have shape {want}; yours has {have}.",
                *_pictures(run, expected) if len(want) == len(have) else ())


def _result_names(results: Sequence[Any]) -> list[str]:
    return ["The result"] if len(results) == 1 else [f"Result {k}" for k in range(len(results))]


def _values(run: Execution, expected: list[np.ndarray]) -> Miss | None:
    for name, result, whole in zip(_result_names(expected), run.results, expected, strict=True):
        for device, (index, block) in enumerate(zip(result.held.indices, result.held.values, strict=True)):
            if not close(block, whole[index]):
                return Miss(_first_difference(name, result, device, whole[index]), *_pictures(run, expected))
    return None


def _first_difference(name: str, result: Result, device: int, wanted: np.ndarray) -> str:
    index, block = result.held.indices[device], result.held.values[device]
    scale = float(np.max(np.abs(wanted), initial=0.0))
    at = tuple(int(i) for i in np.argwhere(~np.isclose(block, wanted, rtol=1e-5, atol=1e-5 * max(scale, 1e-30)))[0])
    claimed = " (its copy of the whole)" if result.claims_copies else ""
    return (f"{name} is wrong on device {device}. It holds {_region(index)}{claimed}; in that block entry "
            f"{list(at)} should be {_number(wanted[at])}, and it is {_number(block[at])}.")


def _region(index: tuple[slice, ...]) -> str:
    return f"[{', '.join(f'{s.start}:{s.stop}' for s in index)}]"


def _number(value: Any) -> str:
    return f"{float(value):.6g}"


def _pictures(run: Execution, expected: list[np.ndarray]) -> tuple[Blocks, Blocks]:
    (spec, *_), (whole, *_), (result, *_) = specs(run.case), expected, run.results
    return blocks(whole.shape, spec, dict(run.case.mesh), value=whole), result.held


def _layout(run: Execution, expected: list[np.ndarray]) -> Miss | None:
    for name, result, spec, whole in zip(_result_names(expected), run.results, specs(run.case), expected, strict=True):
        if not result.as_asked:
            due = blocks(whole.shape, spec, run.case.mesh)
            return Miss(f"{name} has the right values, but does not lie as it should: {spelled(spec)} was wanted, "
                        f"{due.entries} entries on each device; yours lies {result.layout}, {result.held.entries} "
                        "on each.", *_pictures(run, expected))
    return None


def _communication(run: Execution) -> Miss | None:
    if not run.structure.manual:
        return Miss("The values are right, but nothing in this program is written per device: the compiler chose "
                    "who sends what. This exercise asks for that choice: write it with jax.shard_map.")
    if implicit := [c for c in run.structure.collectives if c.implicit and c.group > 1]:
        return Miss("The result is right, but in_specs do not describe the operands as they lie, so data move "
                    "before your function begins:\n" + "\n".join(f"- {c}" for c in implicit))
    # The compiler may write a reduce_scatter or an all_gather as an all_reduce, of twice the bytes; not more.
    if (hidden := run.ran.bytes_sent) > 2 * run.structure.bytes_sent:
        return Miss(f"The result is right, but the compiled program sends {hidden:,} B from each device, and what is "
                    f"written in shard_map sends {run.structure.bytes_sent:,} B: data move before it or behind it, "
                    "where the compiler chose how. Do the work inside, on operands as they lie.")
    return _too_many(run) or _too_much(run) or _one_way(run) or _alone(run) or _written_out(run)


def _too_many(run: Execution) -> Miss | None:
    """More turns of a kind of collective than the case allows."""
    allowed, sent = run.case.turns, _sent(run)
    if allowed is None:
        return None
    turns = {kind: sum(c.times for c in sent if c.kind == kind) for kind in {c.kind for c in sent}}
    if all(count <= allowed.get(kind, 0) for kind, count in turns.items()):
        return None
    enough = ", ".join(f"{kind} × {count}" for kind, count in allowed.items()) or "none"
    listed = "\n".join(f"- {c}" for c in sent)
    return Miss(f"The result is right, but these collectives are not the ones asked for, or too many:\n{listed}\n\n"
                f"Enough: {enough}.")


def _sent(run: Execution) -> list[Collective]:
    """The collectives by which a device really sends something."""
    return [c for c in run.structure.collectives if c.group > 1]


def _one_way(run: Execution) -> Miss | None:
    """More bytes to one neighbour than need be."""
    allowed, moved = run.case.one_way, run.structure.bytes_one_way
    if allowed is None or moved <= allowed:
        return None
    listed = "\n".join(f"- {c}" for c in _sent(run))
    return Miss(f"The result is right, but each device sends {moved:,} B to one and the same neighbour; {allowed:,} B "
                f"are enough when the links in both directions are used:\n{listed}")


def _written_out(run: Execution) -> Miss | None:
    """A collective written down turn by turn, where a loop was asked for."""
    counts = Counter(c.kind for c in _sent(run))
    allowed = counts if run.case.written is None else run.case.written
    for kind, count in counts.items():
        if count > allowed.get(kind, 0):
            return Miss(f"The result is right, but {kind} stands in the program {count} times, where "
                        f"{allowed.get(kind, 0)} would do: in a loop it stands there once, on any number of devices.")
    return None


def _alone(run: Execution) -> Miss | None:
    """A collective during which the devices have nothing to multiply."""
    idle = next((c for c in _sent(run) if c.meanwhile < run.case.meanwhile), None)
    if idle is None:
        return None
    return Miss(f"The result is right, but during this transfer there is too little to compute:\n- {idle}\n\n"
                f"Products of {idle.meanwhile:,} FLOPs neither wait for it nor it for them; {run.case.meanwhile:,} "
                "should, and each product counts for one transfer only. What a device "
                "holds already it can multiply while the next block is on its way.")


def _too_much(run: Execution) -> Miss | None:
    needed, moved = run.case.bytes_sent, run.structure.bytes_sent
    if needed is None or moved <= needed:
        return None
    listed = "\n".join(f"- {c}" for c in run.structure.collectives if c.bytes_sent)
    return Miss(f"The result is right, but each device sends {moved:,} B where {needed:,} B are enough "
                f"({moved / needed:.2g} times as much):\n{listed}" if needed else
                f"The result is right, but each device sends {moved:,} B where none need be sent:\n{listed}")


def _by_compiler(run: Execution) -> Miss | None:
    """The compiler's collectives against those that the case allows; a reduce_scatter may stand as an all_reduce."""
    case, sent = run.case, [c for c in run.ran.compiled if c.group > 1]
    if case.moves is not None and (odd := [c for c in sent if not any(_is(c, m, case.mesh) for m in case.moves)]):
        return Miss(f"The result is right, but the compiler has to send what need not be sent:\n{_listed(odd)}\n\n"
                    f"{_allowed(case.moves, case.mesh)}")
    if case.bytes_sent is None:
        return None
    if endless := [c for c in sent if c.times is None]:
        return Miss("The result is right, but nobody can tell how often this is sent: it stands in a branch, or in a "
                    f"loop whose turns are not known beforehand.\n{_listed(endless)}")
    if (moved := run.ran.bytes_sent) > case.bytes_sent:
        return Miss(f"The result is right, but the compiled program sends {moved:,} B from each device where "
                    f"{case.bytes_sent:,} B are enough:\n{_listed(sent)}")
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
    said = dict.fromkeys(f"{m.kind} of [{','.join(map(str, m.operand))}] over {', '.join(axes)}"
                         for m in moves if (axes := _long(m.axes, mesh)))
    return f"Nothing else need travel than: {'; or '.join(said)}." if said else "Nothing need travel at all."


def _work(run: Execution) -> Miss | None:
    needed = run.case.flops
    if needed is None:
        return None
    # Adding up partial sums, a bias or a relu costs a few operations per entry: not what is asked here.
    local = sum(result.held.entries for result in run.results)
    if run.ran.flops <= 1.5 * needed + 4 * local:
        return None
    return Miss(f"The result is right, but the work is not divided: each device computes {run.ran.flops:,} FLOPs where "
                f"{needed:,} are its share. Who multiplies what that another device multiplies too?")


def _signature(exercise: Exercise, case: Case, run: Execution | Answer, check: str) -> str:
    if check != "values":
        return ""
    held, whole = run.results[0].held, _expected(exercise, case)[0]
    return signature(held.values, [whole[index] for index in held.indices], case.mesh)


def describe(case: Case) -> str:
    """A case in one line: the mesh, and every array's shape and layout."""
    mesh = " × ".join(f"{name}={size}" for name, size in case.mesh.items())
    arrays = [f"{name}: {'×'.join(map(str, a.value.shape))} {spelled(a.spec)}"
              for name, a in case.arguments.items() if isinstance(a, Array)]
    return "; ".join(filter(None, [f"mesh {mesh}" if mesh else "", *arrays]))
