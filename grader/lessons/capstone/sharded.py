"""The same training step on a mesh with axes `data` and `model`: FSDP × TP with the sequence cut between layers.

Every function but `sharded_step` runs on one device, inside shard_map, with the check on. There the matrices are cut in
D over `data` (FSDP) and in vocabulary, heads or hidden over `model` (`SPECS`); x is cut in B over `data` and in T over
`model`; logits in B and V.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.transformer.model import AXES, LAYER, NORMS, attention, mlp, rms_norm
from grader.transformer.training import accumulate, adamw, clipped

ROWS = P("data")
LOGITS = P("data", None, "model")
RULES = {"width": "data", "vocabulary": "model", "heads": "model", "kv_heads": "model", "hidden": "model"}
SPECS = {name: P() if name in NORMS else P(*map(RULES.get, axes)) for name, axes in AXES.items()}
STATE = {"params": SPECS, "mean": SPECS, "square": SPECS, "count": P()}


def whole_width(name, leaf):
    """A leaf, or a layer's part of it, gathered where it is cut over `data`; else as it is."""
    spec = tuple(SPECS[name])
    if "data" not in spec:
        return leaf
    return lax.all_gather(leaf, "data", axis=spec.index("data") - (name in LAYER), tiled=True)


def own_words(numbers, words):
    """Of numbers in the whole vocabulary: which are among the `words` of this device, and their places there."""
    local = numbers - lax.axis_index("model") * words
    mine = (local >= 0) & (local < words)
    return mine, jnp.where(mine, local, 0)


def gathered_sequence(x):
    return lax.all_gather(x, "model", axis=1, tiled=True)


def normed_and_gathered(x, scale):
    """All tokens of a device's rows, each normed by the device that has it."""
    return gathered_sequence(rms_norm(x, scale))


def scattered_sequence(x):
    """Parts of a sum, on the devices along `model`: added up, and cut in T."""
    return lax.psum_scatter(x, "model", scatter_dimension=1, tiled=True)


def all_positions(x):
    """The positions [T] of the whole sequence, of which x is a device's block."""
    return jnp.arange(x.shape[1] * lax.axis_size("model"))


def as_it_is(x, scale):
    return x


@dataclass(frozen=True)
class Pieces:
    """What a device does between one device's own functions. A mistake puts another in the place of one."""

    width: Callable[..., Any] = whole_width
    words: Callable[..., Any] = own_words
    heard: Callable[..., Any] = normed_and_gathered  # by attention and the MLP
    looked_up: Callable[..., Any] = scattered_sequence  # of the table's rows
    scattered: Callable[..., Any] = scattered_sequence  # of what a layer adds
    kept: Callable[..., Any] = as_it_is  # of x where a layer adds to it; the norm's scale is given, too
    at_the_end: Callable[..., Any] = normed_and_gathered
    positions: Callable[..., Any] = all_positions


RIGHT = Pieces()


def layer_applied(x, layer, pieces=RIGHT):
    """One layer on a device's block of the sequence; its weights are gathered here, and not kept for the way back."""
    layer = {name: pieces.width(name, leaf) for name, leaf in layer.items()}
    heard = pieces.heard(x, layer["attention_norm"])
    kept = pieces.kept(x, layer["attention_norm"])
    x = kept + pieces.scattered(attention(layer, heard, pieces.positions(x)))
    kept = pieces.kept(x, layer["mlp_norm"])
    return kept + pieces.scattered(mlp(layer, pieces.heard(x, layer["mlp_norm"])))


def local_logits(params, tokens, pieces=RIGHT):
    """Logits [b, T, V/model] of a device's own rows and words."""
    table = pieces.width("embedding", params["embedding"])
    mine, local = pieces.words(tokens, len(table))
    x = pieces.looked_up(jnp.where(mine[..., None], table[local], 0))

    @jax.checkpoint
    def applied(x, layer):
        return layer_applied(x, layer, pieces), None

    x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
    return pieces.at_the_end(x, params["norm"]) @ pieces.width("unembedding", params["unembedding"])


def token_losses(logits, targets, words=own_words):
    """The loss of every token [B, T], of logits that are cut in V over `model`; 0 for padding."""
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    mine, local = words(targets, logits.shape[-1])
    picked = jnp.take_along_axis(logits, local[..., None], axis=-1)[..., 0]
    found = lax.psum(jnp.where(mine, picked, 0), "model")
    return jnp.where(targets >= 0, jnp.log(total) + top - found, 0)


def local_loss(params, tokens, targets):
    """The mean over the real tokens of all devices."""
    losses = token_losses(local_logits(params, tokens), targets)
    return lax.psum(jnp.sum(losses), "data") / lax.psum(jnp.sum(targets >= 0), "data")


def squares(gradients):
    """The sum of the squares of all gradients: of what is cut, the devices' parts together; of copies, one."""
    parts = sum(jnp.sum(g**2) for name, g in gradients.items() if name not in NORMS)
    return lax.psum(parts, ("data", "model")) + sum(jnp.sum(gradients[name] ** 2) for name in NORMS)


def accumulated(params, tokens, targets):
    """(loss, gradients) of microbatches [M, b, T] as of one batch: each a part of the mean over all real tokens."""
    real = lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        return lax.psum(jnp.sum(token_losses(local_logits(params, tokens), targets)), "data") / real

    return accumulate(part, params, tokens, targets)


def local_step(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    loss, gradients = accumulated(state["params"], tokens, targets)
    return adamw(state, clipped(gradients, jnp.sqrt(squares(gradients)))), loss


def sharded_step(mesh: Mesh):
    """`one_step` of the model, for a state and microbatches on this mesh, compiled; the state is given away.

    Said of the new state is that it is laid out as the old one. shard_map spells some layouts otherwise, without a last
    None, and the second step would then be compiled anew."""
    rows = P(None, "data")
    step = jax.shard_map(local_step, mesh=mesh, in_specs=(STATE, rows, rows), out_specs=(STATE, P()))
    shardings = jax.tree.map(lambda spec: NamedSharding(mesh, spec), (STATE, P()))
    return jax.jit(step, donate_argnums=0, out_shardings=shardings)
