"""Answers to lesson 04, thirteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- follow_the_mesh

follow_the_mesh__right_places = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# This student takes the device's number for its place: row 1 of the mesh would be devices 2 and 3.
follow_the_mesh__wrong_numbers = {
    "who holds x[8, 0]": [2],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [2, 3],
}

# This student counts rows from 1, so that row 8 is the last of the first block.
follow_the_mesh__wrong_block_before = {
    "who holds x[8, 0]": [0],
    "who holds y[8, 0]": [0, 2, 4, 6],
    "layout of relu(x @ y)": P("a"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [0, 1],
}

# This student thinks that the sum runs over a, because the rows of the result are cut over a.
follow_the_mesh__wrong_over_a = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a"),
    "over": "a",
    "adds up with device 4": [0, 2, 6],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# This student thinks that the result takes over the whole spec of x, although the dimension cut over b is summed away.
follow_the_mesh__wrong_spec_of_x = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", "b"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4],
}

# ---------------------------------------------------------------- steer


def steer__right_weights_too(x, w1, w2, *, mesh):
    """relu(x @ w1) @ w2, the work divided over both axes of the mesh, "data" and "model"."""

    def cut(value, *spec):
        return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

    hidden = cut(jax.nn.relu(x @ cut(w1, None, "model")), "data", "model")
    return cut(hidden @ cut(w2, "model", None), "data", None)


# This student thinks that a constraint changes the value it is called on, and does not use what it returns.
def steer__wrong_not_used(x, w1, w2, *, mesh):
    h = jax.nn.relu(x @ w1)
    jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P("data", "model")))
    return h @ w2


# This student thinks that "over both axes" means that the hidden columns are cut over both.
def steer__wrong_columns_over_both(x, w1, w2, *, mesh):
    h = jax.nn.relu(x @ w1)
    h = jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P(None, ("data", "model"))))
    return jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P("data")))


# This student cuts the columns of x over model, so that the first sum is divided and the whole hidden layer is added up.
def steer__wrong_first_sum(x, w1, w2, *, mesh):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", "model")))
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P("data")))
    return h @ w2


# This student thinks that work is divided by cutting the result over both axes.
def steer__wrong_result_cut(x, w1, w2, *, mesh):
    h = jax.nn.relu(x @ w1)
    return jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P("data", "model")))


# ---------------------------------------------------------------- init_sharded


def init_sharded__right_decorated(rows, columns, axis, mesh):
    """The weights, their columns cut over `axis`, and the bytes that one device holds of them."""
    from functools import partial

    @partial(jax.jit, out_shardings=NamedSharding(mesh, P(None, axis)))
    def make():
        return jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)

    program = make.lower().compile()
    return program(), program.memory_analysis().output_size_in_bytes


# This student thinks that the first entry of a spec is for the columns.
def init_sharded__wrong_rows(rows, columns, axis, mesh):
    def make():
        return jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)

    compiled = jax.jit(make, out_shardings=NamedSharding(mesh, P(axis))).lower().compile()
    return compiled(), compiled.memory_analysis().output_size_in_bytes


# This student makes the whole array on one device first, and cuts it afterwards.
def init_sharded__wrong_put_afterwards(rows, columns, axis, mesh):
    compiled = jax.jit(lambda: jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)).lower().compile()
    weights = jax.device_put(compiled(), NamedSharding(mesh, P(None, axis)))
    return weights, compiled.memory_analysis().output_size_in_bytes


# This student divides the bytes by all devices of the mesh, where only those along `axis` cut anything.
def init_sharded__wrong_all_devices(rows, columns, axis, mesh):
    def make():
        return jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)

    weights = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis)))()
    return weights, weights.nbytes // mesh.size


# This student counts the entries on one device, and forgot that each has four bytes.
def init_sharded__wrong_entries(rows, columns, axis, mesh):
    def make():
        return jnp.sin(jnp.arange(rows * columns)).reshape(rows, columns)

    weights = jax.jit(make, out_shardings=NamedSharding(mesh, P(None, axis)))()
    return weights, weights.addressable_shards[0].data.size
