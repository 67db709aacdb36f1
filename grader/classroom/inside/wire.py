"""What the judge and the evaluator say to each other, as JSON types and back.

Whatever comes from an evaluator is untrusted: reading it builds nothing but the records below, whose parts
have the types and sizes that they say, or raises ValueError.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import Blocks
from grader.arrays.laid import Array
from grader.exercises.as_json import from_json, to_json
from grader.programs.execution import Ran, Result
from grader.programs.program import Program
from grader.programs.structure import COLLECTIVE_KINDS, Collective, Manual, Structure

MOST_COUNTED = 1 << 62  # bytes or FLOPs that any count may say
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


def structure_out(structure: Structure) -> dict[str, Any]:
    return STRUCTURE.write(structure)


def structure_in(data: Any) -> Structure:
    with _typed():
        return STRUCTURE.read(data)


def ran_out(ran: Ran) -> dict[str, Any]:
    return RAN.write(ran)


def ran_in(data: Any) -> Ran:
    with _typed():
        return RAN.read(data)


def forms_in(data: Any) -> list[tuple[str, tuple[int, ...]]]:
    with _typed():
        return [(_name(place), _counts(shape)) for place, shape in data]


@contextlib.contextmanager
def _typed() -> Iterator[None]:
    """What has not the form of its record is one kind of error."""
    try:
        yield
    except (TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"this is not what an evaluator says: {error}") from error


# Parts of records: each is written as JSON types, and read back only if it is what it should be.


def _count(data: Any) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or not 0 <= data < MOST_COUNTED:
        raise ValueError("a count is a whole number")
    return data


def _counts(data: Any) -> tuple[int, ...]:
    return tuple(map(_count, data))


def _name(data: Any) -> str:
    if not isinstance(data, str) or len(data) > LONGEST:
        raise ValueError("a name is a short text")
    return data


def _names(data: Any) -> tuple[str, ...]:
    return tuple(map(_name, data))


def _yes_or_no(data: Any) -> bool:
    if not isinstance(data, bool):
        raise ValueError("it is either so or not")
    return data


def _kind(data: Any) -> str:
    if data not in COLLECTIVE_KINDS:
        raise ValueError("no such collective")
    return data


def _unless_unknown(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda data: None if data is None else read(data)


def _sizes_out(mesh: Mapping[str, int]) -> list[Any]:
    return list(mesh.items())


def _sizes(data: Any) -> dict[str, int]:
    return {_name(axis): _count(size) for axis, size in data}


def _specs_out(specs: Sequence[P]) -> list[Any]:
    return [to_json(tuple(spec)) for spec in specs]


def _specs(data: Any) -> tuple[P, ...]:
    return tuple(P(*from_json(spec)) for spec in data)


def _blocks_out(blocks: Blocks) -> dict[str, Any]:
    values = blocks.values or ()
    return {
        "mesh": _sizes_out(blocks.mesh),
        "shape": blocks.shape,
        "blocks": [
            [[(part.start, part.stop) for part in index], to_json(_plain(value))]
            for index, value in zip(blocks.indices, values, strict=True)
        ],
    }


def _plain(block: np.ndarray) -> np.ndarray:
    return block.astype(np.float32) if block.dtype.kind == "V" else block  # bfloat16 and its like


def _blocks(data: Any) -> Blocks:
    shape = _counts(data["shape"])
    pairs = [_block(shape, index, value) for index, value in data["blocks"]]
    if not pairs:
        raise ValueError("no block at all")
    indices, values = zip(*pairs, strict=True)
    return Blocks(_sizes(data["mesh"]), shape, indices, values)


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


# Records: by the names of their fields.

_T = TypeVar("_T")


def _same(value: Any) -> Any:
    """What is made of JSON types already."""
    return value


@dataclass(frozen=True)
class Record(Generic[_T]):
    """How a data class crosses: each of its fields by name, with how it is written and how it is read."""

    kind: Callable[..., _T]
    fields: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]

    def write(self, record: _T) -> dict[str, Any]:
        return {name: write(getattr(record, name)) for name, (write, _) in self.fields.items()}

    def read(self, data: Any) -> _T:
        if data.keys() != self.fields.keys():
            raise ValueError("a record has all its fields, and no others")
        return self.kind(**{name: read(data[name]) for name, (_, read) in self.fields.items()})

    def write_all(self, records: Sequence[_T]) -> list[dict[str, Any]]:
        return list(map(self.write, records))

    def read_all(self, data: Any) -> tuple[_T, ...]:
        return tuple(map(self.read, data))


COLLECTIVE = Record(
    Collective,
    {
        "kind": (_same, _kind),
        "axes": (_same, _names),
        "group": (_same, _count),
        "operand": (_same, _counts),
        "dtype": (_same, _name),
        "bytes": (_same, _count),
        "times": (_same, _unless_unknown(_count)),
        "implicit": (_same, _yes_or_no),
        "meanwhile": (_same, _count),
        "shift": (_same, _count),
        "visits": (_same, _unless_unknown(_counts)),
    },
)
MANUAL = Record(
    Manual,
    {"axes": (_same, _names), "in_specs": (_specs_out, _specs), "out_specs": (_specs_out, _specs)},
)
STRUCTURE = Record(
    Structure,
    {
        "mesh": (_sizes_out, _sizes),
        "manual": (MANUAL.write_all, MANUAL.read_all),
        "collectives": (COLLECTIVE.write_all, COLLECTIVE.read_all),
        "dot_flops": (_same, _count),
        "foreign": (_same, _names),
        "steps": (_same, _count),
    },
)
RESULT = Record(
    Result,
    {
        "held": (_blocks_out, _blocks),
        "layout": (lambda layout: layout[:LONGEST], _name),
        "as_asked": (_same, _yes_or_no),
    },
)
RAN = Record(
    Ran,
    {
        "results": (RESULT.write_all, RESULT.read_all),
        "flops": (_same, _count),
        "compiled": (COLLECTIVE.write_all, COLLECTIVE.read_all),
    },
)
