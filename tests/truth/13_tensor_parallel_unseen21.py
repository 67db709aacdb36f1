"""Answers to lesson 13, twenty-first batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- where_it_goes

where_it_goes__right_table = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# Thought that adding a bias is linear, like halving, so it commutes with the sum.
where_it_goes__wrong_bias_linear = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "either way",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# Thought that what holds for relu holds for every activation: hidden units are finished, so softmax runs on each part.
where_it_goes__wrong_softmax_local = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "on the parts",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# Learned "nothing that is not linear before the sum" and applied it to the hidden layer, too.
where_it_goes__wrong_nonlinear_after = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "after the sum",
    "softmax over the hidden units": "after the sum",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# Thought that two devices which both halve have quartered the result in the end.
where_it_goes__wrong_halved_twice = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "after the sum",
}


# ---------------------------------------------------------------- init_scale

init_scale__right_table = {
    "spread of W2, drawn whole": 1024**-0.5,
    "spread of device 1's rows of it": 1024**-0.5,
    "spread of rows drawn by local fan-in": 256**-0.5,
    "variance of the outputs, drawn whole": 1.0,
    "variance of the outputs, by local fan-in": 4.0,
    "spread of W1's columns, by local fan-in": 512**-0.5,
}

# Took the ratio of the spreads (2) for the ratio of the variances.
init_scale__wrong_spread_ratio = {
    "spread of W2, drawn whole": 0.03125,
    "spread of device 1's rows of it": 0.03125,
    "spread of rows drawn by local fan-in": 0.0625,
    "variance of the outputs, drawn whole": 1,
    "variance of the outputs, by local fan-in": 2,
    "spread of W1's columns, by local fan-in": 0.0442,
}

# Thought that cut is cut: a device has 1024 / 4 = 256 columns of W1, and divides by their root.
init_scale__wrong_columns_counted = {
    "spread of W2, drawn whole": 0.03125,
    "spread of device 1's rows of it": 0.03125,
    "spread of rows drawn by local fan-in": 0.0625,
    "variance of the outputs, drawn whole": 1,
    "variance of the outputs, by local fan-in": 4,
    "spread of W1's columns, by local fan-in": 1 / 256**0.5,
}

# Wrote variances of the entries of W2 where spreads were asked for.
init_scale__wrong_variance_for_spread = {
    "spread of W2, drawn whole": 1 / 1024,
    "spread of device 1's rows of it": 1 / 1024,
    "spread of rows drawn by local fan-in": 1 / 256,
    "variance of the outputs, drawn whole": 1,
    "variance of the outputs, by local fan-in": 4,
    "spread of W1's columns, by local fan-in": 512**-0.5,
}

# Each device's product has variance 1 with its own fan-in; forgot that the psum then adds four of them.
init_scale__wrong_psum_forgotten = {
    "spread of W2, drawn whole": 1 / 32,
    "spread of device 1's rows of it": 1 / 32,
    "spread of rows drawn by local fan-in": 1 / 16,
    "variance of the outputs, drawn whole": 1,
    "variance of the outputs, by local fan-in": 1,
    "spread of W1's columns, by local fan-in": 512**-0.5,
}


# ---------------------------------------------------------------- tp_block

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


def tp_block__right_one_helper(params, x, *, mesh):
    tokens = P("batch", "model")

    def add_pair(own, scale, pair):
        everybody = jax.lax.all_gather(norm(own, scale), "model", axis=1, tiled=True)
        return own + jax.lax.psum_scatter(pair(everybody), "model", scatter_dimension=1, tiled=True)

    def on_device(p, own):
        own = add_pair(own, p["scale_1"], lambda t: attend(t, p["w_qkv"], p["w_out"]))
        return add_pair(own, p["scale_2"], lambda t: jax.nn.silu(t @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, tokens), out_specs=tokens)(params, x)


# Counted the dimensions wrongly and gathered and scattered along the sequences: attention then sees own tokens only.
def tp_block__wrong_dimension(params, x, *, mesh):
    def gather(x):
        return jax.lax.all_gather(x, "model", axis=0, tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=0, tiled=True)

    def on_device(p, x):
        x = x + scatter(attend(gather(norm(x, p["scale_1"])), p["w_qkv"], p["w_out"]))
        return x + scatter(jax.nn.silu(gather(norm(x, p["scale_2"])) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# Put the residual inside the scatter, as it stands on one device: every device along model adds x once more.
def tp_block__wrong_residual_summed(params, x, *, mesh):
    def gather(x):
        return jax.lax.all_gather(x, "model", axis=1, tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

    def on_device(p, x):
        whole = gather(x)
        x = scatter(whole + attend(norm(whole, p["scale_1"]), p["w_qkv"], p["w_out"]))
        whole = gather(x)
        return scatter(whole + jax.nn.silu(norm(whole, p["scale_2"]) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# Thought that gathering x and norming behind it is the same thing: it is in values, but all devices norm all tokens.
def tp_block__wrong_norms_all_tokens(params, x, *, mesh):
    def gather(x):
        return jax.lax.all_gather(x, "model", axis=1, tiled=True)

    def scatter(parts):
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

    def on_device(p, x):
        x = x + scatter(attend(norm(gather(x), p["scale_1"]), p["w_qkv"], p["w_out"]))
        return x + scatter(jax.nn.silu(norm(gather(x), p["scale_2"]) @ p["W1"]) @ p["W2"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )


# Took the two pairs for parallel branches of the same x, so that one scatter serves both.
def tp_block__wrong_parallel_branches(params, x, *, mesh):
    def on_device(p, x):
        one = jax.lax.all_gather(norm(x, p["scale_1"]), "model", axis=1, tiled=True)
        two = jax.lax.all_gather(norm(x, p["scale_2"]), "model", axis=1, tiled=True)
        parts = attend(one, p["w_qkv"], p["w_out"]) + jax.nn.silu(two @ p["W1"]) @ p["W2"]
        return x + jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(LAYOUTS, P("batch", "model")), out_specs=P("batch", "model"))(
        params, x
    )
