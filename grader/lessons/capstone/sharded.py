"""The same training step on a mesh with axes `data` and `model`: FSDP × TP with the sequence cut between layers.

Every function but `sharded_step` runs on one device, inside shard_map, with the check on. There "embedding" and the
matrices are cut in D over `data` (FSDP) and in vocabulary, heads or hidden over `model` (`specs_of`); x is cut in B
over `data` and in T over `model`; logits in B and V.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from grader.lessons.capstone.model import adamw, attention, clipped, mlp, rms_norm

ROWS = P("data")
LOGITS = P("data", None, "model")
LAYER = {
    "attention_norm": P(),
    "query": P("data", "model"),
    "key": P("data", "model"),
    "value": P("data", "model"),
    "out": P("model", None, "data"),
    "mlp_norm": P(),
    "gate": P("data", "model"),
    "up": P("data", "model"),
    "down": P("model", "data"),
}


def specs_of(params) -> dict:
    """How the parameters lie, as a tree of specs; of `params` only the number of layers counts."""
    layers = [dict(LAYER) for _ in params["layers"]]
    return {"embedding": P("model", "data"), "layers": layers, "norm": P(), "unembedding": P("data", "model")}


def state_specs(params) -> dict:
    """How the training state lies: the moments as their parameters."""
    lies = specs_of(params)
    return {"params": lies, "mean": lies, "square": lies, "count": P()}


def whole_width(leaf, spec):
    """A leaf that is cut over `data`, gathered; another as it is."""
    if "data" not in tuple(spec):
        return leaf
    return lax.all_gather(leaf, "data", axis=tuple(spec).index("data"), tiled=True)


def whole_widths(tree, specs):
    return jax.tree.map(whole_width, tree, specs)


def own_words(numbers, words):
    """Of numbers in the whole vocabulary: which are among the `words` of this device, and their places there."""
    local = numbers - lax.axis_index("model") * words
    mine = (local >= 0) & (local < words)
    return mine, jnp.where(mine, local, 0)


def gathered_sequence(x):
    return lax.all_gather(x, "model", axis=1, tiled=True)


def scattered_sequence(x):
    """Parts of a sum, on the devices along `model`: added up, and cut in T."""
    return lax.psum_scatter(x, "model", scatter_dimension=1, tiled=True)


def embedded(table, tokens):
    mine, local = own_words(tokens, len(table))
    return scattered_sequence(jnp.where(mine[..., None], table[local], 0))


def layer_applied(layer, x):
    """One layer on a device's block of the sequence; its weights are gathered here, and not kept for the way back."""
    layer = whole_widths(layer, LAYER)
    x = x + scattered_sequence(attention(layer, gathered_sequence(rms_norm(x, layer["attention_norm"]))))
    return x + scattered_sequence(mlp(layer, gathered_sequence(rms_norm(x, layer["mlp_norm"]))))


def local_logits(params, tokens):
    lies = specs_of(params)
    x = embedded(whole_width(params["embedding"], lies["embedding"]), tokens)
    for layer in params["layers"]:
        x = jax.checkpoint(layer_applied)(layer, x)
    x = gathered_sequence(rms_norm(x, params["norm"]))
    return x @ whole_width(params["unembedding"], lies["unembedding"])


def token_losses(logits, targets):
    """The loss of every token [B, T], of logits that are cut in V over `model`; 0 for padding."""
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    mine, local = own_words(targets, logits.shape[-1])
    picked = jnp.take_along_axis(logits, local[..., None], axis=-1)[..., 0]
    found = lax.psum(jnp.where(mine, picked, 0), "model")
    return jnp.where(targets >= 0, jnp.log(total) + top - found, 0)


def local_loss(params, tokens, targets):
    """The mean over the real tokens of all devices."""
    losses = token_losses(local_logits(params, tokens), targets)
    return lax.psum(jnp.sum(losses), "data") / lax.psum(jnp.sum(targets >= 0), "data")


def squares(gradients, lies):
    """The sum of the squares of all gradients: of what is cut, the devices' parts together; of copies, one."""

    def of_leaf(g, spec):
        axes = tuple(axis for axis in spec if axis)
        return lax.psum(jnp.sum(g**2), axes) if axes else jnp.sum(g**2)

    return sum(jax.tree.leaves(jax.tree.map(of_leaf, gradients, lies)))


def local_step(state, tokens, targets):
    """One step on microbatches [M, B, T]: (new state, loss)."""
    real = lax.psum(jnp.sum(targets >= 0), "data")

    def share(params, rows):
        return lax.psum(jnp.sum(token_losses(local_logits(params, rows[0]), rows[1])), "data") / real

    def added(so_far, rows):
        return jax.tree.map(jnp.add, so_far, jax.value_and_grad(share)(state["params"], rows)), None

    nothing = jnp.zeros(()), jax.tree.map(jnp.zeros_like, state["params"])
    (loss, gradients), _ = lax.scan(added, nothing, (tokens, targets))
    norm = jnp.sqrt(squares(gradients, specs_of(state["params"])))
    return adamw(state, clipped(gradients, norm)), loss


def sharded_step(mesh: Mesh):
    """`one_step` of the model, for a state and microbatches on this mesh, compiled; the state is given away."""
    rows = P(None, "data")

    def step(state, tokens, targets):
        lies = state_specs(state["params"])
        body = jax.shard_map(local_step, mesh=mesh, in_specs=(lies, rows, rows), out_specs=(lies, P()))
        return body(state, tokens, targets)

    return jax.jit(step, donate_argnums=0)
