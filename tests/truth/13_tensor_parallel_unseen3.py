"""Answers to lesson 13, third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- sequence_parallel


def sequence_parallel__right_columns_first(x, scale, W1, W2, *, mesh):
    tokens = P("batch", "model")

    def pair(x, scale, W1, W2):
        own = jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * x * scale
        everyone = jax.lax.all_gather(own, "model", axis=1, tiled=True)
        hidden = jax.nn.relu(jnp.einsum("btd,df->btf", everyone, W1))
        return jax.lax.psum_scatter(jnp.einsum("btf,fd->btd", hidden, W2), "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(pair, mesh=mesh, in_specs=(tokens, P(), P(None, "model"), P("model")), out_specs=tokens)(
        x, scale, W1, W2
    )


# A token goes through both matrices by itself, so I gather the weights and let each device do its own tokens.
def sequence_parallel__right_weights_gathered(x, scale, W1, W2, *, mesh):
    def body(x, scale, W1, W2):
        W1 = jax.lax.all_gather(W1, "model", axis=1, tiled=True)
        W2 = jax.lax.all_gather(W2, "model", axis=0, tiled=True)
        h = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        return jax.nn.relu(h @ W1) @ W2

    specs = P("batch", "model"), P(), P(None, "model"), P("model", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch", "model"))(x, scale, W1, W2)


# The sum first (all devices need it), then each takes its own tokens of it.
def sequence_parallel__wrong_all_reduce(x, scale, W1, W2, *, mesh):
    def body(x, scale, W1, W2):
        h = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        h = jax.lax.all_gather(h, "model", axis=1, tiled=True)
        whole = jax.lax.psum(jax.nn.relu(h @ W1) @ W2, "model")
        own = x.shape[1]
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("model") * own, own, axis=1)

    specs = P("batch", "model"), P(), P(None, "model"), P("model", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch", "model"))(x, scale, W1, W2)


# The mean goes over all that a device has of a sequence: its tokens and features.
def sequence_parallel__wrong_mean(x, scale, W1, W2, *, mesh):
    def body(x, scale, W1, W2):
        h = x / jnp.sqrt(jnp.mean(x**2, axis=(1, 2), keepdims=True) + 1e-6) * scale
        h = jax.lax.all_gather(h, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(h @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    specs = P("batch", "model"), P(), P(None, "model"), P("model", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("batch", "model"))(x, scale, W1, W2)


# After W2 the sum is dealt out along the first dimension, as everywhere in lesson 07; out_specs then name both axes for the sequences.
def sequence_parallel__wrong_sequences(x, scale, W1, W2, *, mesh):
    def body(x, scale, W1, W2):
        h = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        h = jax.lax.all_gather(h, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(h @ W1) @ W2, "model", scatter_dimension=0, tiled=True)

    specs = P("batch", "model"), P(), P(None, "model"), P("model", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(("batch", "model")))(x, scale, W1, W2)


# ---------------------------------------------------------------- region_costs

_V = 4 * 64 * 32 * 4  # bytes that a row of four devices works on

region_costs__right_formula = {
    "bytes sent with an all_reduce": 2 * 3 * _V // 4,
    "bytes sent with all_gather and reduce_scatter": 3 * _V // 4 + 3 * _V // 4,
    "entries of x on a device, whole sequences": 4 * 64 * 32,
    "entries of x on a device, sequences cut": 4 * 16 * 32,
}

# Scattering instead of reducing saves half of the bytes.
region_costs__wrong_saves = {
    **region_costs__right_formula,
    "bytes sent with all_gather and reduce_scatter": 3 * _V // 4,
}

# On the lesson's mesh of 4 x 2: a row is two devices, and V a quarter of x.
region_costs__wrong_mesh = {
    "bytes sent with an all_reduce": 2 * (2 * 64 * 32 * 4) // 2,
    "bytes sent with all_gather and reduce_scatter": 2 * (2 * 64 * 32 * 4) // 2,
    "entries of x on a device, whole sequences": 2 * 64 * 32,
    "entries of x on a device, sequences cut": 2 * 32 * 32,
}

# The whole of x is added up, so V is all of its eight sequences.
region_costs__wrong_all_sequences = {
    **region_costs__right_formula,
    "bytes sent with an all_reduce": 2 * 3 * (2 * _V) // 4,
    "bytes sent with all_gather and reduce_scatter": 2 * 3 * (2 * _V) // 4,
}

# Each of gather and scatter moves a quarter from each to all others: three times a device's quarter would be the gather, and the all_reduce is
# only one collective, so it is half of the two.
region_costs__wrong_one_collective = {
    **region_costs__right_formula,
    "bytes sent with an all_reduce": 3 * _V // 4,
    "entries of x on a device, whole sequences": 8 * 64 * 32,
}

# ---------------------------------------------------------------- init_scale

init_scale__right_formula = {
    "spread of W2, drawn whole": 1024**-0.5,
    "spread of device 1's rows of it": 1024**-0.5,
    "spread of rows drawn by local fan-in": 256**-0.5,
    "variance of the outputs, drawn whole": 1024 * (1 / 1024),
    "variance of the outputs, by local fan-in": 1024 * (1 / 256),
    "spread of W1's columns, by local fan-in": 512**-0.5,
}

# A device's rows are a quarter of the matrix, so they have their own spread.
init_scale__wrong_part = {**init_scale__right_formula, "spread of device 1's rows of it": 256**-0.5}

# The spread is twice as large, so the variance is, too.
init_scale__wrong_twice = {**init_scale__right_formula, "variance of the outputs, by local fan-in": 2.0}

# A device has a quarter of W1 as well, so its fan-in is 128.
init_scale__wrong_columns = {**init_scale__right_formula, "spread of W1's columns, by local fan-in": 128**-0.5}

# Each device adds up its own 256 products with variance 1/256 each, so the outputs have variance 1; for W1 I took the 256 columns as fan-in.
init_scale__wrong_local_sum = {
    **init_scale__right_formula,
    "variance of the outputs, by local fan-in": 1.0,
    "spread of W1's columns, by local fan-in": 256**-0.5,
}
