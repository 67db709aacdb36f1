"""Answers to lesson 06, fourteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- gather_columns


def gather_columns__right_stacked_in_second_place(a, *, mesh):
    def whole(columns):
        rows = columns.shape[0]
        stacked = all_gather(columns, "x", axis=1, to="invarying")  # [row, device, column of its block]
        return stacked.reshape(rows, stacked.shape[1] * stacked.shape[2])

    return jax.shard_map(whole, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, None))(a)


# Stacked or tiled is a matter of shape only, and the shape comes right with a reshape (the text warns of it).
def gather_columns__wrong_stack_and_reshape(a, *, mesh):
    def whole(columns):
        stacked = all_gather(columns, "x", to="invarying")
        return stacked.reshape(columns.shape[0], -1)

    return jax.shard_map(whole, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, None))(a)


# A sum is one value for all by its type, so write the block into zeros and add up; that sends no more than a gather does.
def gather_columns__wrong_sum_of_padded(a, *, mesh):
    n = mesh.shape["x"]

    def whole(columns):
        width = columns.shape[1]
        owner = jnp.arange(n * width) // width
        mine = owner == jax.lax.axis_index("x")
        padded = jnp.where(mine[None, :], jnp.tile(columns, (1, n)), 0)
        return jax.lax.psum(padded, "x")

    return jax.shard_map(whole, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, None))(a)


# The example with x for y and nothing else changed: rows come in, rows are gathered, and the whole is the whole.
def gather_columns__wrong_rows_come_in(a, *, mesh):
    def whole(rows):
        return all_gather(rows, "x", axis=0, tiled=True, to="invarying")

    return jax.shard_map(whole, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None))(a)


# JAX says that the gathered value varies over x and out_specs do not name it; so they have to name it.
def gather_columns__wrong_named_in_out_specs(a, *, mesh):
    def whole(columns):
        return jax.lax.all_gather(columns, "x", axis=1, tiled=True)

    return jax.shard_map(whole, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(a)


# --- distributed_transpose


def distributed_transpose__right_turn_first(x, *, mesh):
    def body(rows):
        turned = rows.T  # all J, and the columns of the transpose that are mine
        return jax.lax.all_to_all(turned, "x", split_axis=0, concat_axis=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# As in lesson 05: the body turns its block, out_specs turn the grid, and nothing is sent; rows that were cut are columns that are cut.
def distributed_transpose__wrong_nothing_sent(x, *, mesh):
    def body(rows):
        return rows.T

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# The all_to_all has already transposed ("with one number in a piece, all_to_all transposes"); only the shape is left to be put right.
def distributed_transpose__wrong_reshape(x, *, mesh):
    def body(rows):
        columns = jax.lax.all_to_all(rows, "x", split_axis=1, concat_axis=0, tiled=True)
        length, width = columns.shape
        return columns.reshape(width, length)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# A row of the transpose needs an entry of every row of X, so every device needs all of X; then it keeps its share.
def distributed_transpose__wrong_gather_and_cut(x, *, mesh):
    n = mesh.shape["x"]

    def body(rows):
        whole = jax.lax.all_gather(rows, "x", axis=0, tiled=True).T
        length = whole.shape[0] // n
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * length, length, axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# With ppermutes: I send to the device k further, so what arrives in that turn is its block too, and belongs at its place.
def distributed_transpose__wrong_filed_under_receiver(x, *, mesh):
    n = mesh.shape["x"]

    def body(rows):
        me = jax.lax.axis_index("x")
        pieces = jnp.stack(jnp.split(rows.T, n, axis=0))  # piece d goes to device d
        arrived = pieces
        for k in range(1, n):
            pairs = [(d, (d + k) % n) for d in range(n)]
            other = (me + k) % n
            arrived = arrived.at[other].set(jax.lax.ppermute(pieces[other], "x", pairs))
        return jnp.moveaxis(arrived, 0, 1).reshape(pieces.shape[1], -1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# --- global_logsumexp


def global_logsumexp__right_of_local_ones(x, *, mesh):
    def body(block):
        own = jax.nn.logsumexp(block, axis=1)  # one number for each row says all about this block
        top = jax.lax.pmax(own, "x")
        return top + jnp.log(jax.lax.psum(jnp.exp(own - top), "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)


# Each device takes off its own largest entry, so that nothing overflows; the largest of all is added back at the end (the text warns of it).
def global_logsumexp__wrong_own_largest(x, *, mesh):
    def body(block):
        own = block.max(axis=1)
        total = jax.lax.psum(jnp.exp(block - own[:, None]).sum(axis=1), "x")
        return jax.lax.pmax(own, "x") + jnp.log(total)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)


# The number that is taken off may be any, as long as all devices use the same: the largest of the whole matrix will do.
def global_logsumexp__wrong_largest_of_matrix(x, *, mesh):
    def body(block):
        largest = jax.lax.pmax(block.max(), "x")
        terms = jnp.exp(block - largest).sum(axis=1)
        return largest + jnp.log(jax.lax.psum(terms, "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)


# The result is wanted on every device, so every device along x and along y has to take part in the sum.
def global_logsumexp__wrong_sum_over_both(x, *, mesh):
    def body(block):
        largest = jax.lax.pmax(block.max(axis=1), "x")
        terms = jnp.exp(block - largest[:, None]).sum(axis=1)
        return largest + jnp.log(jax.lax.psum(terms, ("x", "y")))

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)


# The largest has to be that of the row, so bring the whole row to everybody and do it as on one device.
def global_logsumexp__wrong_gathered_rows(x, *, mesh):
    def body(block):
        rows = all_gather(block, "x", axis=1, tiled=True, to="invarying")
        largest = rows.max(axis=1)
        return largest + jnp.log(jnp.exp(rows - largest[:, None]).sum(axis=1))

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)
