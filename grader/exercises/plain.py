"""Values in types that cross the wire."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.described import HELD, Observed, observed_array, observed_mesh
from grader.findings.problems import Refusal
from grader.programs.program import Refused

MOST_BITS = 4096  # of a whole number: Python writes none that is much longer


def plain(value: Any) -> Any:
    """The value in types that cross the wire. Raises Refused for what cannot be written in them."""
    if isinstance(value, np.generic):  # some are Python's own numbers as well, and are written otherwise
        return value.item()
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise Refused(Refusal("long number"))
    if value is None or isinstance(value, (bool, int, float, str)):  # None: an entry of a spec
        return value
    if isinstance(value, Mesh):
        return observed_mesh(value)
    if isinstance(value, jax.Array):
        return observed_array(value)
    if isinstance(value, jax.ShapeDtypeStruct):
        return _not_made(value)
    if isinstance(value, P):
        return tuple(entry if entry is None else plain(entry) for entry in value)
    if isinstance(value, slice):
        return _spelled(value)
    if isinstance(value, Observed):
        return value
    if isinstance(value, Mapping):
        if HELD in value:
            raise Refused(Refusal("holds key", (HELD,)))
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value))
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, numbers.Real):  # a fraction
        return float(value)
    if isinstance(value, Collection) and not isinstance(value, bytes) and not hasattr(value, "__array__"):
        return [plain(v) for v in value]  # a deque, or the keys of a dict
    array = np.asarray(value)
    if array.dtype.itemsize > 8 and array.dtype.kind in "fc":  # a precision that other machines may not have
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.complex128)
    if array.dtype.kind not in "biufc":
        raise Refused(_no_answer(value, array))
    return array


def _no_answer(value: Any, array: np.ndarray) -> Refusal:
    """Why a value cannot be compared."""
    if isinstance(next(iter(array.flat), None), jax.Device):
        return Refusal("holds devices")
    if isinstance(value, np.ndarray):
        return Refusal("holds dtype", (str(array.dtype),))
    return Refusal("holds type", (type(value).__name__,))


def _not_made(aval: jax.ShapeDtypeStruct) -> dict[str, Any]:
    """What is known of an array that nobody has made; its spec has an entry for every dimension."""
    known = {"shape": tuple(aval.shape), "dtype": str(aval.dtype)}
    if not isinstance(aval.sharding, NamedSharding):
        return {**known, "mesh": None, "spec": None}
    mesh, spec = aval.sharding.mesh, aval.sharding.spec
    entries = (plain(entry) for entry in (*spec, *[None] * (aval.ndim - len(spec))))
    return {**known, "mesh": _axes(mesh), "spec": tuple(entries)}


def _axes(mesh: Mesh | AbstractMesh) -> str:
    """Names and sizes of a mesh's axes; the type of one that is not Auto."""
    kinds = ("" if kind == AxisType.Auto else f" ({kind.name})" for kind in mesh.axis_types)
    return " × ".join(f"{name}={n}{kind}" for (name, n), kind in zip(mesh.shape.items(), kinds, strict=True))


def _spelled(part: slice) -> str:
    """A slice as it stands between brackets: 0:4, or : for all."""
    ends = [part.start, part.stop, *([] if part.step in (None, 1) else [part.step])]
    return ":".join("" if end is None else str(end) for end in ends)
