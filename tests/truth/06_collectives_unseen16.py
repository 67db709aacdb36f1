"""Answers to lesson 06, sixteenth batch, written by a reader of the notebook only."""

from functools import partial

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- sum_and_split


def sum_and_split__right_scatter_then_drop(parts, *, mesh):
    def on_device(parts):
        return jax.lax.psum_scatter(parts, "x", scatter_dimension=1, tiled=True)[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None, None), out_specs=P("x", None))(parts)


# First the sum with a psum, then each device cuts its rows out of it; to cut is free, so this is as cheap.
def sum_and_split__wrong_psum_then_cut(parts, *, mesh):
    def on_device(parts):
        total = jax.lax.psum(parts[0], "x")
        rows = total.shape[0] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(total, jax.lax.axis_index("x") * rows, rows)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(parts)


# Scatter dimension 1 is I, because parts has the dimensions N, I, J; but parts[0] has lost its N.
def sum_and_split__wrong_counts_n_still(parts, *, mesh):
    def on_device(parts):
        return jax.lax.psum_scatter(parts[0], "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P(None, "x"))(parts)


# Axis 0 of parts is N, so parts.sum(axis=0) is already the sum over N, and each device keeps its rows.
def sum_and_split__wrong_sum_of_own_block(parts, *, mesh):
    def on_device(parts):
        total = parts.sum(axis=0)
        rows = total.shape[0] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(total, jax.lax.axis_index("x") * rows, rows)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(parts)


# As many summands as devices come together, so the scattered sum has to be divided by their number, as gradients are.
def sum_and_split__wrong_divided(parts, *, mesh):
    def on_device(parts):
        share = jax.lax.psum_scatter(parts[0], "x", scatter_dimension=0, tiled=True)
        return share / mesh.shape["x"]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(parts)


# ---------------------------------------------------------------- ppermute_ref


def ppermute_ref__right_came_from(blocks, perm):
    came_from = {destination: source for source, destination in perm}
    return [
        blocks[came_from[device]] if device in came_from else np.zeros_like(own) for device, own in enumerate(blocks)
    ]


# A device to which nobody sends goes on with what it has.
def ppermute_ref__wrong_keeps_own(blocks, perm):
    after = list(blocks)
    for source, destination in perm:
        after[destination] = blocks[source]
    return after


# A pair says first who gets something and then from whom.
def ppermute_ref__wrong_pair_turned(blocks, perm):
    after = [np.zeros_like(block) for block in blocks]
    for to, origin in perm:
        after[to] = blocks[origin]
    return after


# The pairs are carried out one after the other, on the same list; who gets nothing is set to zero at the end.
def ppermute_ref__wrong_in_place(blocks, perm):
    held = list(blocks)
    for source, destination in perm:
        held[destination] = held[source]
    receivers = {destination for _, destination in perm}
    return [held[d] if d in receivers else np.zeros_like(blocks[d]) for d in range(len(blocks))]


# A permutation is a shift round the ring, and the first pair says by how much.
def ppermute_ref__wrong_shift_of_first_pair(blocks, perm):
    n = len(blocks)
    source, destination = perm[0]
    k = destination - source
    return [blocks[(d - k) % n] for d in range(n)]


# ---------------------------------------------------------------- reshard_rows_to_cols


def reshard_rows_to_cols__right_partial(x, *, mesh):
    exchange = partial(jax.lax.all_to_all, axis_name="x", split_axis=1, concat_axis=0, tiled=True)
    return jax.shard_map(exchange, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# The example changes between the two layouts, so with x for y it is the answer.
def reshard_rows_to_cols__wrong_example_with_x(x, *, mesh):
    def exchange(block):
        return jax.lax.all_to_all(block, "x", split_axis=0, concat_axis=1, tiled=True)

    return jax.shard_map(exchange, mesh=mesh, in_specs=P(None, "x"), out_specs=P("x", None))(x)


# Whole columns are needed, so first all rows are brought together and then each device cuts its columns.
def reshard_rows_to_cols__wrong_gather_and_cut(x, *, mesh):
    def on_device(rows):
        whole = jax.lax.all_gather(rows, "x", axis=0, tiled=True)
        width = whole.shape[1] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# The pieces that arrive are columns, and columns are joined along dimension 1, which is also the one that is cut.
def reshard_rows_to_cols__wrong_joined_along_columns(x, *, mesh):
    def exchange(block):
        return jax.lax.all_to_all(block, "x", split_axis=1, concat_axis=1, tiled=True)

    return jax.shard_map(exchange, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# A block in n pieces is reshape(n, rows, columns / n): the shape of the pieces is right, so they are.
def reshard_rows_to_cols__wrong_pieces_by_reshape(x, *, mesh):
    n = mesh.shape["x"]

    def exchange(block):
        rows, columns = block.shape
        pieces = block.reshape(n, rows, columns // n)
        arrived = jax.lax.all_to_all(pieces, "x", split_axis=0, concat_axis=0)
        return arrived.reshape(n * rows, columns // n)

    return jax.shard_map(exchange, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)
