"""What several lessons write: a program per device, what its collectives send, and a table's wrong rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.programs.structure import ring_bytes

FLOAT = 4  # bytes of a float32


def device_map(body, mesh: Mesh, in_specs, out_specs, check_vma: bool = False, **options):
    """`body`, a function of one device's blocks, as a function of whole arrays; shard_map's check is off."""
    return jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_vma, **options)


def sharding(mesh: Mesh, *parts, **more) -> NamedSharding:
    """The layout on this mesh by the spec `P(*parts, **more)`; without any, whole on every device."""
    return NamedSharding(mesh, P(*parts, **more))


def predict(params, x):
    """The network of lessons 12 and 14: relu between its layers, each of which is a dict with "W" and "b"."""
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["W"] + layer["b"])
    return x @ last["W"] + last["b"]


def loss(params, x, y):
    """The mean over the batch of the summed squares of what is missing."""
    return jnp.mean(jnp.sum((predict(params, x) - y) ** 2, axis=-1))


def bytes_sent(kind: str, elements: int, n: int) -> int:
    """Bytes that each of n devices in a ring sends in one collective (`ring_bytes` has the formula).

    `elements` counts the float32 of its operand on one device: a block for an all_gather or an all_to_all, all the
    terms of a device's own for an all_reduce or a reduce_scatter.
    """
    return round(ring_bytes(kind, elements * FLOAT, n))


def believed(row: str, wrong: Any, *rows: str) -> Any:
    """What a mistake says: something wrong in the rows of a table that it is about, None in the others."""
    return wrong if row in rows else None


def within(part: float) -> Callable[..., bool]:
    """Two numbers are the same answer if they differ by no more than this part of the larger one."""

    def same(one, other, **_):
        return isinstance(one, (int, float)) and math.isclose(one, other, rel_tol=part)

    return same
