"""The state of training and what moves it: AdamW, clipping, gradients added up over microbatches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from grader.renamed import renamed
from grader.transformer.model import NORMS

RATE, WARMUP = 0.001, 10  # AdamW: the learning rate after so many steps, to which it rises
BETA1, BETA2, TINY, DECAY, LIMIT = 0.9, 0.95, 1e-8, 0.1, 1.0  # LIMIT: the norm to which gradients are clipped


def init_state(params) -> dict:
    """The state of training before its first step: "params", Adam's "mean" and "square", the "count" of steps done."""
    mean, square = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))  # no array is to be donated twice
    return {"params": params, "mean": mean, "square": square, "count": jnp.zeros((), jnp.int32)}


def adamw(state, gradients):
    """The state after one step of AdamW (Loshchilov and Hutter, 2019) by these gradients.

    The rate rises for ten steps; norm scales do not decay. Of every leaf a part is enough.
    """
    count = state["count"] + 1
    rate = RATE * jnp.minimum(1, count / WARMUP)
    mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, state["mean"], gradients)
    square = jax.tree.map(lambda s, g: BETA2 * s + (1 - BETA2) * g**2, state["square"], gradients)

    def moved(name, p):
        towards = (mean[name] / (1 - BETA1**count)) / (jnp.sqrt(square[name] / (1 - BETA2**count)) + TINY)
        return p - rate * (towards if name in NORMS else towards + DECAY * p)

    params = {name: moved(name, p) for name, p in state["params"].items()}
    return {"params": params, "mean": mean, "square": square, "count": count}


def clipped(gradients, norm):
    """The gradients, of which this is the norm of all together, shortened to a norm of 1 where they are longer."""
    return jax.tree.map(lambda g: g * jnp.minimum(1, LIMIT / norm), gradients)


def accumulate(part, params, *batches):
    """`part(params, *microbatch)`, which is the same on all devices, and its gradients: added up over microbatches.

    The arrays in `batches` have the microbatches along their first dimension. Returns (sum of the parts, gradients).
    """

    def added(so_far, microbatch):
        return jax.tree.map(jnp.add, so_far, jax.value_and_grad(part)(params, *microbatch)), None

    nothing = jnp.zeros(()), jax.tree.map(jnp.zeros_like, params)
    return lax.scan(added, nothing, batches)[0]


# Until the next version.
_OLD_NAMES = {"added_up": "accumulate", "started": "init_state"}


def __getattr__(name: str) -> Any:
    return renamed(__name__, _OLD_NAMES, name)
