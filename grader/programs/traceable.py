"""A reference as a function that JAX can trace, whether it is written in JAX or in NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp


def in_jax(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The reference as a function of JAX's arrays."""

    def traceable(*given: Any) -> Any:
        with warnings.catch_warnings(action="ignore"):  # JAX's, that it has no float64 here
            try:
                return reference(*given)
            except Exception:  # what NumPy says of a traced array depends on what was asked of it
                return _opened(reference(*_wrapped(given)))

    return traceable


class _Wrapped(np.lib.mixins.NDArrayOperatorsMixin):
    """A JAX array that NumPy's functions take, and on which they do what JAX's of the same names do."""

    def __init__(self, value: Any):
        self.value = value

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        named = getattr(jnp, ufunc.__name__)
        return _wrapped((named if method == "__call__" else getattr(named, method))(*_opened(given), **options))

    def __array_function__(self, function: Any, _: Any, given: Any, options: Any) -> Any:
        return _wrapped(getattr(jnp, function.__name__)(*_opened(given), **_opened(dict(options))))

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.value, name)
        if callable(attribute) and not isinstance(attribute, jax.Array):
            return lambda *given, **options: _wrapped(attribute(*_opened(given), **_opened(options)))
        return _wrapped(attribute)

    def __getitem__(self, index: Any) -> Any:
        return _wrapped(self.value[_opened(index)])

    def __len__(self) -> int:
        return len(self.value)


def _wrapped(tree: Any) -> Any:
    return jax.tree.map(lambda x: _Wrapped(x) if isinstance(x, jax.Array) else x, tree)


def _opened(tree: Any) -> Any:
    is_wrapped = lambda x: isinstance(x, _Wrapped)  # noqa: E731
    return jax.tree.map(lambda x: x.value if is_wrapped(x) else x, tree, is_leaf=is_wrapped)
