"""Answers to lesson 13, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- vocab_cross_entropy


def vocab_cross_entropy__right_logsumexp_of_parts(logits, targets, *, mesh):
    def on_device(logits, targets):
        words = jax.lax.axis_index("model") * logits.shape[1] + jnp.arange(logits.shape[1])
        own = jax.nn.logsumexp(logits, axis=1)
        top = jax.lax.pmax(jax.lax.stop_gradient(own), "model")
        norm = top + jnp.log(jax.lax.psum(jnp.exp(own - top), "model"))
        mine = jnp.where(words == targets[:, None], logits, 0).sum(axis=1)
        return norm - jax.lax.psum(mine, "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )


# Thought: any number will do that is the same everywhere, so the mean of the devices' maxima (which lies far below the largest logit, and exp overflows).
def vocab_cross_entropy__wrong_mean_of_maxima(logits, targets, *, mesh):
    def on_device(logits, targets):
        width = logits.shape[1]
        top = jax.lax.pmean(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        local = targets - jax.lax.axis_index("model") * width
        mine = (local >= 0) & (local < width)
        found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
        target = jax.lax.psum(jnp.where(mine, found, 0), "model")
        return top + jnp.log(total) - target

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )


# Thought: clipping the shifted number makes the lookup safe, and the psum then picks out the right logit (the others add their edge words).
def vocab_cross_entropy__wrong_clip(logits, targets, *, mesh):
    def on_device(logits, targets):
        width = logits.shape[1]
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        local = jnp.clip(targets - jax.lax.axis_index("model") * width, 0, width - 1)
        target = jax.lax.psum(jnp.take_along_axis(logits, local[:, None], axis=1)[:, 0], "model")
        return top + jnp.log(total) - target

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )


# Thought: targets are cut over batch, so the number that shifts them is the device's number along batch.
def vocab_cross_entropy__wrong_index_axis(logits, targets, *, mesh):
    def on_device(logits, targets):
        width = logits.shape[1]
        top = jax.lax.pmax(jax.lax.stop_gradient(logits.max(axis=1)), "model")
        total = jax.lax.psum(jnp.exp(logits - top[:, None]).sum(axis=1), "model")
        local = targets - jax.lax.axis_index("batch") * width
        mine = (local >= 0) & (local < width)
        found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
        target = jax.lax.psum(jnp.where(mine, found, 0), "model")
        return top + jnp.log(total) - target

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )


# Thought: logsumexp is already stable, and what is a sum can be finished with psum: the devices' logsumexps add up.
def vocab_cross_entropy__wrong_sum_of_logs(logits, targets, *, mesh):
    def on_device(logits, targets):
        width = logits.shape[1]
        local = targets - jax.lax.axis_index("model") * width
        mine = (local >= 0) & (local < width)
        found = jnp.take_along_axis(logits, jnp.where(mine, local, 0)[:, None], axis=1)[:, 0]
        part = jax.nn.logsumexp(logits, axis=1) - jnp.where(mine, found, 0)
        return jax.lax.psum(part, "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("batch", "model"), P("batch")), out_specs=P("batch"))(
        logits, targets
    )


# ---------------------------------------------------------------- init_scale

init_scale__right_powers = {
    "spread of W2, drawn whole": 1024**-0.5,
    "spread of device 1's rows of it": 1024**-0.5,
    "spread of rows drawn by local fan-in": (1024 // 4) ** -0.5,
    "variance of the outputs, drawn whole": 1024 * (1024**-0.5) ** 2,
    "variance of the outputs, by local fan-in": 1024 * ((1024 // 4) ** -0.5) ** 2,
    "spread of W1's columns, by local fan-in": 512**-0.5,
}

# Thought: the same happens to W1: it is cut in four, so its local fan-in is a quarter as well.
init_scale__wrong_columns_quartered = {
    "spread of W2, drawn whole": 1 / 32,
    "spread of device 1's rows of it": 1 / 32,
    "spread of rows drawn by local fan-in": 1 / 16,
    "variance of the outputs, drawn whole": 1.0,
    "variance of the outputs, by local fan-in": 4.0,
    "spread of W1's columns, by local fan-in": (512 / 4) ** -0.5,
}

# Thought: weights are twice as large, so the outputs are twice as large (forgot that a variance is a square).
init_scale__wrong_not_squared = {
    "spread of W2, drawn whole": 0.03125,
    "spread of device 1's rows of it": 0.03125,
    "spread of rows drawn by local fan-in": 0.0625,
    "variance of the outputs, drawn whole": 1,
    "variance of the outputs, by local fan-in": 2,
    "spread of W1's columns, by local fan-in": 0.0442,
}

# Thought: each device adds up 256 products of variance 1/256, which is 1 again; the sum over the four devices is forgotten.
init_scale__wrong_before_psum = {
    "spread of W2, drawn whole": 1 / np.sqrt(1024),
    "spread of device 1's rows of it": 1 / np.sqrt(1024),
    "spread of rows drawn by local fan-in": 1 / np.sqrt(256),
    "variance of the outputs, drawn whole": 1.0,
    "variance of the outputs, by local fan-in": 256 * (1 / 256),
    "spread of W1's columns, by local fan-in": 1 / np.sqrt(512),
}

# Thought: fan-in is the longer side, the one that the two matrices have in common and that is cut: W1 is scaled by its 256 hidden units here; a quarter of W2 is spread by its own 256 rows.
init_scale__wrong_hidden_is_fan_in = {
    "spread of W2, drawn whole": 1 / 1024**0.5,
    "spread of device 1's rows of it": 1 / 256**0.5,
    "spread of rows drawn by local fan-in": 1 / 256**0.5,
    "variance of the outputs, drawn whole": 1.0,
    "variance of the outputs, by local fan-in": 4.0,
    "spread of W1's columns, by local fan-in": 1 / 256**0.5,
}


# ---------------------------------------------------------------- sequence_parallel


def sequence_parallel__right_rsqrt_einsum(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, w1, w2):
        own = x * jax.lax.rsqrt(jnp.einsum("btd,btd->bt", x, x)[..., None] / x.shape[-1] + 1e-6) * scale
        tokens = jax.lax.all_gather(own, "model", axis=1, tiled=True)
        hidden = jnp.maximum(jnp.einsum("btd,df->btf", tokens, w1), 0)
        parts = jnp.einsum("btf,fd->btd", hidden, w2)
        return jax.lax.psum_scatter(parts, "model", scatter_dimension=1, tiled=True)

    tokens_cut = P("batch", "model")
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(tokens_cut, P(), P(None, "model"), P("model", None)), out_specs=tokens_cut
    )(x, scale, W1, W2)


# Thought: tokens are cut and everything works token by token, so tokens may stay: what is missing is the rest of the weights.
def sequence_parallel__wrong_weights_gathered(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, w1, w2):
        w1 = jax.lax.all_gather(w1, "model", axis=1, tiled=True)
        w2 = jax.lax.all_gather(w2, "model", axis=0, tiled=True)
        normed = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        return jax.nn.relu(normed @ w1) @ w2

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model"), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model"),
    )(x, scale, W1, W2)


# Thought: x is cut over model, so a mean over features has only seen a part and must be averaged over model.
def sequence_parallel__wrong_mean_over_model(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, w1, w2):
        mean = jax.lax.pmean(jnp.mean(x**2, axis=-1, keepdims=True), "model")
        normed = x / jnp.sqrt(mean + 1e-6) * scale
        whole = jax.lax.all_gather(normed, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(whole @ w1) @ w2, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model"), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model"),
    )(x, scale, W1, W2)


# Thought: psum_scatter undoes the all_gather, so it knows the dimension (its default is 0: sequences are scattered).
def sequence_parallel__wrong_scatter_default(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, w1, w2):
        normed = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        whole = jax.lax.all_gather(normed, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(whole @ w1) @ w2, "model", tiled=True)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model"), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model"),
    )(x, scale, W1, W2)


# Thought: a transformer's norm is LayerNorm as in torch: subtract the mean of the token, divide by its deviation.
def sequence_parallel__wrong_layernorm(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, w1, w2):
        centred = x - x.mean(axis=-1, keepdims=True)
        normed = centred / jnp.sqrt(x.var(axis=-1, keepdims=True) + 1e-6) * scale
        whole = jax.lax.all_gather(normed, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(whole @ w1) @ w2, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("batch", "model"), P(), P(None, "model"), P("model", None)),
        out_specs=P("batch", "model"),
    )(x, scale, W1, W2)
