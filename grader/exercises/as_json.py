"""Asks, answers and values as JSON types, and back.

Plain types only, so that reading one can build nothing but these. None, truth values, numbers, texts and lists stand as
they are; whatever else is written as `{kind: body}`, and RECORDS says how each record is written and read.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnDevices, OnMesh, PerProcess
from grader.arrays.files import OnFile
from grader.arrays.laid import Array
from grader.arrays.sketch import Sketch
from grader.arrays.words import legible
from grader.exercises.answers import Ask, Layout, Problem, Script, Value
from grader.exercises.case import Case
from grader.exercises.codecs import (
    FLAG,
    NUMBER,
    TEXT,
    Codec,
    Record,
    data_class,
    optional,
    plain_type,
    refusing,
    tuple_of,
)
from grader.findings import finding
from grader.findings.problems import Refusal
from grader.programs.program import Program


def to_json(value: Any) -> Any:
    """An ask, an answer, or a plain value as JSON types."""
    if value is None or isinstance(value, (bool, int, str)) or isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list):
        return [to_json(v) for v in value]
    for name, record in RECORDS.items():
        if isinstance(value, record.of) and record.fits(value):
            return {name: record.write(value)}
    raise TypeError(f"a {type(value).__name__} does not cross the wire")


@refusing
def from_json(data: Any) -> Any:
    """Answers and plain values. Raises ValueError for anything that `to_json` did not write of one of them."""
    return _read(data, {**ANSWERS, **VALUES})


@refusing
def value_from_json(data: Any) -> Any:
    """A plain value: numbers, text, arrays of numbers, and lists, tuples and dicts of them."""
    return _read(data, VALUES)


@refusing
def question_from_json(data: Any) -> Any:
    """Whatever `to_json` writes, asks and what they describe included. Not for what a student's code may have written:
    meshes are not its to describe."""
    return _read(data, RECORDS)


def _read(data: Any, records: Mapping[str, Record]) -> Any:
    if isinstance(data, list):
        return [_read(v, records) for v in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise ValueError("a record on the wire has exactly one key")
    ((name, body),) = data.items()
    return records[name].read(body)


def _bytes_of(body: Any) -> bytes:
    return base64.b64decode(body, validate=True)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _written(array: np.ndarray) -> dict[str, Any]:
    array = np.asarray(array, array.dtype.newbyteorder("="))
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": _base64(array.tobytes())}


def _array(body: Any) -> np.ndarray:
    dtype, shape, data = np.dtype(_NUMBERS[body["dtype"]]), _SHAPE.read(body["shape"]), _bytes_of(body["data"])
    if len(body) != 3 or len(data) != dtype.itemsize * math.prod(shape):
        raise ValueError("an array has another size than it says")
    return np.frombuffer(data, dtype).reshape(shape).copy()  # may be written to


def _cast(body: Any) -> np.ndarray:
    array = value_from_json(body["array"])
    if len(body) != 2 or body["dtype"] not in _CASTS or array.dtype != np.float32:
        raise ValueError("numbers of no such kind")
    return array.astype(np.dtype(body["dtype"]))


def _refusal(body: Any) -> Refusal:
    """Of all findings, those that say why an answer can't be judged; their texts are shown to somebody."""
    found = finding.finding_from_json(_all_legible(body))
    if not isinstance(found, Refusal):
        raise ValueError("this is no reason to refuse an answer")
    return found


def _all_legible(body: Any) -> Any:
    if isinstance(body, Mapping):
        return {key: _all_legible(value) for key, value in body.items()}
    return list(map(_all_legible, body)) if isinstance(body, list) else legible(body) if isinstance(body, str) else body


def _containers(inside: Codec) -> dict[str, Record]:
    """The records of dicts and tuples, whose entries are read and written by `inside`."""
    entries = tuple_of(inside)
    return {
        "dict": Record(
            lambda given: [[key, inside.write(value)] for key, value in given.items()],
            lambda body: {TEXT.read(key): inside.read(value) for key, value in body},
            Mapping,
        ),
        "tuple": Record(entries.write, entries.read, tuple),
    }


# The kinds of numbers that NumPy has, and those that others have added to it: these travel as float32.
_NUMBERS = {
    np.dtype(kind).name: kind
    for kind in (
        *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
    )
}
_FLOATS_OF_8_BITS = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
_CASTS = {
    "bfloat16",
    "float4_e2m1fn",
    "int2",
    "int4",
    "uint2",
    "uint4",
    *(f"float8_{kind}" for kind in _FLOATS_OF_8_BITS),
}

ANY, PLAIN = Codec(to_json, question_from_json), Codec(to_json, value_from_json)
LEGIBLE = Codec(str, lambda body: legible(TEXT.read(body)))  # text that is shown to somebody
_SHAPE = tuple_of(plain_type(int, lambda length: length >= 0))
_NAMES = tuple_of(TEXT)
SPEC = Codec(
    lambda spec: [list(part) if isinstance(part, tuple) else part for part in spec],
    lambda body: P(*(_NAMES.read(part) if isinstance(part, list) else optional(TEXT).read(part) for part in body)),
)
BY_NUMBER = Codec(
    lambda values: [[number, to_json(value)] for number, value in values.items()],
    lambda body: {NUMBER.read(number): question_from_json(value) for number, value in body},
)
PROGRAM = Record(lambda program: _base64(program.artefact), lambda body: Program(_bytes_of(body)), Program)

ANSWERS: Mapping[str, Record] = {
    "program": PROGRAM,
    "value": data_class(Value, value=PLAIN, moved=LEGIBLE),
    "script": data_class(Script, source=TEXT, main=TEXT),
    "problem": data_class(
        Problem,
        kind=LEGIBLE,
        error=LEGIBLE,
        message=LEGIBLE,
        operands=tuple_of(LEGIBLE),
        refusal=optional(Codec(finding.finding_to_json, _refusal)),
    ),
}
VALUES: Mapping[str, Record] = {
    "float": Record(
        lambda number: repr(float(number)), lambda body: float(TEXT.read(body)), float
    ),  # infinite, or none
    **_containers(PLAIN),
    "cast": Record(
        lambda array: {"dtype": array.dtype.name, "array": to_json(array.astype(np.float32))},
        _cast,
        (np.ndarray, np.generic),
        lambda array: array.dtype.name in _CASTS,
    ),
    "array": Record(_written, _array, (np.ndarray, np.generic), lambda array: array.dtype.name in _NUMBERS),
}
RECORDS: Mapping[str, Record] = {
    **ANSWERS,
    "ask": data_class(Ask, mesh=ANY, arguments=ANY, key=TEXT, explicit=FLAG, barred=TEXT, cotangents=ANY, pod=TEXT),
    "case": data_class(Case, arguments=ANY, mesh=ANY, explicit=FLAG, cotangents=ANY),
    "spread": data_class(Array, value=PLAIN, spec=SPEC),
    "layout": data_class(Layout, shape=tuple_of(NUMBER), dtype=TEXT, spec=SPEC),
    "mesh": data_class(OnMesh, sizes=ANY, explicit=FLAG, order=tuple_of(NUMBER)),
    "laid": data_class(OnDevices, value=ANY, mesh=ANY, spec=SPEC, instead=BY_NUMBER, memory=TEXT),
    "file": data_class(OnFile, value=ANY, entries=NUMBER),
    "each": data_class(PerProcess, values=tuple_of(ANY)),
    "sketch": data_class(Sketch, sizes=ANY, block=ANY, steps=ANY, checked=FLAG),
    "spec": Record(SPEC.write, SPEC.read, P),  # before tuples: it is one on an older JAX
    **VALUES,
    **_containers(ANY),
}
