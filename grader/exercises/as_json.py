"""Asks, answers and values as JSON types, and back.

Plain types only, so that reading one can build nothing but these. None, truth values, numbers, texts and lists stand as
they are; whatever else is written as `{kind: body}`, and RECORDS says how each record is written and read.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnDevices, OnMesh, PerProcess
from grader.arrays.sketch import Sketch
from grader.arrays.words import legible
from grader.exercises.answers import Ask, Layout, Problem, Script, Value
from grader.exercises.codecs import FLAG, NUMBER, TEXT, Codec, Record, data_class, refusing, tuple_of
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
    """The inverse of `to_json`. Raises ValueError for anything that `to_json` did not write."""
    if isinstance(data, list):
        return [from_json(v) for v in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise ValueError("a record on the wire has exactly one key")
    ((name, body),) = data.items()
    return RECORDS[name].read(body)


def _bytes_of(body: Any) -> bytes:
    return base64.b64decode(body, validate=True)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _file(array: np.ndarray) -> str:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return _base64(file.getvalue())


def _array(body: Any) -> Any:
    return np.load(io.BytesIO(_bytes_of(body)), allow_pickle=False)


ANY = Codec(to_json, from_json)
LEGIBLE = Codec(str, lambda body: legible(TEXT.read(body)))  # text that is shown to somebody
PARTS = tuple_of(ANY)
SPEC = Codec(lambda spec: to_json(tuple(spec)), lambda body: P(*from_json(body)))
BY_NUMBER = Codec(
    lambda values: [[number, to_json(value)] for number, value in values.items()],
    lambda body: {NUMBER.read(number): from_json(value) for number, value in body},
)
PROGRAM = Record(lambda program: _base64(program.artefact), lambda body: Program(_bytes_of(body)), Program)

RECORDS: Mapping[str, Record] = {
    "float": Record(lambda number: repr(float(number)), float, float),  # infinite, or no number
    "program": PROGRAM,
    "value": data_class(Value, value=ANY, uploaded=LEGIBLE),
    "script": data_class(Script, source=TEXT, main=TEXT),
    "problem": data_class(Problem, kind=LEGIBLE, error=LEGIBLE, message=LEGIBLE, operands=tuple_of(LEGIBLE)),
    "ask": data_class(Ask, mesh=ANY, arguments=ANY, key=TEXT, explicit=FLAG, on_devices=FLAG, cotangents=ANY),
    "layout": data_class(Layout, shape=tuple_of(NUMBER), dtype=TEXT, spec=SPEC),
    "mesh": data_class(OnMesh, sizes=ANY, explicit=FLAG, order=tuple_of(NUMBER)),
    "laid": data_class(OnDevices, value=ANY, mesh=ANY, spec=SPEC, instead=BY_NUMBER, memory=TEXT),
    "each": data_class(PerProcess, values=PARTS),
    "sketch": data_class(Sketch, sizes=ANY, block=ANY, steps=ANY, checked=FLAG),
    "spec": Record(SPEC.write, SPEC.read, P),  # before tuples: it is one on an older JAX
    "dict": Record(
        lambda entries: [[key, to_json(value)] for key, value in entries.items()],
        lambda body: {str(key): from_json(value) for key, value in body},
        Mapping,
    ),
    "tuple": Record(PARTS.write, PARTS.read, tuple),
    "cast": Record(  # bfloat16, which NumPy's files do not know
        lambda array: {"dtype": str(array.dtype), "array": to_json(array.astype(np.float32))},
        lambda body: from_json(body["array"]).astype(np.dtype(TEXT.read(body["dtype"]))),
        (np.ndarray, np.generic),
        lambda array: array.dtype.kind == "V",
    ),
    "array": Record(_file, _array, (np.ndarray, np.generic)),
}
