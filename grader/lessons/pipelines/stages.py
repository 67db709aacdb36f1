"""What the programs of this lesson are made of: a pipeline on one mesh axis, `stage`, each device in the same loop.

A stage is one layer, tanh(h · w), unless something else is said.
"""

from __future__ import annotations

from functools import partial

import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Draw, ProgramExercise

SHAPES = (4,), (3,), (2,)  # not of one stage: there nothing is sent
EIGHTHS = 8  # values are whole numbers over this: where tanh is neither a line nor flat

on_stages = partial(ProgramExercise, mesh_shapes=SHAPES)


def small(draw: Draw, *shape: int, spec: P) -> Array:
    """Values of about one."""
    return Array(draw.values(*shape) / EIGHTHS, spec)


def send_on(block, n: int, by: int = 1):
    """To the device `by` stages on."""
    return lax.ppermute(block, "stage", [(k, (k + by) % n) for k in range(n)])


def one_layer(w, h):
    return jnp.tanh(h @ w)


def through(weights, x):
    """What one device computes: microbatch after microbatch is no different from all at once."""
    for w in weights:
        x = one_layer(w, x)
    return x


def lengths(draw: Draw) -> tuple[int, int, int]:
    """Microbatches, examples of one, and width."""
    return draw.lengths(3, divisible_by=2)
