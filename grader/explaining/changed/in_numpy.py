"""JAX's operations in NumPy, for a reference that runs again and again: nothing has to be compiled."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

# Of the same names in NumPy:
_ALIKE = ("abs", "ceil", "cos", "exp", "expm1", "floor", "log", "log1p", "sign", "sin", "sqrt", "square", "tanh")
_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {name: getattr(np, name) for name in _ALIKE} | {
    "add": np.add,
    "add_any": np.add,
    "and": np.logical_and,
    "div": np.divide,
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "is_finite": np.isfinite,
    "le": np.less_equal,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.logical_not,
    "or": np.logical_or,
    "pow": np.power,
    "stop_gradient": np.asarray,
    "sub": np.subtract,
}
_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
    "reduce_sum": np.sum,
}
_OF_BOOLS, _OF_FLOATS = ("and", "or", "not"), ("div",)  # NumPy's are for truth values, and for floats, only


def run_in_numpy(primitive: Any, params: Mapping[str, Any], *operands: Any) -> list[Any]:
    """The results of an operation; JAX does what NumPy does not have."""
    name, arrays = primitive.name, [_plain(operand) for operand in operands]
    if all(isinstance(array, np.ndarray) for array in arrays):
        with np.errstate(all="ignore"):
            if name in _ELEMENTWISE and _is_as_in_numpy(name, arrays):
                return [np.asarray(_ELEMENTWISE[name](*arrays))]
            if name in _REDUCTIONS:
                return [np.asarray(_REDUCTIONS[name](arrays[0], axis=tuple(params["axes"])), arrays[0].dtype)]
            if name in _OTHERS:
                return [np.asarray(_OTHERS[name](*arrays, **params))]
    results = primitive.bind(*operands, **params)
    return [_plain(result) for result in (results if primitive.multiple_results else [results])]


def _plain(value: Any) -> Any:
    """A value as an array of NumPy's; what is none, such as a key, as it is."""
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return value
    return np.asarray(value)


def _is_as_in_numpy(name: str, arrays: Sequence[np.ndarray]) -> bool:
    kind = arrays[0].dtype.kind
    return (name not in _OF_BOOLS or kind == "b") and (name not in _OF_FLOATS or kind not in "iu")


def _broadcast(array: np.ndarray, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any) -> np.ndarray:
    sizes = [1] * len(shape)
    for k, dimension in enumerate(broadcast_dimensions):
        sizes[dimension] = array.shape[k]
    return np.broadcast_to(array.reshape(sizes), shape)


def _sliced(
    array: np.ndarray, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None
) -> np.ndarray:
    steps = strides or [1] * array.ndim
    return array[tuple(map(slice, start_indices, limit_indices, steps))]


def _matmul(a: np.ndarray, b: np.ndarray, *, dimension_numbers: Any, **_: Any) -> np.ndarray:
    """As `jax.lax.dot_general` has it: first the dimensions of the batch, then those of a, then those of b."""
    (summed_a, summed_b), (batch_a, batch_b) = dimension_numbers
    free_a = [k for k in range(a.ndim) if k not in (*summed_a, *batch_a)]
    free_b = [k for k in range(b.ndim) if k not in (*summed_b, *batch_b)]
    batch = [a.shape[k] for k in batch_a]
    terms = math.prod(a.shape[k] for k in summed_a)
    rows, columns = [a.shape[k] for k in free_a], [b.shape[k] for k in free_b]
    left = a.transpose([*batch_a, *free_a, *summed_a]).reshape([*batch, math.prod(rows), terms])
    right = b.transpose([*batch_b, *summed_b, *free_b]).reshape([*batch, terms, math.prod(columns)])
    return (left @ right).reshape([*batch, *rows, *columns])


_OTHERS: Mapping[str, Callable[..., Any]] = {
    "argmax": lambda a, *, axes, index_dtype: np.argmax(a, axis=axes[0]).astype(index_dtype),
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda *arrays, dimension: np.concatenate(arrays, dimension),
    "convert_element_type": lambda a, *, new_dtype, **_: a.astype(new_dtype),
    "copy": lambda a: a,
    "dot_general": _matmul,
    "integer_pow": lambda a, *, y: a**y if y >= 0 else 1 / a**-y,
    "iota": lambda *, dtype, shape, dimension, **_: _broadcast(
        np.arange(shape[dimension], dtype=dtype), shape=shape, broadcast_dimensions=(dimension,)
    ),
    "logistic": lambda a, **_: 1 / (1 + np.exp(-a)),
    "reshape": lambda a, *, new_sizes, **_: a.reshape(new_sizes),
    "rev": lambda a, *, dimensions: np.flip(a, dimensions),
    "rsqrt": lambda a, **_: 1 / np.sqrt(a),
    "select_n": lambda which, *cases: functools.reduce(
        lambda chosen, k: np.where(which == k, cases[k], chosen), range(1, len(cases)), cases[0]
    ),
    "slice": _sliced,
    "squeeze": lambda a, *, dimensions: np.squeeze(a, tuple(dimensions)),
    "transpose": lambda a, *, permutation: a.transpose(permutation),
}
