"""Arguments that are laid out over a mesh, alone or in pytrees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec as P


@dataclass(frozen=True)
class Array:
    """An argument laid out over a mesh: its values and the spec that says who holds what."""

    value: np.ndarray
    spec: P


def holds_arrays(argument: Any) -> bool:
    """Whether an argument is an `Array`, or a dict, list or tuple with one in it."""
    return any(isinstance(leaf, Array) for leaf in jax.tree.leaves(argument))


def values_of(argument: Any) -> Any:
    """The argument with plain values in place of every `Array`."""
    return jax.tree.map(lambda leaf: leaf.value if isinstance(leaf, Array) else leaf, argument)
