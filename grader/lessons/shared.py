"""What several lessons write: a program per device, what its collectives send, and a table's wrong rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Draw
from grader.programs.collectives import ring_bytes

FLOAT = 4  # bytes of a float32

COLLECTIVES = {  # what to say of one that was chosen in a table's wrong row
    "all_gather": "An all_gather brings the blocks of all devices to every one of them. Does each need all of them "
    "here?",
    "all_reduce": "An all_reduce adds up what the devices hold, entry by entry. What is there to be added up here?",
    "psum": "A psum adds up what the devices hold, entry by entry, and all have the sum. Is it a sum that is wanted "
    "here?",
    "pmean": "A pmean adds up what the devices hold, and divides by their number. Is it a mean that is wanted here?",
    "pmax": "A pmax keeps the largest of what the devices hold, entry by entry. Is that what is wanted here?",
    "psum_scatter": "A psum_scatter adds up what the devices hold, and leaves each its own part of the sum. Is "
    "anything added up here, and does each keep a part?",
    "all_to_all": "In an all_to_all each device sends every other one another piece of its block. Does each device "
    "need a piece of every block here?",
    "ppermute": "In a ppermute each device gets one block at most, from a single other device. Is that enough here?",
    "collective_permute": "In a collective_permute each device gets one block at most, from a single other device. "
    "Is that what happens here?",
    "axis_index": "An axis_index tells a device its own place, and brings it nothing of the others. Is nothing of "
    "theirs needed here?",
    "nothing": "Where nothing is sent, each device makes do with what it holds. Take one device: what does it need, "
    "and does it hold all of that?",
}


def device_map(body, mesh: Mesh, in_specs, out_specs, check_vma: bool = False, **options):
    """`body`, a function of one device's blocks, as a function of whole arrays; shard_map's check is off."""
    return jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_vma, **options)


def sharding(mesh: Mesh, *parts, **more) -> NamedSharding:
    """The layout on this mesh by the spec `P(*parts, **more)`; without any, whole on every device."""
    return NamedSharding(mesh, P(*parts, **more))


def to_send(draw: Draw, *shape: int, spec: P) -> Array:
    """An array that is to travel as it is: in the round of equal lengths it has more digits than float16 and bfloat16.

    Their sums still come out exact.
    """
    digits = 1 + np.arange(math.prod(shape), dtype=np.float32).reshape(shape) % 7
    return Array(draw.values(*shape) + np.float32(draw.square / 512) * digits, spec)


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
        one = one.item() if isinstance(one, np.ndarray) and not one.ndim else one  # a number of JAX's, or of NumPy's
        return isinstance(one, (int, float)) and math.isclose(one, other, rel_tol=part)

    return same
