"""Answers to lesson 04, twenty-third batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- constrain_whole


def constrain_whole__right_nones(v, *, mesh):
    everywhere = NamedSharding(mesh, P(*(None for _ in v.shape)))
    return jax.lax.with_sharding_constraint(jnp.add(v, 1), everywhere)


# Moving an array to another layout is what device_put does, inside jit as outside.
def constrain_whole__wrong_device_put(v, *, mesh):
    return jax.device_put(v + 1, NamedSharding(mesh, P()))


# "Whole" means that all blocks are gathered, so gathers them: right layout and values, by forbidden means.
def constrain_whole__wrong_by_hand(v, *, mesh):
    def gather(block):
        block = jax.lax.all_gather(block, "y", axis=1, tiled=True)
        return jax.lax.all_gather(block, "x", axis=0, tiled=True) + 1

    return jax.shard_map(gather, mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False)(v)


# Whole rows are a whole array: takes only the cut of the columns back.
def constrain_whole__wrong_rows_stay(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("x", None)))


# Every device is to have it, so all axes must be named: those named are the ones that get the array.
def constrain_whole__wrong_all_axes_named(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(mesh.axis_names)))


# ---------------------------------------------------------------- error_or_not

error_or_not__right_list = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# The argument is laid out over axes x and y; a mesh with another axis is another mesh, and meshes may not be mixed.
error_or_not__wrong_other_mesh = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "an error",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# out_shardings say what a constraint says, so that they too give the whole array back where rows do not divide.
error_or_not__wrong_like_constraint = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "runs",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# It is all the same eight devices: the compiler moves what has to move, for a constraint and for an argument.
error_or_not__wrong_compiler_moves = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "runs",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "runs",
    "in_shardings for a NumPy argument": "runs",
}

# The mesh is known from the array, so a bare P is enough; a NumPy array has none, so that in_shardings do not fit it.
error_or_not__wrong_mesh_from_array = {
    "a constraint with a bare P, no mesh set": "runs",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "an error",
}

# ---------------------------------------------------------------- steer


def steer__right_cut_weights(x, w1, w2, *, mesh):
    """Cut both weights along the hidden dimension (they are whole: this sends nothing); the rest follows."""
    w1 = jax.lax.with_sharding_constraint(w1, NamedSharding(mesh, P(None, "model")))
    w2 = jax.lax.with_sharding_constraint(w2, NamedSharding(mesh, P("model", None)))
    return jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1) @ w2, NamedSharding(mesh, P("data")))


# The hidden columns go over "model", and None leaves the rows as they were.
def steer__wrong_none_keeps(x, w1, w2, *, mesh):
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P(None, "model")))
    return jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P("data")))


# A product is divided by cutting what it sums over: cuts the columns of x, so that the first is, and the second will follow.
def steer__wrong_first_contraction(x, w1, w2, *, mesh):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", "model")))
    return jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1) @ w2, NamedSharding(mesh, P("data")))


# Both axes share the rows of the hidden layer: all work is divided, but the result has to be gathered, not added up.
def steer__wrong_rows_over_both(x, w1, w2, *, mesh):
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P(("data", "model"))))
    y = jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P(("data", "model"))))
    return jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))


# Layouts travel backward, so it is enough to ask for the result cut over both axes.
def steer__wrong_result_over_both(x, w1, w2, *, mesh):
    return jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1) @ w2, NamedSharding(mesh, P("data", "model")))
