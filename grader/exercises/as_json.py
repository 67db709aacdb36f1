"""Asks, answers and values as JSON types, and back.

Plain types only, so that reading one can build nothing but these. None, truth values, numbers, texts and lists stand as
they are; whatever else is written as `{kind: body}`, and KINDS says how each kind is written and read.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.described import OnDevices, OnMesh, PerProcess
from grader.arrays.sketch import Sketch
from grader.exercises.answers import Ask, Layout, Problem, Script, Value
from grader.programs.program import Program


def to_json(value: Any) -> Any:
    """An ask, an answer, or a plain value as JSON types."""
    if value is None or isinstance(value, (bool, int, str)) or isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list):
        return [to_json(v) for v in value]
    for name, kind in KINDS.items():
        if isinstance(value, kind.of) and kind.fits(value):
            return {name: kind.write(value)}
    raise TypeError(f"a {type(value).__name__} does not cross the wire")


def from_json(data: Any) -> Any:
    """The inverse of `to_json`. Raises ValueError for anything that `to_json` did not write."""
    if isinstance(data, list):
        return [from_json(v) for v in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise ValueError("a record on the wire has exactly one key")
    ((name, body),) = data.items()
    try:
        return KINDS[name].read(body)
    except (LookupError, TypeError, AttributeError, EOFError) as error:
        raise ValueError(f"not a record of this wire: {name!r}") from error


@dataclass(frozen=True)
class Form:
    """How something is written as JSON types, and read."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@dataclass(frozen=True)
class Kind(Form):
    """What is written as `{kind: body}`: all of this type that fit."""

    of: type | tuple[type, ...]
    fits: Callable[[Any], bool] = lambda value: True


def _record(of: type, **fields: Form) -> Kind:
    """A data class: each of its fields under its name."""

    def write(value: Any) -> dict[str, Any]:
        return {name: form.write(getattr(value, name)) for name, form in fields.items()}

    def read(body: Any) -> Any:
        if body.keys() != fields.keys():
            raise ValueError(f"a {of.__name__} has other fields")
        return of(**{name: form.read(body[name]) for name, form in fields.items()})

    return Kind(write, read, of)


def _plain(of: type) -> Form:
    """Text, a number or a truth value; nothing that only could be made one."""

    def read(body: Any) -> Any:
        if type(body) is not of:
            raise TypeError(f"no {of.__name__}")
        return body

    return Form(of, read)


def _tuple_of(entry: Form) -> Form:
    return Form(lambda values: list(map(entry.write, values)), lambda body: tuple(map(entry.read, body)))


def _legible(body: Any) -> str:
    """A text without characters that steer a terminal, or are none."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in TEXT.read(body))


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


ANY = Form(to_json, from_json)
TEXT, FLAG, NUMBER = _plain(str), _plain(bool), _plain(int)
SHOWN = Form(str, _legible)  # text that is shown to somebody
PARTS = _tuple_of(ANY)
SPEC = Form(lambda spec: to_json(tuple(spec)), lambda body: P(*from_json(body)))
BY_NUMBER = Form(
    lambda values: [[number, to_json(value)] for number, value in values.items()],
    lambda body: {NUMBER.read(number): from_json(value) for number, value in body},
)

KINDS: Mapping[str, Kind] = {
    "float": Kind(lambda number: repr(float(number)), float, float),  # infinite, or no number
    "program": Kind(lambda program: _base64(program.artefact), lambda body: Program(_bytes_of(body)), Program),
    "value": _record(Value, value=ANY, uploaded=SHOWN),
    "script": _record(Script, source=TEXT, main=TEXT),
    "problem": _record(Problem, kind=SHOWN, error=SHOWN, message=SHOWN, operands=_tuple_of(SHOWN)),
    "ask": _record(Ask, mesh=ANY, arguments=ANY, key=TEXT, explicit=FLAG, on_devices=FLAG, cotangents=ANY),
    "layout": _record(Layout, shape=_tuple_of(NUMBER), dtype=TEXT, spec=SPEC),
    "mesh": _record(OnMesh, sizes=ANY, explicit=FLAG, order=_tuple_of(NUMBER)),
    "laid": _record(OnDevices, value=ANY, mesh=ANY, spec=SPEC, instead=BY_NUMBER, memory=TEXT),
    "each": _record(PerProcess, values=PARTS),
    "sketch": _record(Sketch, sizes=ANY, block=ANY, steps=ANY, checked=FLAG),
    "spec": Kind(SPEC.write, SPEC.read, P),  # before tuples: it is one on an older JAX
    "dict": Kind(
        lambda entries: [[key, to_json(value)] for key, value in entries.items()],
        lambda body: {str(key): from_json(value) for key, value in body},
        Mapping,
    ),
    "tuple": Kind(PARTS.write, PARTS.read, tuple),
    "cast": Kind(  # bfloat16, which NumPy's files do not know
        lambda array: {"dtype": str(array.dtype), "array": to_json(array.astype(np.float32))},
        lambda body: from_json(body["array"]).astype(np.dtype(TEXT.read(body["dtype"]))),
        (np.ndarray, np.generic),
        lambda array: array.dtype.kind == "V",
    ),
    "array": Kind(_file, _array, (np.ndarray, np.generic)),
}
