"""The transformer on one device, whole, and one step of its training: what every gate is held against.

Its pieces are in `grader.transformer`, which students import. The text shows these functions in its second cell, word
for word. Tokens and targets are int32 [B, T]; a target below 0 is padding and counts nowhere.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from grader.transformer.model import LAYER, attention, mlp, rms_norm
from grader.transformer.training import adamw, clipped

SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}


def logits_of(params, tokens):
    """Logits [B, T, vocabulary] of the token that follows each of tokens [B, T]."""
    positions = jnp.arange(tokens.shape[1])

    def applied(x, layer):
        x = x + attention(layer, rms_norm(x, layer["attention_norm"]), positions)
        return x + mlp(layer, rms_norm(x, layer["mlp_norm"])), None

    x, _ = lax.scan(applied, params["embedding"][tokens], {name: params[name] for name in LAYER})
    return rms_norm(x, params["norm"]) @ params["unembedding"]


def mean_loss(params, tokens, targets):
    """The mean over all real targets; one below 0 is padding."""
    logits, real = logits_of(params, tokens), targets >= 0
    picked = jnp.take_along_axis(logits, jnp.where(real, targets, 0)[..., None], axis=-1)[..., 0]
    return jnp.sum(jnp.where(real, jax.nn.logsumexp(logits, axis=-1) - picked, 0)) / jnp.sum(real)


def one_step(state, tokens, targets):
    """One step on microbatches [M, B, T], as if they were one batch: (new state, loss)."""
    rows = (array.reshape(-1, array.shape[-1]) for array in (tokens, targets))
    value, gradients = jax.value_and_grad(mean_loss)(state["params"], *rows)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradients)))
    return adamw(state, clipped(gradients, norm)), value
