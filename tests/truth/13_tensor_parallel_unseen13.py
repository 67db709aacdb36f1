"""Answers to lesson 13, thirteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

LAYOUTS = {
    "scale_1": P(),
    "w_qkv": P(None, "model"),
    "w_out": P("model"),
    "scale_2": P(),
    "W1": P(None, "model"),
    "W2": P("model", None),
}


def norm(x, scale):
    """Each token of x[B, T, D], divided by the root of the mean of its squares, times scale[D]."""
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def attend(x, w_qkv, w_out):
    """Causal attention over all tokens of x[B, T, D] by the heads of w_qkv[D, H, 3, K] and w_out[H, K, D]."""
    q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
    logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    logits = jnp.where(jnp.tri(x.shape[1], dtype=bool), logits, -jnp.inf)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
    return jnp.einsum("bthk,hkd->btd", mixed, w_out)


# ---------------------------------------------------------------- tp_block


def tp_block__right_pairs(params, x, *, mesh):
    def on_device(p, x):
        def add(x, scale, pair):
            tokens = jax.lax.all_gather(norm(x, scale), "model", axis=1, tiled=True)
            return x + jax.lax.psum_scatter(pair(tokens), "model", scatter_dimension=1, tiled=True)

        x = add(x, p["scale_1"], lambda t: attend(t, p["w_qkv"], p["w_out"]))
        return add(x, p["scale_2"], lambda t: jax.nn.silu(t @ p["W1"]) @ p["W2"])

    tokens = P("batch", "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, tokens), out_specs=tokens)(params, x)


# This student thought that the whole line, x and all, is computed on the gathered tokens and then scattered.
def tp_block__wrong_residualinside(params, x, *, mesh):
    def gather(x):
        return jax.lax.all_gather(x, "model", axis=1, tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

    def on_device(p, x):
        h = gather(x)
        x = scatter(h + attend(norm(h, p["scale_1"]), p["w_qkv"], p["w_out"]))
        h = gather(x)
        return scatter(h + jax.nn.silu(norm(h, p["scale_2"]) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# This student thought that only attention looks at other tokens, so that the second pair needs no gather, just its sum.
def tp_block__wrong_mlpungathered(params, x, *, mesh):
    def on_device(p, x):
        tokens = jax.lax.all_gather(norm(x, p["scale_1"]), "model", axis=1, tiled=True)
        x = x + jax.lax.psum_scatter(attend(tokens, p["w_qkv"], p["w_out"]), "model", scatter_dimension=1, tiled=True)
        hidden = jax.nn.silu(norm(x, p["scale_2"]) @ p["W1"])
        return x + jax.lax.psum(hidden @ p["W2"], "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# This student thought that a reduce_scatter is a psum of which everybody takes its own tokens, and wrote it so.
def tp_block__wrong_psumandslice(params, x, *, mesh):
    def on_device(p, x):
        length = x.shape[1]

        def gather(x):
            return jax.lax.all_gather(x, "model", axis=1, tiled=True)

        def own(parts):
            start = jax.lax.axis_index("model") * length
            return jax.lax.dynamic_slice_in_dim(jax.lax.psum(parts, "model"), start, length, axis=1)

        x = x + own(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return x + own(jax.nn.silu(gather(norm(x, p["scale_2"])) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# This student thought that both results are added to the block's input.
def tp_block__wrong_firstinput(params, x, *, mesh):
    def gather(x):
        return jax.lax.all_gather(x, "model", axis=1, tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

    def on_device(p, x):
        attended = x + scatter(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        hidden = jax.nn.silu(gather(norm(attended, p["scale_2"])) @ p["W1"])
        return x + scatter(hidden @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# ---------------------------------------------------------------- tp_grads


def tp_grads__right_share(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}
    rows = P("batch", None)

    def on_device(p, x, y):
        def share(p):  # what these examples contribute to the loss of the whole batch
            out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jnp.mean((out - y) ** 2) / mesh.shape["batch"]

        value, gradients = jax.value_and_grad(share)(p)  # the gradients come summed over batch
        return jax.lax.psum(value, "batch"), gradients

    return jax.shard_map(on_device, mesh=mesh, in_specs=(layouts, rows, rows), out_specs=(P(), layouts))(params, x, y)


# This student thought that each device has the gradient of its own examples, which is then averaged as in PyTorch.
def tp_grads__wrong_pmeanafter(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def value(p):
            out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jnp.mean((out - y) ** 2)

        return jax.tree.map(lambda v: jax.lax.pmean(v, "batch"), jax.value_and_grad(value)(p))

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, P("batch", None), P("batch", None)), out_specs=(P(), layouts)
    )(params, x, y)


# This student thought that without the check all gradients are too large by the devices along model, so divide them all.
def tp_grads__wrong_divideall(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def value(p):
            out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jnp.mean((out - y) ** 2)

        found, grads = jax.value_and_grad(value)(p)
        grads = jax.tree.map(lambda g: jax.lax.pmean(g, "batch") / mesh.shape["model"], grads)
        return jax.lax.pmean(found, "batch"), grads

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(layouts, P("batch", None), P("batch", None)),
        out_specs=(P(), layouts),
        check_vma=False,
    )(params, x, y)


# This student thought that the sum over model goes around the whole second layer, its bias included.
def tp_grads__wrong_biasinside(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def value(p):
            hidden = jnp.tanh(x @ p["W1"] + p["b1"])
            out = jax.lax.psum(hidden @ p["W2"] + p["b2"], "model")
            return jax.lax.pmean(jnp.mean((out - y) ** 2), "batch")

        return jax.value_and_grad(value)(p)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, P("batch", None), P("batch", None)), out_specs=(P(), layouts)
    )(params, x, y)


# This student thought that the mean of the devices' means is their sum over the number of all devices.
def tp_grads__wrong_alldevices(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def value(p):
            out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
            return jax.lax.psum(jnp.mean((out - y) ** 2), "batch") / mesh.size

        return jax.value_and_grad(value)(p)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, P("batch", None), P("batch", None)), out_specs=(P(), layouts)
    )(params, x, y)


# ---------------------------------------------------------------- sequence_parallel


def sequence_parallel__right_stacked(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        normed = x * (scale / jnp.sqrt(jnp.mean(x * x, axis=2, keepdims=True) + 1e-6))
        stacked = jax.lax.all_gather(normed, "model", axis=1)  # [B, device, its tokens, D]
        parts = jax.nn.relu(stacked @ W1) @ W2
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=1)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model"), P(), P(None, "model"), P("model")),
        out_specs=P("batch", "model"),
    )(x, scale, W1, W2)


# This student thought that the pair begins with its norm, so that all tokens are gathered in front of that.
def sequence_parallel__wrong_normall(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        x = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        return jax.lax.psum_scatter(jax.nn.relu(x @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model", None), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model", None),
    )(x, scale, W1, W2)


# This student thought that a gathered array only needs a reshape, and overlooked that the devices' axis comes first.
def sequence_parallel__wrong_reshape(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        B, _, D = x.shape
        normed = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        tokens = jax.lax.all_gather(normed, "model").reshape(B, -1, D)
        return jax.lax.psum_scatter(jax.nn.relu(tokens @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model", None), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model", None),
    )(x, scale, W1, W2)


# This student thought that x is cut over model, and a mean of something cut has to be finished over model.
def sequence_parallel__wrong_pmeannorm(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        squares = jax.lax.pmean(jnp.mean(x**2, axis=-1, keepdims=True), "model")
        tokens = jax.lax.all_gather(x / jnp.sqrt(squares + 1e-6) * scale, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(tokens @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model", None), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model", None),
    )(x, scale, W1, W2)


# This student thought that a psum_scatter over devices has to be divided by their number, as for gradients.
def sequence_parallel__wrong_divided(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        normed = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        tokens = jax.lax.all_gather(normed, "model", axis=1, tiled=True)
        out = jax.lax.psum_scatter(jax.nn.relu(tokens @ W1) @ W2, "model", scatter_dimension=1, tiled=True)
        return out / mesh.shape["model"]

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model", None), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model", None),
    )(x, scale, W1, W2)
