"""Asks, answers and values as JSON types, and back.

Plain types only, so that reading one can build nothing but these.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.arrays.described import (
    OnDevices,
    OnMesh,
    PerProcess,
)
from grader.arrays.sketch import Sketch
from grader.exercises.answers import Ask, Layout, Problem, Script, Value
from grader.programs.program import Program


def to_json(value: Any) -> Any:
    """An ask, an answer, or a plain value as JSON types."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case Program():
            return {"program": base64.b64encode(value.artefact).decode()}
        case Value():
            return (
                {"uploaded": [value.uploaded, to_json(value.value)]}
                if value.uploaded
                else {"value": to_json(value.value)}
            )
        case Script():
            return {"script": [value.source, value.main]}
        case Problem():
            return {"problem": [value.kind, value.error, value.message, *value.operands]}
        case Ask():
            return {
                "ask": [
                    to_json(dict(value.mesh)),
                    to_json(dict(value.arguments)),
                    value.key,
                    value.explicit,
                    value.on_devices,
                    to_json(value.cotangents),
                ]
            }
        case P():  # a tuple on an older JAX
            return {"spec": to_json([*value])}
        case OnMesh():
            return {"mesh": [to_json(dict(value.sizes)), value.explicit, list(value.order)]}
        case OnDevices():
            return {
                "laid": [
                    to_json(value.value),
                    to_json(value.mesh),
                    to_json(tuple(value.spec)),
                    [[k, to_json(block)] for k, block in value.instead.items()],
                    value.memory,
                ]
            }
        case PerProcess():
            return {"each": to_json(list(value.values))}
        case Sketch():
            return {"sketch": [to_json(dict(value.sizes)), to_json(value.block), to_json(value.steps), value.checked]}
        case Layout():
            return {"layout": [list(value.shape), value.dtype, to_json(tuple(value.spec))]}
        case Mapping():
            return {"dict": [[k, to_json(v)] for k, v in value.items()]}
        case list():
            return [to_json(v) for v in value]
        case tuple():
            return {"tuple": [to_json(v) for v in value]}
        case np.ndarray() | np.generic() if value.dtype.kind == "V":  # bfloat16, which NumPy's files do not know
            return {"cast": [str(value.dtype), to_json(value.astype(np.float32))]}
        case np.ndarray() | np.generic():
            file = io.BytesIO()
            np.save(file, value, allow_pickle=False)
            return {"array": base64.b64encode(file.getvalue()).decode()}
    raise TypeError(f"a {type(value).__name__} does not cross the wire")


def _legible(said: Any) -> str:
    """A text without characters that steer a terminal, or are none."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in str(said))


def from_json(data: Any) -> Any:
    """The inverse of `to_json`. Raises ValueError for anything that `to_json` did not write."""
    if isinstance(data, list):
        return [from_json(v) for v in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise ValueError("a record on the wire has exactly one key")
    ((kind, body),) = data.items()
    try:
        return _READERS[kind](body)
    except ValueError:
        raise
    except Exception as error:  # a student's code can write anything on the wire
        raise ValueError(f"not a record of this wire: {kind!r}") from error


_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "program": lambda b: Program(base64.b64decode(b, validate=True)),
    "value": lambda b: Value(from_json(b)),
    "script": lambda b: Script(str(b[0]), str(b[1])),
    "problem": lambda b: Problem(*map(_legible, b[:3]), tuple(map(_legible, b[3:]))),
    "uploaded": lambda b: Value(from_json(b[1]), _legible(b[0])),
    "ask": lambda b: Ask(from_json(b[0]), from_json(b[1]), str(b[2]), bool(b[3]), bool(b[4]), from_json(b[5])),
    "mesh": lambda b: OnMesh(from_json(b[0]), bool(b[1]), tuple(map(int, b[2]))),
    "laid": lambda b: OnDevices(
        from_json(b[0]),
        from_json(b[1]),
        P(*from_json(b[2])),
        {int(k): from_json(block) for k, block in b[3]},
        str(b[4]),
    ),
    "each": lambda b: PerProcess(tuple(map(from_json, b))),
    "sketch": lambda b: Sketch(from_json(b[0]), from_json(b[1]), from_json(b[2]), bool(b[3])),
    "spec": lambda b: P(*from_json(b)),
    "layout": lambda b: Layout(tuple(map(int, b[0])), str(b[1]), P(*from_json(b[2]))),
    "dict": lambda b: {str(k): from_json(v) for k, v in b},
    "tuple": lambda b: tuple(map(from_json, b)),
    "cast": lambda b: from_json(b[1]).astype(np.dtype(str(b[0]))),
    "array": lambda b: np.load(io.BytesIO(base64.b64decode(b, validate=True)), allow_pickle=False),
}
