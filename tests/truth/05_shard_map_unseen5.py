"""Answers to lesson 05, fifth batch, written by a reader of the notebook only."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---- block_transpose

# (the notebook says "a list" for what device 3 returns: a block of 1 x 2, so nested)
# (By the text as it stands now, a list of its two numbers, this one is wrong: it is refused, and rightly.)
block_transpose__right_nested = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [[6, 7]],
    "bytes sent": 0,
}

# (the same, if "a list" is read as for the first row: the two numbers)
block_transpose__right_flat = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [6, 7],
    "bytes sent": 0,
}

# Thought that the result is the same 4 x 4 array, only laid out in another way.
block_transpose__wrong_samearray = {
    "shape": (4, 4),
    "first row": [0, 1, 2, 3],
    "device 3 returns": [[6, 7]],
    "bytes sent": 0,
}

# Thought that the two numbers of a block are transposed as well: each block becomes 2 x 1, and the whole is x.T.
block_transpose__wrong_transposed = {
    "shape": (4, 4),
    "first row": [0, 4, 8, 12],
    "device 3 returns": [[6], [7]],
    "bytes sent": 0,
}

# Thought that blocks have to travel to their new places: each device sends its eight bytes.
block_transpose__wrong_travel = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [[6, 7]],
    "bytes sent": 8,
}

# Numbered the devices down the columns of the mesh, so that device 3 is at x = 3, y = 0.
block_transpose__wrong_device3 = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [[12, 13]],
    "bytes sent": 0,
}


# ---- four_ways

four_ways__right_one = {
    "Auto mesh: sigmoid(x @ w + b)": 1,
    "Auto mesh: the same, constrained to P('y', None)": 1,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": 1,
    "Explicit mesh: constrained to P('y', None)": "an error",
}

# Thought that a constraint moves data on an Explicit mesh too, and so says what is missing.
four_ways__wrong_constraint = {
    "Auto mesh: sigmoid(x @ w + b)": 1,
    "Auto mesh: the same, constrained to P('y', None)": 1,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": 1,
    "Explicit mesh: constrained to P('y', None)": 1,
}

# Thought that x and w are cut alike along what is summed over, so that the compiler has nothing to send.
four_ways__wrong_alike = {
    "Auto mesh: sigmoid(x @ w + b)": 0,
    "Auto mesh: the same, constrained to P('y', None)": 0,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": 1,
    "Explicit mesh: constrained to P('y', None)": "an error",
}

# Thought that the compiler first finishes the product and then needs a second all-reduce for the layout asked for.
four_ways__wrong_twice = {
    "Auto mesh: sigmoid(x @ w + b)": 1,
    "Auto mesh: the same, constrained to P('y', None)": 2,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": 2,
    "Explicit mesh: constrained to P('y', None)": "an error",
}

# Thought that the types on an Explicit mesh are enough for JAX to find the one sensible layout, rows over y.
four_ways__wrong_infers = {
    "Auto mesh: sigmoid(x @ w + b)": 1,
    "Auto mesh: the same, constrained to P('y', None)": 1,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": 1,
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": 1,
    "Explicit mesh: constrained to P('y', None)": 1,
}


# ---- layer_by_hand


def layer_by_hand__right_first(x, w, b, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("y", "x"), P("x", None), P()), out_specs=P("y", None))
    def on_device(rows, part, bias):
        once = jnp.where(jax.lax.axis_index("x") == 0, bias, 0 * bias)  # the first device along x brings the bias
        return jax.nn.sigmoid(jax.lax.psum(jnp.einsum("bi,io->bo", rows, part) + once, "x"))

    return on_device(x, w, b)


# Thought that the bias belongs to the product, so that it is added before the sum.
def layer_by_hand__wrong_bias(x, w, b, *, mesh):
    def on_device(x, w, b):
        return jax.nn.sigmoid(jax.lax.psum(x @ w + b, "x"))

    specs = P("y", "x"), P("x", None), P()
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


# Thought of the parts as estimates of the product, which are to be averaged.
def layer_by_hand__wrong_mean(x, w, b, *, mesh):
    def on_device(x, w, b):
        return jax.nn.sigmoid(jax.lax.pmean(x @ w, "x") + b)

    specs = P("y", "x"), P("x", None), P()
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


# Thought that a sum over devices is over all of them: adds different examples up along y as well.
def layer_by_hand__wrong_bothaxes(x, w, b, *, mesh):
    def on_device(x, w, b):
        return jax.nn.sigmoid(jax.lax.psum(x @ w, ("x", "y")) + b)

    specs = P("y", "x"), P("x", None), P()
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)


# Thought that in_specs may as well bring whole rows and whole w to each device: then nothing is left to add, but much is sent.
def layer_by_hand__wrong_gathers(x, w, b, *, mesh):
    def on_device(x, w, b):
        return jax.nn.sigmoid(x @ w + b)

    specs = P("y", None), P(), P()
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=P("y", None))(x, w, b)
