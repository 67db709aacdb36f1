"""Answers to lesson 13, sixth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

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
    """Each token of x[B, T, D], divided by the root of the mean of its squares, times scale[D]."""
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale


def attend(x, w_qkv, w_out):
    """Causal attention over all tokens of x[B, T, D] by the heads of w_qkv[D, H, 3, K] and w_out[H, K, D]."""
    q, k, v = jnp.einsum("btd,dhck->cbthk", x, w_qkv)
    logits = jnp.einsum("bthk,bshk->bhts", q, k) / q.shape[-1] ** 0.5
    logits = jnp.where(jnp.tri(x.shape[1], dtype=bool), logits, -jnp.inf)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(logits, axis=-1), v)
    return jnp.einsum("bthk,hkd->btd", mixed, w_out)


# Right: a list of two halves, each a norm's scale and what a device does with all tokens; one loop for both.
def tp_block__right_two_halves(params, x, *, mesh):
    def on_device(p, x):
        halves = [
            (p["scale_1"], lambda tokens: attend(tokens, p["w_qkv"], p["w_out"])),
            (p["scale_2"], lambda tokens: jnp.dot(jax.nn.silu(jnp.dot(tokens, p["W1"])), p["W2"])),
        ]
        for scale, half in halves:
            everybody = jax.lax.all_gather(norm(x, scale), "model", axis=1, tiled=True)
            x += jax.lax.psum_scatter(half(everybody), "model", scatter_dimension=1, tiled=True)
        return x

    tokens = P("batch", "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, tokens), out_specs=tokens)(params, x)


# This student gathers and scatters along dimension 0: shapes fit, but each device's stretch of tokens becomes a sequence of its own.
def tp_block__wrong_axis_0(params, x, *, mesh):
    def gather(x):
        return jax.lax.all_gather(x, "model", tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "model", tiled=True)

    def on_device(p, x):
        x = x + scatter(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return x + scatter(jax.nn.silu(gather(norm(x, p["scale_2"])) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# This student writes `x = norm(x)` and then adds the result to the normed tokens.
def tp_block__wrong_adds_to_normed(params, x, *, mesh):
    def on_device(p, x):
        x = norm(x, p["scale_1"])
        tokens = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        x = x + jax.lax.psum_scatter(attend(tokens, p["w_qkv"], p["w_out"]), "model", scatter_dimension=1, tiled=True)
        x = norm(x, p["scale_2"])
        tokens = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        hidden = jax.nn.silu(tokens @ p["W1"])
        return x + jax.lax.psum_scatter(hidden @ p["W2"], "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# This student finishes each sum everywhere with a psum and cuts out the own tokens: right values, twice the bytes.
def tp_block__wrong_psum_and_cut(params, x, *, mesh):
    def on_device(p, x):
        mine, many = jax.lax.axis_index("model"), x.shape[1]

        def gather(x):
            return jax.lax.all_gather(x, "model", axis=1, tiled=True)

        def own(parts):
            return jax.lax.dynamic_slice_in_dim(jax.lax.psum(parts, "model"), mine * many, many, axis=1)

        x = x + own(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        x = x + own(jax.nn.silu(gather(norm(x, p["scale_2"])) @ p["W1"]) @ p["W2"])
        return x

    spec = P("batch", "model")
    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, spec), out_specs=spec)(params, x)


# This student computes both lines from the x that came in (one gather for each, both at the start), and adds both results.
def tp_block__wrong_side_by_side(params, x, *, mesh):
    gather = lambda v: jax.lax.all_gather(v, "model", axis=1, tiled=True)
    scatter = lambda v: jax.lax.psum_scatter(v, "model", scatter_dimension=1, tiled=True)

    def on_device(p, x):
        attention = scatter(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        mlp = scatter(jax.nn.silu(gather(norm(x, p["scale_2"])) @ p["W1"]) @ p["W2"])
        return x + attention + mlp

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# ------------------------------------------------------------------ tp_grads


# Right: the loss is the shard_map, differentiated from outside.
def tp_grads__right_outside(params, x, y, *, mesh):
    layouts = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        hidden = jnp.tanh(x @ p["W1"] + p["b1"])
        missing = jax.lax.psum(hidden @ p["W2"], "model") + p["b2"] - y
        return jax.lax.pmean((missing**2).mean(), "batch")

    whole_loss = jax.shard_map(
        on_device, mesh=mesh, in_specs=(layouts, P("batch", None), P("batch", None)), out_specs=P()
    )
    return jax.value_and_grad(whole_loss)(params, x, y)


# This student has found "the gradient is four times too large" by experiment on the mesh of the lesson, and divides by four.
def tp_grads__wrong_four(params, x, y, *, mesh):
    PAIR = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def own_loss(p, x, y):
        out = jax.lax.psum(jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"], "model") + p["b2"]
        return jnp.mean((out - y) ** 2)

    def on_device(p, x, y):
        value, grads = jax.value_and_grad(own_loss)(p, x, y)
        return jax.lax.pmean(value, "batch"), jax.tree.map(lambda g: g / 4, grads)

    specs = PAIR, P("batch", None), P("batch", None)
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), PAIR))(params, x, y)


# This student adds b2 on every device before the sum, so that it comes as many times as there are devices along model.
def tp_grads__wrong_bias_in_parts(params, x, y, *, mesh):
    PAIR = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def mean_loss(p):
            hidden = jnp.tanh(x @ p["W1"] + p["b1"])
            result = jax.lax.psum(hidden @ p["W2"] + p["b2"], "model")
            return jax.lax.pmean(jnp.mean((result - y) ** 2), "batch")

        return jax.value_and_grad(mean_loss)(p)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(PAIR, P("batch", None), P("batch", None)), out_specs=(P(), PAIR)
    )(params, x, y)


# This student differentiates the mean loss, and divides by the devices along batch all the same, because "sums arrive".
def tp_grads__wrong_divided_twice(params, x, y, *, mesh):
    PAIR = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def on_device(p, x, y):
        def mean_loss(p):
            h = jnp.tanh(x @ p["W1"] + p["b1"])
            return jax.lax.pmean(jnp.mean((jax.lax.psum(h @ p["W2"], "model") + p["b2"] - y) ** 2), "batch")

        value, gradients = jax.value_and_grad(mean_loss)(p)
        n = mesh.shape["batch"]
        return value, {name: g / n for name, g in gradients.items()}

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(PAIR, P("batch", None), P("batch", None)), out_specs=(P(), PAIR)
    )(params, x, y)


# This student thinks that one mean of the losses over all devices, along both axes, replaces the sum in the middle of the network.
def tp_grads__wrong_mean_over_both(params, x, y, *, mesh):
    PAIR = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P()}

    def body(p, x, y):
        def f(p):
            out = jnp.tanh(x @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"]
            return jax.lax.pmean(jnp.mean((out - y) ** 2), ("batch", "model"))

        return jax.value_and_grad(f)(p)

    return jax.shard_map(body, mesh=mesh, in_specs=(PAIR, P("batch", None), P("batch", None)), out_specs=(P(), PAIR))(
        params, x, y
    )


# ------------------------------------------------------------------ tp_costs

_square = 4 * 8192 * 8192 / 1e6
_all = 2 * _square + 4 * (784 * 8192 + 8192 * 10 + 3 * 8192 + 10) / 1e6
_cut = _all - _square - 4 * 4096 / 1e6

tp_costs__right_counted = {
    "MB of parameters on a device, DP": _all,
    "MB of parameters on a device, DP + TP": _cut,
    "MB sent over batch, DP": 2 * 7 / 8 * _all,
    "MB sent over batch, DP + TP": 2 * 3 / 4 * _cut,
    "MB sent over model, DP + TP": 2 * (2 * 1 / 2) * (8192 / 4) * 8192 * 4 / 1e6,
}

# This student sums gradients over all eight devices in both cases, though only four along batch share a gradient.
tp_costs__wrong_eight_both = {
    "MB of parameters on a device, DP": 563,
    "MB of parameters on a device, DP + TP": 294.5,
    "MB sent over batch, DP": 985.2,
    "MB sent over batch, DP + TP": 2 * 7 / 8 * 294.5,
    "MB sent over model, DP + TP": 134.2,
}

# This student forgets that the examples are cut as well: the sums over model are of [8192, 8192].
tp_costs__wrong_whole_batch = {
    "MB of parameters on a device, DP": 563.0,
    "MB of parameters on a device, DP + TP": 294.5,
    "MB sent over batch, DP": 985.2,
    "MB sent over batch, DP + TP": 441.8,
    "MB sent over model, DP + TP": 2 * 268.4,
}

# This student halves all of the parameters with two devices along model, W1 and W4 too.
tp_costs__wrong_all_halved = {
    "MB of parameters on a device, DP": 562.99,
    "MB of parameters on a device, DP + TP": 562.99 / 2,
    "MB sent over batch, DP": 1.75 * 562.99,
    "MB sent over batch, DP + TP": 1.5 * 562.99 / 2,
    "MB sent over model, DP + TP": 134.22,
}

# This student takes (n-1)/n for an all_reduce, as for a gather.
tp_costs__wrong_once_round = {
    "MB of parameters on a device, DP": 563.0,
    "MB of parameters on a device, DP + TP": 294.5,
    "MB sent over batch, DP": 563.0 * 7 / 8,
    "MB sent over batch, DP + TP": 294.5 * 3 / 4,
    "MB sent over model, DP + TP": 2 * 67.1 / 2,
}
