"""Answers to lesson 22, twenty-first batch, written by a reader of the notebook only."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.transformer import (
    AXES,
    LAYER,
    NORMS,
    attention,
    mlp,
    rms_norm,
)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


# ---- of the notebook: one device


def logits_of(params, tokens):
    positions = jnp.arange(tokens.shape[1])

    def applied(x, layer):
        x = x + attention(layer, rms_norm(x, layer["attention_norm"]), positions)
        return x + mlp(layer, rms_norm(x, layer["mlp_norm"])), None

    x, _ = lax.scan(applied, params["embedding"][tokens], {name: params[name] for name in LAYER})
    return rms_norm(x, params["norm"]) @ params["unembedding"]


def mean_loss(params, tokens, targets):
    logits, real = logits_of(params, tokens), targets >= 0
    picked = jnp.take_along_axis(logits, jnp.where(real, targets, 0)[..., None], axis=-1)[..., 0]
    return jnp.sum(jnp.where(real, jax.nn.logsumexp(logits, axis=-1) - picked, 0)) / jnp.sum(real)


# ---- answers and helpers of earlier gates


def spec_of(axes):
    rules = {"width": "data", "heads": "model", "kv_heads": "model", "hidden": "model", "vocabulary": "model"}
    spec = tuple(rules.get(axis) for axis in axes)
    return P(*spec) if "model" in spec else P()


def layouts():
    return {name: spec_of(axes) for name, axes in AXES.items()}


def whole_width(name, leaf):
    spec = tuple(layouts()[name])
    if "data" not in spec:
        return leaf
    return lax.all_gather(leaf, "data", axis=spec.index("data") - (name in LAYER), tiled=True)


def gathered(x):
    return lax.all_gather(x, axis_name="model", axis=1, tiled=True)


def scattered(x):
    return lax.psum_scatter(x, axis_name="model", scatter_dimension=1, tiled=True)


def embedded(params, tokens, scattered=scattered):
    """x after the embedding, and the positions: the given lines of the answer's cell."""
    table, positions = whole_width("embedding", params["embedding"]), jnp.arange(tokens.shape[1])
    place = tokens - lax.axis_index("model") * len(table)
    mine = (place >= 0) & (place < len(table))
    return scattered(jnp.where(mine[..., None], table[jnp.where(mine, place, 0)], 0)), positions


def layers_of(params):
    return {name: params[name] for name in LAYER}


def on_mesh_of(mesh):
    ins, words = (layouts(), P("data")), P("data", None, "model")
    return functools.partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=words)


def logits_on_device(params, tokens):
    x, positions = embedded(params, tokens)

    @jax.checkpoint
    def applied(x, layer):
        layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
        for part, norm in (
            (lambda h: attention(layer, h, positions), "attention_norm"),
            (lambda h: mlp(layer, h), "mlp_norm"),
        ):
            x = x + scattered(part(gathered(rms_norm(x, layer[norm]))))
        return x, None

    x = lax.scan(applied, x, layers_of(params))[0]
    return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])


def losses_on_device(logits, targets):
    words = logits.shape[-1]
    top = lax.pmax(lax.stop_gradient(jnp.max(logits, axis=-1)), "model")
    total = lax.psum(jnp.sum(jnp.exp(logits - top[..., None]), axis=-1), "model")
    place = targets - lax.axis_index("model") * words
    mine = (place >= 0) & (place < words)
    picked = jnp.take_along_axis(logits, jnp.where(mine, place, 0)[..., None], axis=-1)[..., 0]
    return jnp.where(targets >= 0, jnp.log(total) + top - lax.psum(jnp.where(mine, picked, 0), "model"), 0)


def loss_on_device(params, tokens, targets):
    sums = jnp.sum(losses_on_device(logits_on_device(params, tokens), targets)), jnp.sum(targets >= 0)
    total, real = (lax.psum(one, "data") for one in sums)
    return total / real


def loss(params, tokens, targets, *, mesh):
    ins = layouts(), P("data"), P("data")
    return jax.shard_map(loss_on_device, mesh=mesh, in_specs=ins, out_specs=P())(params, tokens, targets)


# ---- forward


def forward__right_loop(params, tokens, *, mesh):
    return on_mesh_of(mesh)(logits_on_device)(params, tokens)


# Thought: a psum gives the sum, and every device then keeps its own block of T: the same values (but an all_reduce, twice the bytes).
def forward__wrong_psum_then_slice(params, tokens, *, mesh):
    def scattered(x):
        whole = lax.psum(x, "model")
        length = x.shape[1] // lax.psum(1, "model")
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("model") * length, length, axis=1)

    def logits_on_device(params, tokens):
        x, positions = embedded(params, tokens, scattered)

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
            return x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

        x, _ = lax.scan(applied, x, layers_of(params))
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    return on_mesh_of(mesh)(logits_on_device)(params, tokens)


# Thought: gather, then the line of logits_of as it stands, then scatter; so x itself is added up over model, too (twice x).
def forward__wrong_residual_inside(params, tokens, *, mesh):
    def logits_on_device(params, tokens):
        x, positions = embedded(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = gathered(x)
            x = scattered(x + attention(layer, rms_norm(x, layer["attention_norm"]), positions))
            x = gathered(x)
            return scattered(x + mlp(layer, rms_norm(x, layer["mlp_norm"]))), None

        x, _ = lax.scan(applied, x, layers_of(params))
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    return on_mesh_of(mesh)(logits_on_device)(params, tokens)


# Thought: both are partial sums, so add them up first and scatter once: saves a collective (but the MLP no longer sees what attention added).
def forward__wrong_one_scatter(params, tokens, *, mesh):
    def logits_on_device(params, tokens):
        x, positions = embedded(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            part = attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions)
            part = part + mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))
            return x + scattered(part), None

        x, _ = lax.scan(applied, x, layers_of(params))
        return gathered(rms_norm(x, params["norm"])) @ whole_width("unembedding", params["unembedding"])

    return on_mesh_of(mesh)(logits_on_device)(params, tokens)


# Thought: the logits are cut anyway, so the last product needs no gather: each device has its tokens and its words (half of T is lost).
def forward__wrong_own_tokens(params, tokens, *, mesh):
    def logits_on_device(params, tokens):
        x, positions = embedded(params, tokens)

        @jax.checkpoint
        def applied(x, layer):
            layer = {name: whole_width(name, leaf) for name, leaf in layer.items()}
            x = x + scattered(attention(layer, gathered(rms_norm(x, layer["attention_norm"])), positions))
            return x + scattered(mlp(layer, gathered(rms_norm(x, layer["mlp_norm"])))), None

        x, _ = lax.scan(applied, x, layers_of(params))
        return rms_norm(x, params["norm"]) @ whole_width("unembedding", params["unembedding"])

    return on_mesh_of(mesh)(logits_on_device)(params, tokens)


# ---- gradients


def gradients__right_outside(params, tokens, targets, *, mesh):
    return jax.value_and_grad(functools.partial(loss, mesh=mesh))(params, tokens, targets)


# Thought: the types complain about parts and copies, so off with the check; the loss is the same (the text's stretch: eight times too large).
def gradients__wrong_unchecked(params, tokens, targets, *, mesh):
    spec_tree = layouts()
    return jax.shard_map(
        jax.value_and_grad(loss_on_device),
        mesh=mesh,
        in_specs=(spec_tree, P("data"), P("data")),
        out_specs=(P(), spec_tree),
        check_vma=False,
    )(params, tokens, targets)


# Thought: norm scales are whole on every device, and each device has seen only its own tokens: they need a psum by hand.
def gradients__wrong_norms_again(params, tokens, targets, *, mesh):
    def body(params, tokens, targets):
        value, slopes = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        return value, {name: lax.psum(g, ("data", "model")) if name in NORMS else g for name, g in slopes.items()}

    spec_tree = layouts()
    return jax.shard_map(body, mesh=mesh, in_specs=(spec_tree, P("data"), P("data")), out_specs=(P(), spec_tree))(
        params, tokens, targets
    )


# Thought: as DDP does it, gradients that were added up over data have to be divided by the number of devices there.
def gradients__wrong_averaged(params, tokens, targets, *, mesh):
    def body(params, tokens, targets):
        value, slopes = jax.value_and_grad(loss_on_device)(params, tokens, targets)
        return value, jax.tree.map(lambda g: g / mesh.shape["data"], slopes)

    spec_tree = layouts()
    return jax.shard_map(body, mesh=mesh, in_specs=(spec_tree, P("data"), P("data")), out_specs=(P(), spec_tree))(
        params, tokens, targets
    )


# Thought: leave it to jit and the one-device loss; a gradient is needed everywhere, so whole on every device.
def gradients__wrong_whole_everywhere(params, tokens, targets, *, mesh):
    everywhere = NamedSharding(mesh, P())
    return jax.jit(jax.value_and_grad(mean_loss), out_shardings=everywhere)(params, tokens, targets)


# ---- five_broken_trainers

five_broken_trainers__right_all = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# Thought: a psum over data too much makes everything four times too large, and that stands in D; E adds up what are copies.
five_broken_trainers__wrong_two_psums = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "D",
    "copies are counted in the norm": "E",
    "weight decay on the bias": "B",
}

# Thought: both first losses are wrong, and took the one that is further off for the mean of means.
five_broken_trainers__wrong_first_losses = {
    "a mean of means": "C",
    "the bias is added up over model": "A",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}

# Thought: the bias is the only copy, so the update that differs for the bias alone is the one that counts copies; the shorter update is decay.
five_broken_trainers__wrong_copy_is_bias = {
    "a mean of means": "A",
    "the bias is added up over model": "C",
    "all gradients four times too large": "E",
    "copies are counted in the norm": "B",
    "weight decay on the bias": "D",
}

# Thought: pmean has a division by 4 at the wrong place, so A's gradients are off by 4; and E, whose loss is right, sums gradients of own means.
five_broken_trainers__wrong_pmean_is_four = {
    "a mean of means": "E",
    "the bias is added up over model": "C",
    "all gradients four times too large": "A",
    "copies are counted in the norm": "D",
    "weight decay on the bias": "B",
}
