"""Answers to lesson 06, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# -------------------------------------------------------------- all_to_all_ref


def all_to_all_ref__right_table(blocks, split_axis, concat_axis):
    table = np.stack([np.split(block, len(blocks), axis=split_axis) for block in blocks])  # [from, to, piece...]
    return [np.concatenate(list(column), axis=concat_axis) for column in table.swapaxes(0, 1)]


# "split" and "concat" taken as what the *array* is afterwards: cut along concat_axis, joined along split_axis.
def all_to_all_ref__wrong_exchanged(blocks, split_axis, concat_axis):
    n = len(blocks)
    pieces = [np.split(block, n, axis=concat_axis) for block in blocks]
    return [np.concatenate([pieces[s][d] for s in range(n)], axis=split_axis) for d in range(n)]


# It is only another cut of the whole array: join all blocks, and cut again (for split_axis == concat_axis nothing moves).
def all_to_all_ref__wrong_recut(blocks, split_axis, concat_axis):
    whole = np.concatenate(blocks, axis=concat_axis)
    return np.split(whole, len(blocks), axis=split_axis)


# The pieces that arrive are stacked along concat_axis, one row for each device they came from, as a gather's are.
def all_to_all_ref__wrong_stacked(blocks, split_axis, concat_axis):
    pieces = [np.split(block, len(blocks), axis=split_axis) for block in blocks]
    return [np.stack(arrived, axis=concat_axis) for arrived in zip(*pieces)]


# A device begins with its own piece and appends those of the next devices, in the order of their arrival.
def all_to_all_ref__wrong_arrival(blocks, split_axis, concat_axis):
    n = len(blocks)
    pieces = [np.split(block, n, axis=split_axis) for block in blocks]
    return [np.concatenate([pieces[(d + k) % n][d] for k in range(n)], axis=concat_axis) for d in range(n)]


# ---------------------------------------------------------- logsumexp_gradient


def logsumexp_gradient__right_scalar(x, *, mesh):
    def summed(block):  # Σ over the rows is taken on the devices: it is the same number on all
        top = jax.lax.pmax(jax.lax.stop_gradient(block).max(axis=1, keepdims=True), "x")
        z = jax.lax.psum(jnp.exp(block - top).sum(axis=1, keepdims=True), "x")
        return (top + jnp.log(z)).sum()

    return jax.grad(jax.shard_map(summed, mesh=mesh, in_specs=P(None, "x"), out_specs=P()))(x)


# The maximum is what must have no derivative, so the stop_gradient stands around the pmax.
def logsumexp_gradient__wrong_outside(x, *, mesh):
    def body(x):
        top = jax.lax.stop_gradient(jax.lax.pmax(x.max(axis=1), "x"))
        return top + jnp.log(jax.lax.psum(jnp.exp(x - top[:, None]).sum(axis=1), "x"))

    lse = jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(lambda x: lse(x).sum())(x)


# Everything is added up at the end anyway, so let each device do its own log Σ exp, and let the outer sum go over the devices too.
def logsumexp_gradient__wrong_local(x, *, mesh):
    def body(x):
        top = jax.lax.stop_gradient(x.max(axis=1, keepdims=True))
        return top + jnp.log(jnp.exp(x - top).sum(axis=1, keepdims=True))

    lse = jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))
    return jax.grad(lambda x: lse(x).sum())(x)


# The vector of length I is on every device along x, so out_specs name x; then .sum() adds up every device's copy.
def logsumexp_gradient__wrong_copies(x, *, mesh):
    def body(x):
        top = jax.lax.pmax(jax.lax.stop_gradient(x.max(axis=1)), "x")
        return top + jnp.log(jax.lax.psum(jnp.exp(x - top[:, None]).sum(axis=1), "x"))

    lse = jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P("x"))
    return jax.grad(lambda x: lse(x).sum())(x)


# The maximum has no influence, so it need not be added again, nor does it matter along which axis it is taken (0: it fits without [:, None]).
def logsumexp_gradient__wrong_columns(x, *, mesh):
    def body(x):
        top = jax.lax.pmax(jax.lax.stop_gradient(x.max(axis=0)), "x")
        return jnp.log(jax.lax.psum(jnp.exp(x - top).sum(axis=1), "x"))

    lse = jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(lambda x: lse(x).sum())(x)


# -------------------------------------------------------------- gather_columns


def gather_columns__right_transposed(a, *, mesh):
    body = lambda block: all_gather(block.T, "x", axis=0, tiled=True, to="invarying").T
    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, None))(a)


# All numbers are there after the gather, so a reshape to I rows makes the matrix.
def gather_columns__wrong_reshape(a, *, mesh):
    def body(block):
        stacked = all_gather(block, "x", axis=0, tiled=False, to="invarying")  # (n, I, J/n)
        return stacked.reshape(block.shape[0], -1)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, None))(a)


# A is an array with columns over x and stays one: the same spec in and out, the gather does the rest.
def gather_columns__wrong_same_spec(a, *, mesh):
    body = lambda block: jax.lax.all_gather(block, "x", axis=1, tiled=True)
    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(a)


# Each device writes its columns into zeros, and a psum, which makes a value the same for all, puts them together (twice the bytes).
def gather_columns__wrong_zeros(a, *, mesh):
    def body(block):
        rows, width = block.shape
        start = jax.lax.axis_index("x") * width
        whole = jnp.zeros((rows, width * mesh.shape["x"]), block.dtype)
        return jax.lax.psum(jax.lax.dynamic_update_slice_in_dim(whole, block, start, 1), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(a)


# The example gathers rows; so let in_specs cut A by rows too: it is whole afterwards, however it was cut before.
def gather_columns__wrong_by_rows(a, *, mesh):
    body = lambda rows: all_gather(rows, "x", axis=0, tiled=True, to="invarying")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None))(a)
