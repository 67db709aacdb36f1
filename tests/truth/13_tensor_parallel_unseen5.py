"""Answers to lesson 13, fifth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("batch", "model"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- megatron_specs

megatron_specs__right_short = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model"), "b2": P(None)}

# The student has the two matrices the wrong way round: first by rows, then by columns, and the biases follow.
megatron_specs__wrong_rows_then_columns = {"W1": P("model", None), "b1": P(), "W2": P(None, "model"), "b2": P("model")}

# b1 is added to a matrix of hidden units, so the student writes its spec as if it had a dimension of examples.
megatron_specs__wrong_b1_of_two_dimensions = {
    "W1": P(None, "model"),
    "b1": P(None, "model"),
    "W2": P("model", None),
    "b2": P(),
}

# "As little as possible on each device": the student cuts b2 as well, and forgets that the sum has all outputs on each device.
megatron_specs__wrong_b2_cut_too = {"W1": P(None, "model"), "b1": P("model"), "W2": P("model", None), "b2": P("model")}

# Biases are small, and small things stay whole, the student has read somewhere; the hidden layer on a device is not whole.
megatron_specs__wrong_b1_whole = {"W1": P(None, "model"), "b1": P(), "W2": P("model", None), "b2": P()}


# ---------------------------------------------------------------- region_costs

region_costs__right_computed = {
    "bytes sent with an all_reduce": 2 * 3 * (4 * 64 * 32 * 4) // 4,
    "bytes sent with all_gather and reduce_scatter": (3 * (4 * 64 * 32 * 4) // 4) + (3 * (4 * 64 * 32 * 4) // 4),
    "entries of x on a device, whole sequences": 8 // 2 * 64 * 32,
    "entries of x on a device, sequences cut": 8 // 2 * 64 // 4 * 32,
}

# V is taken for all of x, as if the examples were not cut over batch when bytes are counted.
region_costs__wrong_v_of_all_examples = {
    "bytes sent with an all_reduce": 98304,
    "bytes sent with all_gather and reduce_scatter": 98304,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 2048,
}

# The student works with the notebook's mesh, 4 x 2, and not with the 2 x 4 of the question.
region_costs__wrong_the_mesh_of_the_notebook = {
    "bytes sent with an all_reduce": 16384,
    "bytes sent with all_gather and reduce_scatter": 16384,
    "entries of x on a device, whole sequences": 4096,
    "entries of x on a device, sequences cut": 2048,
}

# For the all_gather the student puts in for V the block that a device brings, not what comes out of it.
region_costs__wrong_v_of_the_block = {
    "bytes sent with an all_reduce": 49152,
    "bytes sent with all_gather and reduce_scatter": 30720,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 2048,
}

# P("batch", "model") cuts into eight, so the student divides by eight what had been divided by batch already.
region_costs__wrong_batch_divided_twice = {
    "bytes sent with an all_reduce": 49152,
    "bytes sent with all_gather and reduce_scatter": 49152,
    "entries of x on a device, whole sequences": 8192,
    "entries of x on a device, sequences cut": 1024,
}


# ---------------------------------------------------------------- sequence_parallel


def sequence_parallel__right_rsqrt(x, scale, W1, W2, *, mesh):
    tokens = P("batch", "model")

    def on_device(x, scale, w1, w2):
        own = x * jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=2, keepdims=True) + 1e-6) * scale
        everyone = jax.lax.all_gather(own, "model", axis=1, tiled=True)
        hidden = jnp.maximum(jnp.einsum("btd,df->btf", everyone, w1), 0)
        terms = jnp.einsum("btf,fd->btd", hidden, w2)
        return jax.lax.psum_scatter(terms, "model", scatter_dimension=1, tiled=True)

    run = jax.shard_map(on_device, mesh=mesh, in_specs=(tokens, P(), P(None, "model"), P("model")), out_specs=tokens)
    return run(x, scale, W1, W2)


# The pair needs all tokens, so the student gathers first thing, and every device norms the whole sequence.
def sequence_parallel__wrong_norms_everything(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, w1, w2):
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        x = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        part = jax.nn.relu(x @ w1) @ w2
        return jax.lax.psum_scatter(part, "model", scatter_dimension=1, tiled=True)

    specs = (P("batch", "model"), P(), P(None, "model"), P("model", None))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("batch", "model"))(x, scale, W1, W2)


# The sum is finished with a psum as in part 1, and then each device cuts out its own tokens: right values by an all_reduce.
def sequence_parallel__wrong_psum_and_cut(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, w1, w2):
        length = x.shape[1]
        x = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        total = jax.lax.psum(jax.nn.relu(x @ w1) @ w2, "model")
        return jax.lax.dynamic_slice_in_dim(total, jax.lax.axis_index("model") * length, length, axis=1)

    specs = (P("batch", "model"), P(), P(None, "model"), P("model", None))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("batch", "model"))(x, scale, W1, W2)


# x is cut over model, so the student believes that the mean of the squares has to be completed over model.
def sequence_parallel__wrong_mean_over_model(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, w1, w2):
        square = jax.lax.pmean(jnp.mean(x**2, axis=-1, keepdims=True), "model")
        x = x / jnp.sqrt(square + 1e-6) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(x @ w1) @ w2, "model", scatter_dimension=1, tiled=True)

    specs = (P("batch", "model"), P(), P(None, "model"), P("model", None))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("batch", "model"))(x, scale, W1, W2)


# "A relu needs finished sums": the student moves it behind the reduce_scatter, where it is another function.
def sequence_parallel__wrong_relu_after_the_sum(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, w1, w2):
        x = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        return jax.nn.relu(jax.lax.psum_scatter(x @ w1 @ w2, "model", scatter_dimension=1, tiled=True))

    specs = (P("batch", "model"), P(), P(None, "model"), P("model", None))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("batch", "model"))(x, scale, W1, W2)
