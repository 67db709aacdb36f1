"""What an operation gives, worked out by NumPy where that is as good as XLA: to compile one takes 10 ms."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from grader.replays.collectives import Params

DTYPES = {"float32", "int32", "bool"}
LITTLE = 1 << 20  # multiplications: XLA is quicker where there are many


def in_numpy(eqn: Any, operands: Sequence[Any]) -> np.ndarray | None:
    """The one result of an operation, up to rounding; None where XLA is to work it out."""
    if (work := _WORK.get(eqn.primitive.name)) is None or not all(isinstance(o, np.ndarray) for o in operands):
        return None
    expected = eqn.outvars[0].aval
    if not {str(expected.dtype), *(str(operand.dtype) for operand in operands)} <= DTYPES:
        return None
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(work(eqn.params, *operands))
    except (KeyError, TypeError, ValueError):  # another JAX calls it otherwise, or NumPy has none of this
        return None
    return found if (found.shape, found.dtype) == (expected.shape, expected.dtype) else None


def _entries(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda params, *arrays: operation(*arrays)


def _along(operation: np.ufunc) -> Callable[..., Any]:
    return lambda params, array: operation.reduce(array, axis=tuple(params["axes"]))


def _converted(params: Params, array: np.ndarray) -> Any:
    """Numbers of another type; XLA has rules of its own for a float that becomes a whole number."""
    return None if array.dtype.kind == "f" else array.astype(params["new_dtype"])


def _counted(params: Params) -> Any:
    shape, along = params["shape"], params["dimension"]
    numbers = np.arange(shape[along], dtype=params["dtype"])
    return np.broadcast_to(numbers.reshape([-1 if k == along else 1 for k in range(len(shape))]), shape).copy()


def _dot(params: Params, one: np.ndarray, other: np.ndarray) -> Any:
    (summed, beside), (along, across) = params["dimension_numbers"]
    if one.size * other.size > LITTLE:
        return None
    names, rows = list(range(one.ndim)), list(range(one.ndim, one.ndim + other.ndim))
    for k, j in zip((*summed, *along), (*beside, *across), strict=True):
        rows[j] = names[k]
    free = [names[k] for k in range(one.ndim) if k not in (*summed, *along)]
    free += [rows[k] for k in range(other.ndim) if k not in (*beside, *across)]
    return np.einsum(one, names, other, rows, [*(names[k] for k in along), *free])


def _start(array: np.ndarray, sizes: Sequence[int], begins: Sequence[Any]) -> tuple[slice, ...]:
    """Where a slice of these sizes is, which is moved so far that it lies inside."""
    places = [min(max(int(b), 0), n - size) for b, n, size in zip(begins, array.shape, sizes, strict=True)]
    return tuple(slice(place, place + size) for place, size in zip(places, sizes, strict=True))


def _updated(_: Params, array: np.ndarray, part: np.ndarray, *begins: Any) -> Any:
    after = array.copy()
    after[_start(array, part.shape, begins)] = part
    return after


def _spread(params: Params, array: np.ndarray) -> Any:
    shape, places = params["shape"], params["broadcast_dimensions"]
    here = dict(zip(places, array.shape, strict=True))
    return np.broadcast_to(array.reshape([here.get(k, 1) for k in range(len(shape))]), shape).copy()


def _chosen(_: Params, which: np.ndarray, no: np.ndarray, yes: np.ndarray) -> Any:
    return np.where(which, yes, no) if which.dtype == bool else None


def _cut(params: Params, array: np.ndarray) -> Any:
    strides = params["strides"] or [1] * array.ndim
    edges = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return array[tuple(slice(*edge) for edge in edges)]


_WORK: Mapping[str, Callable[..., Any]] = {
    "add": _entries(np.add),
    "sub": _entries(np.subtract),
    "mul": _entries(np.multiply),
    "div": _entries(np.divide),  # of whole numbers it gives another type here
    "add_any": _entries(np.add),
    "max": _entries(np.maximum),
    "min": _entries(np.minimum),
    "neg": _entries(np.negative),
    "sqrt": _entries(np.sqrt),
    "lt": _entries(operator.lt),
    "le": _entries(operator.le),
    "gt": _entries(operator.gt),
    "ge": _entries(operator.ge),
    "eq": _entries(operator.eq),
    "ne": _entries(operator.ne),
    "integer_pow": lambda params, array: array ** params["y"],
    "convert_element_type": _converted,
    "iota": _counted,
    "dot_general": _dot,
    "reduce_sum": _along(np.add),
    "reduce_max": _along(np.maximum),
    "reduce_min": _along(np.minimum),
    "select_n": _chosen,
    "dynamic_slice": lambda params, array, *begins: array[_start(array, params["slice_sizes"], begins)],
    "dynamic_update_slice": _updated,
    "broadcast_in_dim": _spread,
    "reshape": lambda params, array: None if params["dimensions"] else array.reshape(params["new_sizes"]),
    "squeeze": lambda params, array: array.squeeze(tuple(params["dimensions"])),
    "transpose": lambda params, array: array.transpose(params["permutation"]),
    "slice": _cut,
    "concatenate": lambda params, *parts: np.concatenate(parts, params["dimension"]),
}
