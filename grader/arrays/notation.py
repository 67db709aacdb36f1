"""The notation of the lessons: A[I_X, J] is an array A, its dimension I cut over mesh axis x.

Two letters below a dimension, as in A[I_XY, J], cut it over both axes, x first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jax.sharding import PartitionSpec as P


@dataclass(frozen=True)
class Named:
    """An array by its notation: its name, its dimensions, and the mesh axes that cut each."""

    name: str
    dims: tuple[str, ...]
    axes: tuple[tuple[str, ...], ...]

    @property
    def spec(self) -> P:
        return P(*(None if not a else a[0] if len(a) == 1 else a for a in self.axes))


def parse(text: str) -> Named:
    """Read one array, such as `A[I_X, J]`. Raises ValueError for anything else."""
    match = re.fullmatch(r"\s*(\w+)\[([^\]]*)\]\s*", text)
    if not match:
        raise ValueError(f"{text!r} does not read like A[I_X, J]")
    parts = [part.strip().partition("_") for part in match[2].split(",")]
    return Named(match[1], tuple(dim for dim, _, _ in parts), tuple(tuple(axes.lower()) for _, _, axes in parts))


def factors(product: str) -> tuple[Named, Named]:
    """Read the two operands of `A[I, J] · B[J, K]`."""
    left, right = product.split("·")
    return parse(left), parse(right)
