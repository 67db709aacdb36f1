"""JAX's operations in NumPy, for programs that run one operation at a time: XLA takes 10 ms to compile each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

DTYPES = {"float32", "int32", "bool"}
LARGEST_MATMUL = 1 << 20  # multiplications: XLA is faster beyond
_Params = Mapping[str, Any]


def in_numpy(eqn: Any, operands: Sequence[Any]) -> np.ndarray | None:
    """The only result of an operation, equal to XLA's up to rounding; None where XLA has to compute it."""
    if (operation := IN_NUMPY.get(eqn.primitive.name)) is None:
        return None
    expected = eqn.outvars[0].aval
    if not all(isinstance(operand, np.ndarray) for operand in operands):
        return None
    if not {str(expected.dtype), *(str(operand.dtype) for operand in operands)} <= DTYPES:
        return None
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(operation(eqn.params, *operands))
    except (KeyError, TypeError, ValueError):  # another JAX names it differently, or NumPy doesn't have it
        return None
    return found if (found.shape, found.dtype) == (expected.shape, expected.dtype) else None


def _elementwise(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda params, *arrays: operation(*arrays)


def _reduction(operation: np.ufunc) -> Callable[..., Any]:
    return lambda params, array: operation.reduce(array, axis=tuple(params["axes"]), dtype=array.dtype)


def _of_bools(operation: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's are logical, and JAX's are bitwise."""
    return lambda params, *arrays: operation(*arrays) if arrays[0].dtype == bool else None


def _convert(params: _Params, array: np.ndarray) -> Any:
    """XLA has its own rules for a float that becomes an integer."""
    to_integer = array.dtype.kind == "f" and np.dtype(params["new_dtype"]).kind != "f"
    return None if to_integer else array.astype(params["new_dtype"])


def _iota(params: _Params) -> Any:
    shape, along = params["shape"], params["dimension"]
    numbers = np.arange(shape[along], dtype=params["dtype"])
    return np.broadcast_to(numbers.reshape([-1 if k == along else 1 for k in range(len(shape))]), shape).copy()


def _dot_general(params: _Params, a: np.ndarray, b: np.ndarray) -> Any:
    """First the batch dimensions, then the free ones of a, then those of b, as in `jax.lax.dot_general`."""
    (summed_a, summed_b), (batch_a, batch_b) = params["dimension_numbers"]
    free_a = [k for k in range(a.ndim) if k not in (*summed_a, *batch_a)]
    free_b = [k for k in range(b.ndim) if k not in (*summed_b, *batch_b)]
    batch, terms = [a.shape[k] for k in batch_a], math.prod(a.shape[k] for k in summed_a)
    rows, columns = [a.shape[k] for k in free_a], [b.shape[k] for k in free_b]
    if math.prod([*batch, *rows, *columns, terms]) > LARGEST_MATMUL:
        return None
    left = a.transpose([*batch_a, *free_a, *summed_a]).reshape([*batch, math.prod(rows), terms])
    right = b.transpose([*batch_b, *summed_b, *free_b]).reshape([*batch, terms, math.prod(columns)])
    return (left @ right).reshape([*batch, *rows, *columns])


def _start(array: np.ndarray, sizes: Sequence[int], starts: Sequence[Any]) -> tuple[slice, ...]:
    """The slice of these sizes, moved so that it lies inside the array."""
    inside = [min(max(int(start), 0), n - size) for start, n, size in zip(starts, array.shape, sizes, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(inside, sizes, strict=True))


def _dynamic_update_slice(_: _Params, array: np.ndarray, part: np.ndarray, *starts: Any) -> Any:
    after = array.copy()
    after[_start(array, part.shape, starts)] = part
    return after


def _broadcast_in_dim(params: _Params, array: np.ndarray) -> Any:
    shape, sizes = params["shape"], dict(zip(params["broadcast_dimensions"], array.shape, strict=True))
    return np.broadcast_to(array.reshape([sizes.get(k, 1) for k in range(len(shape))]), shape).copy()


def _select_n(_: _Params, which: np.ndarray, *cases: np.ndarray) -> Any:
    return np.where(which, cases[1], cases[0]) if which.dtype == bool and len(cases) == 2 else None


def _slice(params: _Params, array: np.ndarray) -> Any:
    strides = params["strides"] or [1] * array.ndim
    return array[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


_SAME_NAME = ("abs", "ceil", "cos", "exp", "expm1", "floor", "log", "log1p", "sign", "sin", "sqrt", "square", "tanh")
_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {name: getattr(np, name) for name in _SAME_NAME} | {
    "add": np.add,
    "add_any": np.add,
    "copy": np.copy,
    "div": np.divide,  # of integers it gives another dtype here
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "is_finite": np.isfinite,
    "le": np.less_equal,
    "logistic": lambda a: 1 / (1 + np.exp(-a)),
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "pow": np.power,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "stop_gradient": np.asarray,
    "sub": np.subtract,
}
IN_NUMPY: Mapping[str, Callable[..., Any]] = {
    **{name: _elementwise(operation) for name, operation in _ELEMENTWISE.items()},
    "and": _of_bools(np.logical_and),
    "not": _of_bools(np.logical_not),
    "or": _of_bools(np.logical_or),
    "reduce_max": _reduction(np.maximum),
    "reduce_min": _reduction(np.minimum),
    "reduce_prod": _reduction(np.multiply),
    "reduce_sum": _reduction(np.add),
    "argmax": lambda params, a: np.argmax(a, axis=params["axes"][0]).astype(params["index_dtype"]),
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": lambda params, *arrays: np.concatenate(arrays, params["dimension"]),
    "convert_element_type": _convert,
    "dot_general": _dot_general,
    "dynamic_slice": lambda params, a, *starts: a[_start(a, params["slice_sizes"], starts)],
    "dynamic_update_slice": _dynamic_update_slice,
    "integer_pow": lambda params, a: a ** params["y"] if params["y"] >= 0 else 1 / a ** -params["y"],
    "iota": _iota,
    "reshape": lambda params, a: None if params["dimensions"] else a.reshape(params["new_sizes"]),
    "rev": lambda params, a: np.flip(a, params["dimensions"]),
    "select_n": _select_n,
    "slice": _slice,
    "squeeze": lambda params, a: a.squeeze(tuple(params["dimensions"])),
    "transpose": lambda params, a: a.transpose(params["permutation"]),
}
