"""Answers to lesson 22, fourteenth batch, written by a reader of the notebook only."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.transformer import (
    AXES,
    LAYER,
    NORMS,
    adamw,
    added_up,
    attention,
    clipped,
    compiled,
    counted,
    mlp,
    rms_norm,
)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
SIZES = {"layers": 2, "vocabulary": 48, "width": 64, "heads": 8, "kv_heads": 4, "head": 8, "hidden": 128}


def spec_of(axes):
    """How a parameter is laid out, by the names of its dimensions."""
    over_model = {"heads", "kv_heads", "hidden", "vocabulary"}
    if over_model.isdisjoint(axes):
        return P()
    return P(*("model" if axis in over_model else "data" if axis == "width" else None for axis in axes))


def layouts():
    """The spec of every parameter, by your rule."""
    return {name: spec_of(axes) for name, axes in AXES.items()}


def whole_width(name, leaf):
    """FSDP: a parameter (inside the scan: of one layer), gathered to its whole width; unchanged where that is not cut."""
    spec = tuple(layouts()[name])
    if "data" not in spec:
        return leaf
    return lax.all_gather(leaf, "data", axis=spec.index("data") - (name in LAYER), tiled=True)


def logits_on_device(params, tokens):
    """Logits [b, T, words] of this device's rows and words, of its shares of the parameters."""

    def gathered(x):
        """The whole sequence, of every device's block of it."""
        return lax.all_gather(x, axis_name="model", axis=1, tiled=True)

    def scattered(x):
        """This device's block of the sequence, of the sum of every device's part."""
        return lax.psum_scatter(x, axis_name="model", scatter_dimension=1, tiled=True)

    table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
    place = tokens - lax.axis_index("model") * len(table)  # in this device's part of the vocabulary
    mine = (place >= 0) & (place < len(table))
    x = scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0))

    @jax.checkpoint
    def applied(x, layer):
        layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
        x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
        return x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

    x, _ = lax.scan(applied, x, {name: params[name] for name in LAYER})
    return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])


def losses_on_device(logits, targets):
    """The loss of each token [b, T], of logits [b, T, words] in parts; 0 for padding."""
    words = logits.shape[-1]
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    place = targets - lax.axis_index("model") * words
    mine = (place >= 0) & (place < words)
    picked = jnp.take_along_axis(logits, jnp.where(mine, place, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jnp.log(total) + top - lax.psum(jnp.where(mine, picked, 0), "model"), 0)


def step_on_device(state, tokens, targets):
    """One step on microbatches [M, b, T]: (new state, loss)."""
    params, real = state["params"], lax.psum(jnp.sum(targets >= 0), "data")

    def part(params, tokens, targets):
        """What a microbatch [b, T] adds to the loss."""
        return lax.psum(jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), "data") / real

    value, slopes = added_up(part, params, tokens, targets)
    parts = sum(jnp.sum(g**2) for name, g in slopes.items() if name not in NORMS)
    copies = sum(jnp.sum(g**2) for name, g in slopes.items() if name in NORMS)
    norm = jnp.sqrt(lax.psum(parts, ("data", "model")) + copies)
    return adamw(state, clipped(slopes, norm)), value


def state_layouts():
    """The spec of everything in a state."""
    return {"params": layouts(), "mean": layouts(), "square": layouts(), "count": P()}


def step(state, tokens, targets, *, mesh):
    """One step of training on the mesh: (new state, loss). The state is given away."""
    spec_tree, rows = state_layouts(), P(None, "data")
    on_mesh = functools.partial(jax.shard_map, mesh=mesh, in_specs=(spec_tree, rows, rows), out_specs=(spec_tree, P()))
    return jax.jit(on_mesh(step_on_device), donate_argnums=0)(state, tokens, targets)


def specs__right_block_lengths(axes, lengths, mesh):
    """{name: spec} of all parameters, and the "bytes on each device"."""
    found, total = {}, 0
    for name, dimensions in axes.items():
        found[name] = spec_of(dimensions)
        cut = list(found[name]) + [None] * (len(dimensions) - len(found[name]))
        block = [lengths[d] // mesh[axis] if axis else lengths[d] for d, axis in zip(dimensions, cut)]
        total += 4 * math.prod(block)
    return found | {"bytes on each device": total}


# The width is cut over data wherever it occurs, in the norm scales too.
def specs__wrong_norms_cut(axes, lengths, mesh):
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    result = {name: P(*(rules.get(a) for a in dims)) for name, dims in axes.items()}
    total = 0
    for name, dims in axes.items():
        size = math.prod(lengths[a] for a in dims)
        for axis in result[name]:
            if axis is not None:
                size //= mesh[axis]
        total += 4 * size
    result["bytes on each device"] = total
    return result


# Everything is in shards, so each device has an equal part of all the bytes.
def specs__wrong_equal_parts(axes, lengths, mesh):
    result = {name: spec_of(dims) for name, dims in axes.items()}
    whole = sum(4 * math.prod(lengths[a] for a in dims) for dims in axes.values())
    result["bytes on each device"] = whole // math.prod(mesh.values())
    return result


# kv_heads are shared by several heads, so that every device keeps all of them: only "heads" is cut.
def specs__wrong_kv_whole(axes, lengths, mesh):
    rules = {"width": "data", "heads": "model", "hidden": "model", "vocabulary": "model"}
    result, total = {}, 0
    for name, dims in axes.items():
        parts = [rules.get(a) for a in dims]
        result[name] = P(*parts) if "model" in parts else P()
        total += 4 * math.prod(lengths[a] for a in dims) // math.prod(mesh[a] for a in result[name] if a)
    return {**result, "bytes on each device": total}


# A parameter that is cut is cut into as many pieces as there are devices: eight.
def specs__wrong_eight(axes, lengths, mesh):
    out = {name: spec_of(dims) for name, dims in axes.items()}
    total = 0
    for name, dims in axes.items():
        size = 4
        for d in dims:
            size = size * lengths[d]
        if "model" in tuple(out[name]):
            size = size // 8
        total = total + size
    out["bytes on each device"] = total
    return out


def curve__right_values_kept(state, batches, mesh):
    """{"losses": …, "programs": …, "arrays left": …} of a run."""
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=(0,), out_shardings=shardings)
    values = []
    with counted(state) as told:
        for tokens, targets in batches:
            state, value = run(state, tokens, targets)
            values.append(value)
    return dict(told, losses=np.array([float(value) for value in values]))


# `step` gives its state away already, so that it need not be said again.
def curve__wrong_step_gives(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
    return told | {"losses": np.array(losses)}


# JAX remembers what it has compiled, so it does not matter that jit stands in the loop.
def curve__wrong_jit_in_loop(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    losses = []
    with counted(state) as told:
        for batch in batches:
            run = compiled(lambda s, a, b: step(s, a, b, mesh=mesh), donate_argnums=0, out_shardings=shardings)
            state, value = run(state, *batch)
            losses.append(float(value))
    return told | {"losses": np.array(losses)}


# The counts are known as soon as the loop is over, so the dict can be put together there, still in the block.
def curve__wrong_told_too_early(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    with counted(state) as told:
        losses = []
        for batch in batches:
            state, value = run(state, *batch)
            losses.append(float(value))
        return {**told, "losses": np.array(losses)}


# What is given away is written over in place, so `state` is the new state after the call, under its old name.
def curve__wrong_in_place(state, batches, mesh):
    shardings = jax.tree.map(lambda leaf: leaf.sharding, state), NamedSharding(mesh, P())
    run = compiled(functools.partial(step, mesh=mesh), donate_argnums=0, out_shardings=shardings)
    losses = []
    with counted(state) as told:
        for batch in batches:
            _, value = run(state, *batch)
            losses.append(float(value))
    return told | {"losses": np.array(losses)}


five_broken_trainers__right_zipped = dict(
    zip(
        (
            "a mean of means",
            "the bias is added up over model",
            "all gradients four times too large",
            "copies are counted in the norm",
            "weight decay on the bias",
        ),
        "ACEDB",
    )
)

# Both first losses are off; takes the psum of C for the one over devices with other rows, and the pmean of A for the bias's.
five_broken_trainers__wrong_losses_swapped = {
    "a mean of means": "C",
    "the bias is added up over model": "A",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# D adds over data what is the same there, so its gradients are four times as large; and E adds up copies.
five_broken_trainers__wrong_copies = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "D",
    "copies are counted in the norm": "E",
    "weight decay on the bias": "B",
}

# Decay makes every update shorter, as in D; so it is B whose update is off in one parameter, by a copy in the norm.
five_broken_trainers__wrong_updates_swapped = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "B",
    "weight decay on the bias": "D",
}

# The ratio of C stands out for the bias alone, so whatever is said of the bias is C.
five_broken_trainers__wrong_bias_twice = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "C",
}
