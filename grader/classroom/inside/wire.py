"""What the judge and the evaluator say to each other, as JSON types and back.

Whatever comes from an evaluator is untrusted: reading it builds nothing but the records below, whose parts
have the types and sizes that they say, or raises ValueError.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import Blocks
from grader.arrays.laid import Array
from grader.exercises.as_json import from_json, to_json
from grader.programs.execution import Ran, Result
from grader.programs.program import Program
from grader.programs.structure import COLLECTIVE_KINDS, Collective, Manual, Structure

MOST = 1 << 62  # bytes or FLOPs that any count may say
LONGEST = 400  # characters of a name or layout


def question(program: Program) -> dict[str, Any]:
    return {"program": base64.b64encode(program.artefact).decode()}


def program(text: str) -> Program:
    return Program(base64.b64decode(text))


def run_of(mesh: Mapping[str, int], given: Sequence[Array], wanted: Sequence[P]) -> dict[str, Any]:
    """The second half of a question: run it, on these arrays."""
    return {
        "mesh": list(mesh.items()),
        "given": [[to_json(a.value), to_json(tuple(a.spec))] for a in given],
        "wanted": [to_json(tuple(spec)) for spec in wanted],
    }


def inputs(asked: Mapping[str, Any]) -> tuple[dict[str, int], list[Array], list[P]]:
    return (
        dict(asked["mesh"]),
        [Array(from_json(value), P(*from_json(spec))) for value, spec in asked["given"]],
        [P(*from_json(spec)) for spec in asked["wanted"]],
    )


def structure_out(found: Structure) -> dict[str, Any]:
    return {
        "mesh": list(found.mesh.items()),
        "dot_flops": found.dot_flops,
        "foreign": list(found.foreign),
        "steps": found.steps,
        "manual": [
            [m.axes, *([to_json(tuple(s)) for s in specs] for specs in (m.in_specs, m.out_specs))] for m in found.manual
        ],
        "collectives": _collectives_out(found.collectives),
    }


def _collectives_out(found: Sequence[Collective]) -> list[Any]:
    return [
        [c.kind, c.axes, c.group, c.operand, c.dtype, c.bytes, c.times, c.implicit, c.meanwhile, c.shift, c.visits]
        for c in found
    ]


def structure_in(said: Any) -> Structure:
    with _typed():
        return Structure(
            {_name(n): _count(size) for n, size in said["mesh"]},
            tuple(Manual(_names(axes), _specs(ins), _specs(outs)) for axes, ins, outs in said["manual"]),
            tuple(_collective(*c) for c in said["collectives"]),
            _count(said["dot_flops"]),
            _names(said["foreign"]),
            _count(said["steps"]),
        )


def _collective(
    kind: Any,
    axes: Any,
    group: Any,
    operand: Any,
    dtype: Any,
    size: Any,
    times: Any,
    implicit: Any,
    meanwhile: Any,
    shift: Any,
    visits: Any,
) -> Collective:
    if kind not in COLLECTIVE_KINDS or not isinstance(implicit, bool):
        raise ValueError("no such collective")
    return Collective(
        kind,
        _names(axes),
        _count(group),
        _shape(operand),
        _name(dtype),
        _count(size),
        None if times is None else _count(times),
        implicit,
        _count(meanwhile),
        _count(shift),
        None if visits is None else _shape(visits),
    )


def ran_out(ran: Ran) -> dict[str, Any]:
    return {
        "results": list(map(_result_out, ran.results)),
        "flops": ran.flops,
        "compiled": _collectives_out(ran.compiled),
    }


def _plain(block: np.ndarray) -> np.ndarray:
    return block.astype(np.float32) if block.dtype.kind == "V" else block  # bfloat16 and its like


def ran_in(said: Any) -> Ran:
    with _typed():
        return Ran(
            tuple(map(_result_in, said["results"])),
            _count(said["flops"]),
            tuple(_collective(*c) for c in said["compiled"]),
        )


def _result_out(result: Result) -> dict[str, Any]:
    held = result.held
    return {
        "mesh": list(held.mesh.items()),
        "shape": held.shape,
        "layout": result.layout[:LONGEST],
        "as_asked": result.as_asked,
        "blocks": [
            [[(part.start, part.stop) for part in index], to_json(_plain(value))]
            for index, value in zip(held.indices, held.values, strict=True)
        ],
    }


def _result_in(said: Any) -> Result:
    shape = _shape(said["shape"])
    blocks = [_block(shape, index, value) for index, value in said["blocks"]]
    mesh = {_name(n): _count(size) for n, size in said["mesh"]}
    if not blocks or not isinstance(said["as_asked"], bool):
        raise ValueError("no block at all")
    indices, values = zip(*blocks, strict=True)
    return Result(Blocks(mesh, shape, indices, values), _name(said["layout"]), said["as_asked"])


def _block(shape: tuple[int, ...], index: Any, value: Any) -> tuple[tuple[slice, ...], np.ndarray]:
    parts = tuple(slice(_count(start), _count(stop)) for start, stop in index)
    array = from_json(value)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufc" or len(parts) != len(shape):
        raise ValueError("a block is an array of numbers")
    if array.shape != tuple(p.stop - p.start for p in parts) or any(
        p.stop > n for p, n in zip(parts, shape, strict=True)
    ):
        raise ValueError("a block does not fit its place")
    return parts, array


def forms_in(said: Any) -> list[tuple[str, tuple[int, ...]]]:
    with _typed():
        return [(_name(place), _shape(shape)) for place, shape in said]


def _shape(said: Any) -> tuple[int, ...]:
    return tuple(_count(n) for n in said)


def _count(said: Any) -> int:
    if not isinstance(said, int) or isinstance(said, bool) or not 0 <= said < MOST:
        raise ValueError("a count is a whole number")
    return said


def _name(said: Any) -> str:
    if not isinstance(said, str) or len(said) > LONGEST:
        raise ValueError("a name is a short text")
    return said


def _names(said: Any) -> tuple[str, ...]:
    return tuple(map(_name, said))


def _specs(said: Any) -> tuple[P, ...]:
    return tuple(P(*from_json(spec)) for spec in said)


@contextlib.contextmanager
def _typed() -> Iterator[None]:
    """What has not the form of its record is one kind of error."""
    try:
        yield
    except (TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"this is not what an evaluator says: {error}") from error
