"""Answers to lesson 13, twenty-third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

# ------------------------------------------------------------------ tp_grads


def tp_grads__right_SCALED(params, x, y, *, mesh):
    cuts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    groups = mesh.shape["batch"]

    def on_device(p, x, y):
        def my_term(p):  # the terms of all devices along batch add up to the loss
            out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jnp.mean((out - y) ** 2) / groups

        term, grads = jax.value_and_grad(my_term)(p)  # summed over batch already
        return jax.lax.psum(term, "batch"), grads

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(cuts, P("batch", None), P("batch", None)), out_specs=(P(), cuts)
    )(params, x, y)


# With the check off the ratio is the number of devices along model, so divide the gradients by it (all of them, b2 too).
def tp_grads__wrong_DIVIDEALL(params, x, y, *, mesh):
    cuts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    n = mesh.shape["model"]

    def on_device(p, x, y):
        def value(p):
            out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jnp.mean((out - y) ** 2)

        v, grads = jax.value_and_grad(value)(p)
        return jax.lax.pmean(v, "batch"), jax.tree.map(lambda g: jax.lax.pmean(g, "batch") / n, grads)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(cuts, P("batch", None), P("batch", None)),
        out_specs=(P(), cuts),
        check_vma=False,
    )(params, x, y)


# The loss of the whole batch is the sum of the losses of its parts: psum over batch, then differentiate.
def tp_grads__wrong_SUMOFMEANS(params, x, y, *, mesh):
    cuts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def value(p):
            out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jax.lax.psum(jnp.mean((out - y) ** 2), "batch")

        return jax.value_and_grad(value)(p)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(cuts, P("batch", None), P("batch", None)), out_specs=(P(), cuts)
    )(params, x, y)


# The second layer is h @ W2 + b2, and the psum finishes a layer: b2 goes into the sum, once for each device along model.
def tp_grads__wrong_BIASINSUM(params, x, y, *, mesh):
    cuts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        h = jnp.tanh(x @ p["W1"] + p["b1"])
        out = jax.lax.psum(h @ p["W2"] + p["b2"], "model")
        return jax.lax.pmean(jnp.mean((out - y) ** 2), "batch")

    value = jax.shard_map(on_device, mesh=mesh, in_specs=(cuts, P("batch", None), P("batch", None)), out_specs=P())
    return jax.value_and_grad(value)(params, x, y)


# Devices along model must not drift apart, so gradients are averaged over model as well (also those of different columns).
def tp_grads__wrong_MEANOVERMODEL(params, x, y, *, mesh):
    cuts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def value(p):
            out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jax.lax.pmean(jnp.mean((out - y) ** 2), "batch")

        v, grads = jax.value_and_grad(value)(p)
        return v, jax.tree.map(lambda g: jax.lax.pmean(g, "model"), grads)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(cuts, P("batch", None), P("batch", None)), out_specs=(P(), cuts)
    )(params, x, y)


# --------------------------------------------------------- sequence_parallel


def sequence_parallel__right_RSQRT(x, scale, W1, W2, *, mesh):
    tokens = P("batch", "model")

    def on_device(mine, scale, W1, W2):
        mine = mine * jax.lax.rsqrt((mine * mine).mean(axis=2, keepdims=True) + 1e-6) * scale
        every = jax.lax.all_gather(mine, "model", axis=1, tiled=True)
        hidden = jax.nn.relu(jnp.einsum("btd,df->btf", every, W1))
        part = jnp.einsum("btf,fd->btd", hidden, W2)
        return jax.lax.psum_scatter(part, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(tokens, P(), P(None, "model"), P("model")), out_specs=tokens)(
        x, scale, W1, W2
    )


# Tokens are gathered first, since everything after that needs all of them; the norm then runs on all tokens everywhere.
def sequence_parallel__wrong_NORMSALL(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        x = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        return jax.lax.psum_scatter(jax.nn.relu(x @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model"), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model"),
    )(x, scale, W1, W2)


# After W2 a device has all tokens, so it only has to cut out its own (it forgets that they are parts of a sum).
def sequence_parallel__wrong_CUTOUT(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        own = x.shape[1]
        x = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        out = jax.nn.relu(x @ W1) @ W2
        return jax.lax.dynamic_slice_in_dim(out, jax.lax.axis_index("model") * own, own, axis=1)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model"), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model"),
    )(x, scale, W1, W2)


# The mean runs over an array's last two dimensions, as LayerNorm does with a shape: one root for all own tokens of a sequence.
def sequence_parallel__wrong_OVERTOKENS(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        x = x / jnp.sqrt(jnp.mean(x**2, axis=(-2, -1), keepdims=True) + 1e-6) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(x @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model"), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model"),
    )(x, scale, W1, W2)


# relu is not linear, so it has to wait for the sum: the pair first, relu of the finished own tokens at the end.
def sequence_parallel__wrong_RELULAST(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        x = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        return jax.nn.relu(jax.lax.psum_scatter(x @ W1 @ W2, "model", scatter_dimension=1, tiled=True))

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model"), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model"),
    )(x, scale, W1, W2)


# ------------------------------------------------------------------ tp_block

LAYOUTS = {
    "scale_1": P(),
    "w_qkv": P(None, "model"),
    "w_out": P("model"),
    "scale_2": P(),
    "W1": P(None, "model"),
    "W2": P("model", None),
}


def norm(x, scale):
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def attend(x, w_qkv, w_out):
    q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
    logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    logits = jnp.where(jnp.tri(x.shape[1], dtype=bool), logits, -jnp.inf)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
    return jnp.einsum("bthk,hkd->btd", mixed, w_out)


def tp_block__right_BRANCHES(params, x, *, mesh):
    tokens = P("batch", "model")

    def on_device(p, x):
        branches = [
            (p["scale_1"], lambda h: attend(h, p["w_qkv"], p["w_out"])),
            (p["scale_2"], lambda h: jax.nn.silu(h @ p["W1"]) @ p["W2"]),
        ]
        for scale, branch in branches:
            h = jax.lax.all_gather(norm(x, scale), "model", axis=1, tiled=True)
            x = x + jax.lax.psum_scatter(branch(h), "model", scatter_dimension=1, tiled=True)
        return x

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, tokens), out_specs=tokens)(params, x)


# The pair needs all tokens: gather x, then do what the line says, norm and all (so everybody's tokens are normalised n times).
def tp_block__wrong_GATHERX(params, x, *, mesh):
    def on_device(p, x):
        def gather(x):
            return jax.lax.all_gather(x, "model", axis=1, tiled=True)

        def scatter(parts):
            return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

        x = x + scatter(attend(norm(gather(x), p["scale_1"]), p["w_qkv"], p["w_out"]))
        return x + scatter(jax.nn.silu(norm(gather(x), p["scale_2"]) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# Both norms are of x, so they can be gathered and the residuals added at the end (the second line reads the x of before).
def tp_block__wrong_OLDX(params, x, *, mesh):
    def on_device(p, x):
        def gather(x):
            return jax.lax.all_gather(x, "model", axis=1, tiled=True)

        def scatter(parts):
            return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

        a = scatter(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        m = scatter(jax.nn.silu(gather(norm(x, p["scale_2"])) @ p["W1"]) @ p["W2"])
        return x + a + m

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# Tokens are independent of each other, so gather and scatter may both use the default dimension 0 (true of the second line only).
def tp_block__wrong_DIMZERO(params, x, *, mesh):
    def on_device(p, x):
        def gather(x):
            return jax.lax.all_gather(x, "model", tiled=True)

        def scatter(parts):
            return jax.lax.psum_scatter(parts, "model", tiled=True)

        x = x + scatter(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return x + scatter(jax.nn.silu(gather(norm(x, p["scale_2"])) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# norm stands in front of the whole line, so x is normed once and the residual is added to the normed tokens.
def tp_block__wrong_NORMEDRESIDUAL(params, x, *, mesh):
    def on_device(p, x):
        def gather(x):
            return jax.lax.all_gather(x, "model", axis=1, tiled=True)

        def scatter(parts):
            return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

        x = norm(x, p["scale_1"])
        x = x + scatter(attend(gather(x), p["w_qkv"], p["w_out"]))
        x = norm(x, p["scale_2"])
        return x + scatter(jax.nn.silu(gather(x) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )
