"""The transformer on one device, in plain JAX, and one step of its training: what every gate is held against.

Parameters are a dict of float32 arrays, whose dimensions `AXES` names; those of all layers are one behind the other,
along "layers". Lengths: V vocabulary, D width, N heads, K kv_heads (K divides N), H head, F hidden.
Tokens and targets are int32 [B, T]; a target below 0 is padding and counts nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

AXES = {
    "embedding": P("vocabulary", "width"),
    "attention_norm": P("layers", "width"),
    "query": P("layers", "width", "heads", "head"),
    "key": P("layers", "width", "kv_heads", "head"),
    "value": P("layers", "width", "kv_heads", "head"),
    "out": P("layers", "heads", "head", "width"),
    "mlp_norm": P("layers", "width"),
    "gate": P("layers", "width", "hidden"),
    "up": P("layers", "width", "hidden"),
    "down": P("layers", "hidden", "width"),
    "norm": P("width"),
    "unembedding": P("width", "vocabulary"),
}
LAYER = [name for name, axes in AXES.items() if "layers" in tuple(axes)]
NORMS = [name for name in AXES if name.endswith("norm")]
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}
EPSILON = 1e-5  # under the root of RMSNorm
THETA = 10_000.0  # the base of the rotary angles
RATE, WARMUP = 0.001, 10  # AdamW: the learning rate after so many steps, to which it rises
BETA1, BETA2, TINY, DECAY, LIMIT = 0.9, 0.95, 1e-8, 0.1, 1.0  # LIMIT: the norm to which gradients are clipped


def initial(key: jax.Array, sizes: Mapping[str, int]) -> dict[str, jax.Array]:
    """Parameters at the start: norm scales 1, matrices normal, of about unit gain."""

    def drawn(key, name):
        shape = [sizes[axis] for axis in AXES[name]]
        return jnp.ones(shape) if name in NORMS else jax.random.normal(key, shape) / math.sqrt(sizes["width"])

    return {name: drawn(one, name) for one, name in zip(jax.random.split(key, len(AXES)), AXES, strict=True)}


def rms_norm(x, scale):
    """x / its root mean square over the last dimension, times `scale`."""
    return x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + EPSILON) * scale


def rotated(x, positions):
    """Rotary embedding of x [B, T, heads, H] at these positions [T]: entry i turns with entry i + H/2."""
    half = x.shape[-1] // 2
    angles = positions[:, None, None] * THETA ** (-jnp.arange(half) / half)
    first, second = jnp.split(x, 2, axis=-1)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def attended(q, k, v):
    """Causal attention of q [B, T, N, H] to k and v [B, T, K, H]; N/K neighbouring query heads share a key's."""
    b, t, n, h = q.shape
    groups = q.reshape(b, t, k.shape[2], -1, h)
    scores = jnp.einsum("btkgh,bskh->bkgts", groups, k) / math.sqrt(h)
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
    return jnp.einsum("bkgts,bskh->btkgh", jax.nn.softmax(scores, axis=-1), v).reshape(b, t, n, h)


def attention(layer, x, positions):
    """What attention adds to x [B, T, D], which is normed already, at positions [T]. N and K may be some heads only."""
    q = rotated(jnp.einsum("btd,dnh->btnh", x, layer["query"]), positions)
    k = rotated(jnp.einsum("btd,dkh->btkh", x, layer["key"]), positions)
    v = jnp.einsum("btd,dkh->btkh", x, layer["value"])
    return jnp.einsum("btnh,nhd->btd", attended(q, k, v), layer["out"])


def mlp(layer, x):
    """What the SwiGLU layer adds to x [B, T, D], which is normed already. Of F a device may have a part only."""
    return (jax.nn.silu(x @ layer["gate"]) * (x @ layer["up"])) @ layer["down"]


def logits_of(params, tokens):
    """Logits [B, T, V] of the token that follows each."""
    positions = jnp.arange(tokens.shape[1])

    def applied(x, layer):
        x = x + attention(layer, rms_norm(x, layer["attention_norm"]), positions)
        return x + mlp(layer, rms_norm(x, layer["mlp_norm"])), None

    x, _ = lax.scan(applied, params["embedding"][tokens], {name: params[name] for name in LAYER})
    return rms_norm(x, params["norm"]) @ params["unembedding"]


def mean_loss(params, tokens, targets):
    """The mean over all real targets of minus the logarithm of their probability."""
    logits, real = logits_of(params, tokens), targets >= 0
    picked = jnp.take_along_axis(logits, jnp.where(real, targets, 0)[..., None], axis=-1)[..., 0]
    return jnp.sum(jnp.where(real, jax.nn.logsumexp(logits, axis=-1) - picked, 0)) / jnp.sum(real)


def started(params) -> dict:
    """The state of training before its first step: parameters, Adam's two moments, the number of steps done."""
    mean, square = (
        jax.tree.map(jnp.zeros_like, params) for _ in range(2)
    )  # of each its own: no array is donated twice
    return {"params": params, "mean": mean, "square": square, "count": jnp.zeros((), jnp.int32)}


def adamw(state, gradients):
    """The state after one step of AdamW by these gradients. Norm scales do not decay."""
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
    """The gradients, of which this is the norm of all together, shortened to LIMIT where they are longer."""
    return jax.tree.map(lambda g: g * jnp.minimum(1, LIMIT / norm), gradients)


def one_step(state, tokens, targets):
    """One step on microbatches [M, B, T], as if they were one batch [M · B, T]: (new state, loss)."""
    rows = (array.reshape(-1, array.shape[-1]) for array in (tokens, targets))
    loss, gradients = jax.value_and_grad(mean_loss)(state["params"], *rows)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)))
    return adamw(state, clipped(gradients, norm)), loss
