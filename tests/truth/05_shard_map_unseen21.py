"""Answers to lesson 05, twenty-first batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- centred_columns
def centred_columns__right_total(x, *, mesh):
    """x[I_X, J_Y] minus the mean of each column."""
    rows = x.shape[0]  # outside: all rows

    def on_device(block):
        return block - jax.lax.psum(block.sum(axis=0, keepdims=True), "x") / rows

    return jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


# This student sums over all devices, but divides by the block's number of rows, which is not that of the whole.
def centred_columns__wrong_blocklength(x, *, mesh):
    def on_device(block):
        return block - jax.lax.psum(block.sum(axis=0), "x") / block.shape[0]

    return jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


# This student takes "over all rows" as "along each row": axis=1; y is whole to see, so nothing seems to be missing.
def centred_columns__wrong_rowwise(x, *, mesh):
    def on_device(block):
        return block - block.mean(axis=1, keepdims=True)

    return jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


# This student goes fully manual and averages over every axis of the mesh, "so that all agree"; different columns mix.
def centred_columns__wrong_bothaxes(x, *, mesh):
    def on_device(block):
        return block - jax.lax.pmean(block.mean(axis=0), ("x", "y"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# This student thinks that a device needs all rows for a mean over all rows: right numbers, but whole columns travel.
def centred_columns__wrong_gathers(x, *, mesh):
    def on_device(block):
        column = jax.lax.all_gather(block, "x", axis=0, tiled=True)
        return block - column.mean(axis=0)

    return jax.jit(jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}))(x)


# ---------------------------------------------------------------- column_sums
def column_sums__right_einsum(x, *, mesh):
    """The sums of the columns of x[I_X, J_Y], as [J_Y]."""
    return jax.shard_map(
        lambda block: jax.lax.psum(jnp.einsum("ij->j", block), "x"),
        mesh=mesh,
        in_specs=P("x", "y"),
        out_specs=P("y"),
    )(x)


# This student lets in_specs bring all rows to every device: the promise is kept, but the matrix travels, not the sums.
def column_sums__wrong_widespecs(x, *, mesh):
    return jax.shard_map(lambda block: block.sum(axis=0), mesh=mesh, in_specs=P(None, "y"), out_specs=P("y"))(x)


# This student adds over both axes since both cut x; then column j is added to column j + J/2.
def column_sums__wrong_bothaxes(x, *, mesh):
    body = lambda block: jax.lax.psum(block.sum(axis=0), ("x", "y"))
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# This student makes the devices agree with a pmean, which satisfies the check; a mean of sums is no sum.
def column_sums__wrong_pmean(x, *, mesh):
    body = lambda block: jax.lax.pmean(block.sum(axis=0), "x")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# This student adds over x twice: once the blocks, then their column sums (which are complete by then).
def column_sums__wrong_twice(x, *, mesh):
    def body(block):
        rows = jax.lax.psum(block, "x")
        return jax.lax.psum(rows.sum(axis=0), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# ---------------------------------------------------------------- local_view
local_view__right_cut = {
    "float32[16, 24], P('x', 'y')": (16 // 4, 24 // 2),
    "float32[16, 24], P(None, 'x')": (16, 24 // 4),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (16 // 8,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# This student thinks that each of the eight devices has its own Python, which runs in both calls and prints its block.
local_view__wrong_eightpythons = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 16,
    "print(block), under jit (every block / one block / no numbers)": "every block",
}

# This student reads 4 × 2 as columns × rows: x cuts into 2 and y into 4.
local_view__wrong_swapped = {
    "float32[16, 24], P('x', 'y')": (8, 6),
    "float32[16, 24], P(None, 'x')": (16, 12),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# This student thinks that x always cuts the first dimension, and that the y of a tuple waits for a second dimension.
local_view__wrong_xisfirst = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (4, 24),
    "float32[16, 24], P()": (16, 24),
    "float32[16], P(('x', 'y'))": (4,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "no numbers",
}

# This student thinks that P() leaves it to JAX to deal the rows to all eight devices, and that print shows device 0's.
local_view__wrong_emptyspec = {
    "float32[16, 24], P('x', 'y')": (4, 12),
    "float32[16, 24], P(None, 'x')": (16, 6),
    "float32[16, 24], P()": (2, 24),
    "float32[16], P(('x', 'y'))": (2,),
    "calls of the function, twice under jit": 1,
    "print(block), under jit (every block / one block / no numbers)": "one block",
}
