"""What the programs of this lesson compute, on one device in NumPy and block by block in JAX.

A *part* of an attention is what some of the keys come to: for each query the largest logit, the sum of the weights
relative to it, and the weighted sum of the values, not yet divided.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Draw

ROWS = P("x", None)
INS = ROWS, ROWS, ROWS  # q[T, D], k[T, D], v[T, E]
RINGS = (4,), (3,), (6,), (2,)  # not of one device: there shard_map leaves no trace in a program
LOOPS = (4,), (3,), (6,)  # nor of two, where memory is judged: a loop of one turn is written out by the compiler
ROUNDINGS = 2000  # a logit is off by some roundings of numbers near 100, and a weight by e to the power of that
NOTHING = -jnp.inf  # the largest logit of no logits


def whole(q, k, v, seen=True):
    """softmax(q·k / √D)·v of q[T, D], k[S, D], v[S, E], in double precision; `seen` is True where a query may look."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    logits = np.where(seen, q @ k.T / np.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def causal(q, k, v):
    """The same where a token looks at itself and at those before it."""
    return whole(q, k, v, np.tri(len(q), dtype=bool))


def attend(q, k, v, seen=True):
    """softmax(q·k / √D)·v on one device."""
    _, weight, mixed = part(q, k, v, seen)
    return mixed / weight


def part(q, k, v, seen=True):
    """What these keys come to: largest logit [T, 1], weight [T, 1], weighted values [T, E]."""
    logits = jnp.where(seen, q @ k.T / q.shape[-1] ** 0.5, NOTHING)
    top = logits.max(-1, keepdims=True)
    weights = jnp.exp(logits - jnp.where(top == NOTHING, 0, top))
    return top, weights.sum(-1, keepdims=True), weights @ v


def merged(one, other):
    """Two parts as one."""
    top = jnp.maximum(one[0], other[0])
    base = jnp.where(top == NOTHING, 0, top)
    mine, theirs = jnp.exp(one[0] - base), jnp.exp(other[0] - base)
    return top, mine * one[1] + theirs * other[1], mine * one[2] + theirs * other[2]


def send(block, n: int, by: int = 1):
    """What the device `by` places back held."""
    return lax.ppermute(block, "x", [(k, (k + by) % n) for k in range(n)])


def drawn(draw: Draw, *blocks: int) -> tuple[dict[str, int], dict[str, Array]]:
    """A mesh, and q, k, v on it: blocks of one of these lengths. All logits are too large for an exp that nobody holds
    back, and differ little: every key counts for every query. On an odd number of devices they are as far below 0, so
    that a key with a logit of 0 is no hidden one. In the last case those of the first block are larger by far: a logit
    of another block is nothing to hold them against. Keys and values have more bits than bfloat16."""
    mesh = draw.mesh("x")
    tokens = mesh["x"] * int(draw.rng.choice(blocks))
    d, e = (4, 4) if draw.square else (int(k) for k in draw.rng.permutation([4, 6]))
    q, k, v = (draw.array(tokens, width, spec=ROWS) for width in (d, d, e))
    q, k, v = (Array((a.value / share).astype(np.float32), ROWS) for a, share in ((q, 4), (k, 4.4), (v, 1.1)))
    q.value[:, 0], k.value[:, 0] = 24, 12 if mesh["x"] % 2 == 0 else -12
    if draw.square:
        k.value[: tokens // mesh["x"], 0] = 22
    return mesh, {"q": q, "k": k, "v": v}
