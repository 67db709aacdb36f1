"""Answers to lesson 05, tenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---- specs_match

specs_match__right_spelled = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", "y"),
    "psum(block, 'x')": P(None, "y"),
    "psum(block.sum(0), 'x')": P("y"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x", None),
}

# The input is cut over x and y, and a gather changes only what a device holds, so the result is still P("x", "y").
specs_match__wrong_stillcut = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", "y"),
    "psum(block, 'x')": P(None, "y"),
    "psum(block.sum(0), 'x')": P("y"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x", "y"),
}

# A psum over 'x' makes a thing of the axis x, so x is the axis to name afterwards.
specs_match__wrong_summedaxis = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", "y"),
    "psum(block, 'x')": P("x"),
    "psum(block.sum(0), 'x')": P("x"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x"),
}

# sum(1) runs over the columns, and the columns are what y cuts, so after it nothing is left that differs along y.
specs_match__wrong_rowsum = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", None),
    "psum(block, 'x')": P(None, "y"),
    "psum(block.sum(0), 'x')": P("y"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x"),
}

# Columns are dimension 1, also after sum(0), so the column sums need a None for the rows that are gone.
specs_match__wrong_rank = {
    "block.T": P("y", "x"),
    "block.sum(1, keepdims=True)": P("x", "y"),
    "psum(block, 'x')": P(None, "y"),
    "psum(block.sum(0), 'x')": P(None, "y"),
    "psum(block.sum(), ('x', 'y'))": P(),
    "all_gather(block, 'y', axis=1, tiled=True)": P("x"),
}


# ---- layer_constrained


def layer_constrained__right_outshardings(x, w, b, *, mesh):
    def layer(x, w, b):
        return jax.nn.sigmoid(x @ w + b)

    return jax.jit(layer, out_shardings=NamedSharding(mesh, P("y", "x")))(x, w, b)


# Rows come first and x is the first axis of the mesh, so "rows and columns cut" is P("x", "y").
def layer_constrained__wrong_order(x, w, b, *, mesh):
    product = jax.lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("x", "y")))
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(product + b), NamedSharding(mesh, P("x", "y")))


# with_sharding_constraint works on the array in place, like a method of torch with an underscore.
def layer_constrained__wrong_inplace(x, w, b, *, mesh):
    out = jax.nn.sigmoid(x @ w + b)
    jax.lax.with_sharding_constraint(out, NamedSharding(mesh, P("y", "x")))
    return out


# The rows are cut over y already, so the constraint needs to speak of the columns only; None leaves the rows as they are.
def layer_constrained__wrong_columnsonly(x, w, b, *, mesh):
    product = x @ w + b
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(product), NamedSharding(mesh, P(None, "x")))


# The devices along x each add the bias before the compiler's all-reduce, so each may add only its share of it.
def layer_constrained__wrong_sharedbias(x, w, b, *, mesh):
    product = x @ w + b / mesh.shape["x"]
    return jax.lax.with_sharding_constraint(jax.nn.sigmoid(product), NamedSharding(mesh, P("y", "x")))


# ---- partial_sums


def partial_sums__right_reshaped(x, *, mesh):
    def on_device(block):
        return block.reshape(1, -1).sum(axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# A sum inside shard_map needs a psum, or the devices do not add.
def partial_sums__wrong_psum(x, *, mesh):
    def on_device(block):
        return jax.lax.psum(jnp.sum(block, keepdims=True), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Entries are dealt out to the devices like cards, so device d has the entries d, d + n, d + 2n; a reshape sums them without shard_map.
def partial_sums__wrong_dealt(x, *, mesh):
    n = mesh.shape["x"]
    return x.reshape(-1, n).sum(axis=0)


# A scalar cannot be lined up, so the sum is given the shape of the block again.
def partial_sums__wrong_fullblock(x, *, mesh):
    def on_device(block):
        return jnp.full_like(block, block.sum())

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# To put eight numbers one after the other somebody has to gather them, and out_specs then hands them out.
def partial_sums__wrong_gathered(x, *, mesh):
    def on_device(block):
        return jax.lax.all_gather(block.sum(), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
