"""Llama 3 in miniature, piece by piece, on one device.

Parameters are a dict of float32 arrays, whose dimensions `AXES` names; those of all layers are one behind the other,
along "layers". Lengths: B rows, T tokens, D width, N heads, K kv_heads (K divides N), H head, F hidden.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.renamed import renamed

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
EPSILON = 1e-5  # under the root of RMSNorm
THETA = 10_000.0  # the base of the rotary angles


def init_params(key: jax.Array, sizes: Mapping[str, int]) -> dict[str, jax.Array]:
    """Parameters at the start, for a model whose dimensions have these lengths: norm scales 1, matrices normal."""

    def drawn(key, name):
        shape = [sizes[axis] for axis in AXES[name]]
        return jnp.ones(shape) if name in NORMS else jax.random.normal(key, shape) / math.sqrt(sizes["width"])

    return {name: drawn(one, name) for one, name in zip(jax.random.split(key, len(AXES)), AXES, strict=True)}


def rms_norm(x, scale):
    """x [..., D] by its root mean square over the last dimension, times `scale` [D] (Zhang and Sennrich, 2019)."""
    return x * lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + EPSILON) * scale


def apply_rope(x, positions):
    """Rotary embedding (Su et al., 2021) of x [B, T, heads, H] at these positions [T]: entry i turns with i + H/2."""
    half = x.shape[-1] // 2
    angles = positions[:, None, None] * THETA ** (-jnp.arange(half) / half)
    first, second = jnp.split(x, 2, axis=-1)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def attended(q, k, v):
    """Causal attention of q [B, T, N, H] to k and v [B, T, K, H]: N/K neighbours among the heads share one of K."""
    b, t, n, h = q.shape
    scores = jnp.einsum("btkgh,bskh->bkgts", q.reshape(b, t, k.shape[2], -1, h), k) / math.sqrt(h)
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -jnp.inf)
    return jnp.einsum("bkgts,bskh->btkgh", jax.nn.softmax(scores, axis=-1), v).reshape(b, t, n, h)


def attention(layer, x, positions):
    """What attention adds to x [B, T, D], which is normed already, at positions [T].

    `layer` has "query", "key", "value" and "out" of one layer. With a part of the heads it returns a part of the sum.
    """
    q = apply_rope(jnp.einsum("btd,dnh->btnh", x, layer["query"]), positions)
    k = apply_rope(jnp.einsum("btd,dkh->btkh", x, layer["key"]), positions)
    v = jnp.einsum("btd,dkh->btkh", x, layer["value"])
    return jnp.einsum("btnh,nhd->btd", attended(q, k, v), layer["out"])


def mlp(layer, x):
    """What the MLP (SwiGLU) adds to x [B, T, D], which is normed already.

    `layer` has "gate", "up" and "down" of one layer. With a part of the hidden units it returns a part of the sum.
    """
    return (jax.nn.silu(x @ layer["gate"]) * (x @ layer["up"])) @ layer["down"]


# Until the next version.
_OLD_NAMES = {"initial": "init_params", "rotated": "apply_rope"}


def __getattr__(name: str) -> Any:
    return renamed(__name__, _OLD_NAMES, name)
