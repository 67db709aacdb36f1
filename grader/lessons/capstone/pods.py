"""The course's own step at full size, compiled for the pod of a plan: what its compiler says of the memory.

As large trainers write it: parameters, gradients and Adam's moments in float32, matrices gathered and multiplied in
bfloat16, attention in blocks of queries (all scores of a sequence of 8,192 tokens would not fit), and of every layer
the activations that the plan keeps by name.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name as named
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import abstract_mesh
from grader.chips.compiling import Request, answer, request
from grader.chips.report import Fit, fit_of
from grader.chips.topologies import topology
from grader.jax_versions import varying
from grader.lessons.capstone.drawn import AXIS_NAMES
from grader.lessons.capstone.sharded import (
    SPECS,
    STATE,
    gathered_sequence,
    own_words,
    scattered_sequence,
    squares,
    token_losses,
    whole_width,
)
from grader.transformer.model import AXES, LAYER, NORMS, apply_rope, rms_norm
from grader.transformer.training import adamw, clipped

QUERIES = 256  # of a block of attention
KEPT = {  # by which names activations are kept for the way back, besides every layer's input
    "none": ("query", "key", "value", "heard", "between", "gate", "up", "product"),
    "mlp": ("query", "key", "value", "heard", "between"),
    "full": (),
}


def fit(model: Mapping[str, Any], plan: Mapping[str, Any], pod: str) -> Fit:
    """What the pod's compiler says to the step of a plan: stored with the course, or kept, or asked for now.

    Raises NoCompiler where it has not been asked before and cannot be had here.
    """
    asked = _request(tuple(model.items()), tuple(plan.items()), pod)
    return fit_of(asked, answer(asked, seconds=600))


@functools.cache
def _request(model: tuple[tuple[str, Any], ...], plan: tuple[tuple[str, Any], ...], pod: str) -> Request:
    return request(*step_of(dict(model), dict(plan)), topology(pod))


def step_of(model: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """The step of a plan, and the shapes of its arguments on the plan's mesh."""
    mesh = abstract_mesh({"data": plan["data"], "model": plan["model"]})
    leaf = lambda shape, dtype, spec: jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spec))  # noqa: E731
    lengths = {**model, "head": model["width"] // model["heads"]}
    shapes = {name: tuple(lengths[axis] for axis in axes) for name, axes in AXES.items()}
    params = {name: leaf(shape, jnp.float32, SPECS[name]) for name, shape in shapes.items()}
    state = {"params": params, "mean": params, "square": params, "count": leaf((), jnp.int32, P())}
    rows = P(None, "data")
    tokens = leaf((plan["micro"], plan["data"] * plan["rows"], model["length"]), jnp.int32, rows)
    body = functools.partial(_step, kept=KEPT[plan["remat"]])
    mapped = jax.shard_map(body, mesh=mesh, in_specs=(STATE, rows, rows), out_specs=(STATE, P()))
    return jax.jit(mapped, donate_argnums=0), (state, tokens, tokens)


def _step(state, tokens, targets, kept):
    """On a device: `sharded.local_step`, with activations that are kept by name. Norm scales are summed over devices
    once, behind the loop; the barrier keeps this compiler from moving the other sums there, on which it stumbles."""
    params = state["params"]
    real = lax.psum((targets >= 0).sum(), "data")
    own = {name: varying(leaf, AXIS_NAMES) if name in NORMS else leaf for name, leaf in params.items()}

    def part(own, tokens, targets):
        return jnp.sum(token_losses(_logits(own, tokens, kept), targets)) / real

    def added(so_far, rows):
        found = jax.tree.map(lax.optimization_barrier, jax.value_and_grad(part)(own, *rows))
        return jax.tree.map(jnp.add, so_far, found), None

    nothing = varying(jnp.zeros(()), "data"), jax.tree.map(jnp.zeros_like, own)
    (loss, slopes), _ = lax.scan(added, nothing, (tokens, targets))
    slopes = {name: lax.psum(g, AXIS_NAMES) if name in NORMS else g for name, g in slopes.items()}
    return adamw(state, clipped(slopes, jnp.sqrt(squares(slopes)))), lax.psum(loss, "data")


def _whole(name, leaf):
    return whole_width(name, leaf.astype(jnp.bfloat16))


def _logits(params, tokens, kept):
    table = _whole("embedding", params["embedding"])
    mine, local = own_words(tokens, len(table))
    x = scattered_sequence(jnp.where(mine[..., None], table[local], 0))

    @functools.partial(jax.checkpoint, policy=jax.checkpoint_policies.save_only_these_names(*kept))
    def applied(x, layer):
        layer = {name: _whole(name, leaf) for name, leaf in layer.items()}
        x = x + scattered_sequence(_attention(layer, gathered_sequence(rms_norm(x, layer["attention_norm"]))))
        x = named(x, "between")
        return x + scattered_sequence(_mlp(layer, gathered_sequence(rms_norm(x, layer["mlp_norm"])))), None

    x = lax.scan(applied, x, {name: params[name] for name in LAYER})[0]
    x = gathered_sequence(rms_norm(x, params["norm"].astype(jnp.bfloat16)))
    return jnp.matmul(x, _whole("unembedding", params["unembedding"]), preferred_element_type=jnp.float32)


def _attention(layer, x):
    turned = lambda heads: apply_rope(heads, jnp.arange(x.shape[1])).astype(x.dtype)  # noqa: E731
    q = named(turned(jnp.einsum("btd,dnh->btnh", x, layer["query"])), "query")
    k = named(turned(jnp.einsum("btd,dkh->btkh", x, layer["key"])), "key")
    v = named(jnp.einsum("btd,dkh->btkh", x, layer["value"]), "value")
    return jnp.einsum("btnh,nhd->btd", named(_attended(q, k, v), "heard"), layer["out"])


def _attended(q, k, v):
    """Causal attention, one block of queries after the other; their scores are computed again on the way back."""
    b, t, n, h = q.shape
    kv = k.shape[2]
    blocks = q.reshape(b, t // QUERIES, QUERIES, kv, n // kv, h).swapaxes(0, 1)

    @jax.checkpoint
    def heard(block):
        first, q = block
        scores = jnp.einsum("bqkgh,bskh->bkgqs", q, k, preferred_element_type=jnp.float32) / math.sqrt(h)
        seen = jnp.arange(t) <= first + jnp.arange(QUERIES)[:, None]
        weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1).astype(v.dtype)
        return jnp.einsum("bkgqs,bskh->bqkgh", weights, v)

    each = lax.map(heard, (jnp.arange(0, t, QUERIES), blocks))
    return each.swapaxes(0, 1).reshape(b, t, n, h)


def _mlp(layer, x):
    gate, up = (named(x @ layer[name], name) for name in ("gate", "up"))
    return named(jax.nn.silu(gate) * up, "product") @ layer["down"]
