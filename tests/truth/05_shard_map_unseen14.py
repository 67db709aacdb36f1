"""Answers to lesson 05, fourteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# --- price_of_no_check


price_of_no_check__right_table = {
    "A, check on": "right",
    "A, check off": "right",
    "B, check on": "error",
    "B, check off": "wrong",
    "C, check on": "error",
    "C, check off": "right",
}

# The check compares what the devices hold with the promise, and in C out_specs name x, so nothing is promised and nothing is refused.
price_of_no_check__wrong_no_promise_in_c = {
    "A, check on": "right",
    "A, check off": "right",
    "B, check on": "error",
    "B, check off": "wrong",
    "C, check on": "right",
    "C, check off": "right",
}

# The check inserts the casts; without it the carry stays "the same on all devices", so every device gets device 0's numbers.
price_of_no_check__wrong_carry_stays_replicated = {
    "A, check on": "right",
    "A, check off": "right",
    "B, check on": "error",
    "B, check off": "wrong",
    "C, check on": "error",
    "C, check off": "wrong",
}

# With the check off JAX no longer refuses the body, but unequal copies cannot be put together under P(), so it fails later.
price_of_no_check__wrong_assembling_refuses = {
    "A, check on": "right",
    "A, check off": "right",
    "B, check on": "error",
    "B, check off": "error",
    "C, check on": "error",
    "C, check off": "right",
}

# With the check off nobody knows that the psum took x away, so out_specs=P() cannot be relied on even where the sum is right.
price_of_no_check__wrong_psum_needs_types = {
    "A, check on": "right",
    "A, check off": "wrong",
    "B, check on": "error",
    "B, check off": "wrong",
    "C, check on": "error",
    "C, check off": "right",
}


# --- transpose_without_sending


def transpose_without_sending__right_einsum(x, *, mesh):
    def turn(block):
        return jnp.einsum("rc->cr", block)

    mapped = jax.shard_map(turn, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))
    return mapped(x)


# out_specs with the letters exchanged are the transposition; the body has nothing to do (the mistake that the text warns of).
def transpose_without_sending__wrong_grid_only(x, *, mesh):
    def as_it_is(block):
        return block

    return jax.shard_map(as_it_is, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


# A block of r × c has to become one of c × r, and reshape gives it that shape.
def transpose_without_sending__wrong_reshape(x, *, mesh):
    def turn(block):
        rows, columns = block.shape
        return block.reshape(columns, rows)

    return jax.shard_map(turn, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


# A device must see the whole before it can transpose: gather both ways, transpose, and keep the own piece.
def transpose_without_sending__wrong_gathers(x, *, mesh):
    def turn(block):
        rows, columns = block.shape
        strip = jax.lax.all_gather(block, "x", axis=0, tiled=True)
        whole = jax.lax.all_gather(strip, "y", axis=1, tiled=True).T
        mine = jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("y") * columns, columns, axis=0)
        return jax.lax.dynamic_slice_in_dim(mine, jax.lax.axis_index("x") * rows, rows, axis=1)

    return jax.shard_map(turn, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y", "x"))(x)


# in_specs turn the grid at the door, so that each body turns its block and out_specs are those that x came with.
def transpose_without_sending__wrong_in_specs_turn(x, *, mesh):
    def turn(block):
        return block.T

    return jax.shard_map(turn, mesh=mesh, in_specs=P("y", "x"), out_specs=P("x", "y"))(x)


# --- block_sums


def block_sums__right_reshape(x, *, mesh):
    def one_row(block):
        sums = block.sum(axis=0)
        return sums.reshape(1, sums.shape[0])

    return jax.shard_map(one_row, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# The devices along y are the columns, so columns' sums are added up over y.
def block_sums__wrong_psum_over_y(x, *, mesh):
    def one_row(block):
        sums = block.sum(axis=0, keepdims=True)
        return jax.lax.psum(sums, "y")

    return jax.shard_map(one_row, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# A vector from each device, all in one line, and a reshape makes the rows; columns are what changes slowest, so y comes first.
def block_sums__wrong_line_then_rows(x, *, mesh):
    def sums(block):
        return block.sum(axis=0)

    in_line = jax.shard_map(sums, mesh=mesh, in_specs=P("x", "y"), out_specs=P(("y", "x")))(x)
    table = in_line.reshape(mesh.shape["x"], x.shape[1])
    return jax.lax.with_sharding_constraint(table, NamedSharding(mesh, P("x", "y")))


# A row for every device along x means that each device gets to see all those rows: stack them with a gather.
def block_sums__wrong_stacked_by_gather(x, *, mesh):
    def rows(block):
        return jax.lax.all_gather(block.sum(axis=0), "x")

    return jax.shard_map(rows, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)


# "Do not make the promise" means: turn the check off, and let out_specs be those of the columns.
def block_sums__wrong_check_off(x, *, mesh):
    def one_row(block):
        return block.sum(axis=0, keepdims=True)

    return jax.shard_map(one_row, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"), check_vma=False)(x)
