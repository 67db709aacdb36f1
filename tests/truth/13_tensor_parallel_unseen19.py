"""Answers to lesson 13, nineteenth batch, written by a reader of the notebook only."""

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

# This student says that a sum is linear, and that adding a bias is linear, too.
where_it_goes__wrong_linear = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "either way",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}

# This student fears that n devices which each halve their part halve the result n times.
where_it_goes__wrong_halves = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "needs a collective of its own",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "after the sum",
}

# This student thinks that any function of an activation acts on what a device has: relu and softmax alike.
where_it_goes__wrong_activations = {
    "adding b1 to the hidden layer": "on the parts",
    "relu of the hidden layer": "on the parts",
    "softmax over the hidden units": "on the parts",
    "adding b2 to the result": "after the sum",
    "relu of the result": "either way",
    "halving the result": "either way",
}

# This student takes the hidden units, too, for parts of a sum that must be finished before anything nonlinear.
where_it_goes__wrong_hiddensum = {
    "adding b1 to the hidden layer": "after the sum",
    "relu of the hidden layer": "after the sum",
    "softmax over the hidden units": "after the sum",
    "adding b2 to the result": "after the sum",
    "relu of the result": "after the sum",
    "halving the result": "either way",
}


# ---------------------------------------------------------------- sequence_parallel

CUT_ = (P("batch", "model"), P(), P(None, "model"), P("model", None))


# (A product asks nothing about the order of tokens: the blocks may be stacked along the sequences just as well.)
def sequence_parallel__right_stacked(x, scale, W1, W2, *, mesh):
    """norm, then a pair, for x[B_batch, T_model, D]; the result is laid out as x."""

    def on_device(x, scale, W1, W2):
        normed = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale
        tokens = jax.lax.all_gather(normed, "model", axis=0, tiled=True)
        part = jnp.maximum(tokens @ W1, 0) @ W2
        return jax.lax.psum_scatter(part, "model", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=CUT_, out_specs=P("batch", "model"))(x, scale, W1, W2)


# This student gathers first and norms all tokens on every device, since the values are the same.
def sequence_parallel__wrong_gatherfirst(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        x = jax.lax.all_gather(x, "model", axis=1, tiled=True)
        normed = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        part = jax.nn.relu(normed @ W1) @ W2
        return jax.lax.psum_scatter(part, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=CUT_, out_specs=P("batch", "model"))(x, scale, W1, W2)


# This student thinks that a token can stay where it is if the weights are gathered instead.
def sequence_parallel__wrong_weights(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        normed = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        W1 = jax.lax.all_gather(W1, "model", axis=1, tiled=True)
        W2 = jax.lax.all_gather(W2, "model", axis=0, tiled=True)
        return jax.nn.relu(normed @ W1) @ W2

    return jax.shard_map(on_device, mesh=mesh, in_specs=CUT_, out_specs=P("batch", "model"))(x, scale, W1, W2)


# This student takes a mean over something cut over "model" to need a pmean over "model" (but tokens are cut, not features).
def sequence_parallel__wrong_pmean(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        square = jax.lax.pmean(jnp.mean(x**2, axis=-1, keepdims=True), "model")
        normed = x / jnp.sqrt(square + 1e-6) * scale
        whole = jax.lax.all_gather(normed, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(whole @ W1) @ W2, "model", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=CUT_, out_specs=P("batch", "model"))(x, scale, W1, W2)


# This student scatters the sum along the last dimension, as weights are cut by features, and returns features cut.
def sequence_parallel__wrong_features(x, scale, W1, W2, *, mesh):
    def on_device(x, scale, W1, W2):
        normed = x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6) * scale
        whole = jax.lax.all_gather(normed, "model", axis=1, tiled=True)
        return jax.lax.psum_scatter(jax.nn.relu(whole @ W1) @ W2, "model", scatter_dimension=2, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=CUT_, out_specs=P("batch", None, "model"))(x, scale, W1, W2)


# ---------------------------------------------------------------- vocab_embedding


def vocab_embedding__right_fill(table, ids, *, mesh):
    """table[V_model, D] looked up at ids[B_batch, T] → [B_batch, T, D]."""

    def on_device(table, ids):
        words = table.shape[0]
        local = ids - words * jax.lax.axis_index("model")
        beyond = jnp.where(local < 0, words, local)  # what lies before the first word goes behind the last one
        return jax.lax.psum(jnp.take(table, beyond, axis=0, mode="fill", fill_value=0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# This student trusts mode="fill" for the words before the first one as well.
def vocab_embedding__wrong_negative(table, ids, *, mesh):
    def on_device(table, ids):
        local = ids - table.shape[0] * jax.lax.axis_index("model")
        return jax.lax.psum(jnp.take(table, local, axis=0, mode="fill", fill_value=0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# This student asks for the number of the device along "batch", along which the ids are cut.
def vocab_embedding__wrong_axis(table, ids, *, mesh):
    def on_device(table, ids):
        words = table.shape[0]
        local = ids - words * jax.lax.axis_index("batch")
        mine = (local >= 0) & (local < words)
        rows = jnp.take(table, jnp.where(mine, local, 0), axis=0)
        return jax.lax.psum(jnp.where(mine[..., None], rows, 0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# This student lets the mask run up to and including the number of own words, and clips: the word behind counts twice.
def vocab_embedding__wrong_lastword(table, ids, *, mesh):
    def on_device(table, ids):
        words = table.shape[0]
        local = ids - words * jax.lax.axis_index("model")
        mine = (0 <= local) & (local <= words)
        rows = jnp.take(table, local, axis=0, mode="clip")
        return jax.lax.psum(jnp.where(mine[..., None], rows, 0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)


# This student thinks that words are dealt out in turn: word w is on device w mod n, in place w // n.
def vocab_embedding__wrong_dealt(table, ids, *, mesh):
    n = mesh.shape["model"]

    def on_device(table, ids):
        mine = ids % n == jax.lax.axis_index("model")
        rows = jnp.take(table, ids // n, axis=0)
        return jax.lax.psum(jnp.where(mine[..., None], rows, 0), "model")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("model"), P("batch")), out_specs=P("batch"))(table, ids)
