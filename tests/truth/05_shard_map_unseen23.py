"""Answers to lesson 05, twenty-third batch, written by a reader of the notebook only."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")


import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- many_layers


def many_layers__right_everyleaf(params, x, mesh):
    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    in_specs = (jax.tree.map(lambda leaf: P(), params), P("x"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


# This student saw that the dict must become one spec, but not that the outer list must be a tuple.
def many_layers__wrong_list(params, x, mesh):
    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    in_specs = [P(), P("x")]
    return jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


# This student takes every layer for an argument of its own, and writes one spec for each layer beside that of x.
def many_layers__wrong_perlayer(params, x, mesh):
    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    in_specs = (P(),) * len(params) + (P("x"),)
    return jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


# This student thinks that one P() goes for all arguments and that out_specs do the cutting of the rows at the end.
def many_layers__wrong_outcuts(params, x, mesh):
    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    in_specs = P()
    return jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


# This student thinks "one spec for all" and gives the spec of x to the weights too, so that these are cut by rows.
def many_layers__wrong_weightscut(params, x, mesh):
    def on_device(params, rows):
        for layer in params:
            rows = jax.nn.relu(rows @ layer["w"] + layer["b"])
        return rows

    in_specs = (P("x"), P("x"))
    return jax.shard_map(on_device, mesh=mesh, in_specs=in_specs, out_specs=P("x"))(params, x)


# ---------------------------------------------------------------- local_view

local_view__right_plain = {
    "float32[16, 24], P('x', 'y')": (16 // 4, 24 // 2),
    "float32[16, 24], P(None, 'x')": (16, 24 // 4),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (16 // 8,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# This student reads "4 × 2, axes x and y" as x across and y down, so x cuts into 2 and y into 4.
local_view__wrong_swapped = {
    "float32[16, 24], P('x', 'y')": (8, 6),
    "float32[16, 24], P(None, 'x')": (16, 12),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# This student believes that eight devices always mean eight different blocks, so an axis not named cuts what is left.
local_view__wrong_alwayseight = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (8, 6),
    "float32[16, 24], P()": (4, 12),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# This student thinks that the compiled function still enters Python at each call and prints the blocks as it does without jit.
local_view__wrong_eachcall = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 2,
    "print(block), under jit (every block / one block / no numbers)": "every block",
}

# This student thinks that in a tuple the first axis cuts and the second finds no dimension left; and that tracing runs on block 0.
local_view__wrong_firstoftuple = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (4,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "one block",
}


# ---------------------------------------------------------------- block_sums


def block_sums__right_newaxis(x, *, mesh):
    def on_device(block):
        return jnp.sum(block, axis=0)[None, :]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# This student still adds over x as in column_sums, and only changes out_specs: every row is the sum of the whole column.
def block_sums__wrong_stillsummed(x, *, mesh):
    def on_device(block):
        return jax.lax.psum(block.sum(axis=0, keepdims=True), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# This student lets the dimension go, and lines all sums up one after the other in the only one that is left.
def block_sums__wrong_flat(x, *, mesh):
    def on_device(block):
        return block.sum(axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P(("x", "y")))(x)


# This student takes axis=1 for "along the columns", and sums the rows of each block.
def block_sums__wrong_rowsums(x, *, mesh):
    def on_device(block):
        return block.sum(axis=1, keepdims=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# This student cuts the whole array into four groups of rows beforehand, since "there are four devices along x".
def block_sums__wrong_fourrows(x, *, mesh):
    rows = x.reshape(4, -1, x.shape[1]).sum(axis=1)
    return jax.shard_map(lambda block: block, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(rows)
