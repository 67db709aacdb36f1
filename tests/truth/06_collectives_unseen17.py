"""Answers to lesson 06, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # of part 11: `jax.lax.all_gather`, with `to=` in every version of JAX
)

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- distributed_transpose


def distributed_transpose__right_TURN_FIRST(x, *, mesh):
    """Each device turns its rows into columns first; then the rows of these are dealt out."""

    def on_device(rows):
        columns = rows.T  # (J, I / n): all rows of the transpose, some of its columns
        return jax.lax.all_to_all(columns, "x", split_axis=0, concat_axis=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Thinks, as in transpose_without_sending of lesson 05: the body turns its block, out_specs turn the grid, nothing is sent (and gets [J, I_X]).
def distributed_transpose__wrong_NOTHING_SENT(x, *, mesh):
    return jax.shard_map(lambda rows: rows.T, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# Thinks: split_axis is the dimension that is cut now, concat_axis the one that is to be cut; they are the other way round.
def distributed_transpose__wrong_SPLIT_AND_CONCAT_SWAPPED(x, *, mesh):
    def on_device(rows):
        columns = jax.lax.all_to_all(rows, "x", split_axis=0, concat_axis=1, tiled=True)
        return columns.T

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Thinks: every device needs something of everybody, so gather all rows and cut out the own ones of the transpose; forgets that n times too much is sent.
def distributed_transpose__wrong_GATHER_AND_CUT(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(rows):
        whole = jax.lax.all_gather(rows, "x", axis=0, tiled=True).T  # (J, I)
        length = whole.shape[0] // n
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * length, length, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Thinks: the pieces arrive in order of the devices, so joined along dimension 0 they only have to be given the right shape.
def distributed_transpose__wrong_RESHAPED(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(rows):
        columns = rows.T  # (J, I / n)
        pieces = jax.lax.all_to_all(columns, "x", split_axis=0, concat_axis=0, tiled=True)
        return pieces.reshape(columns.shape[0] // n, columns.shape[1] * n)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# ---- global_logsumexp


def global_logsumexp__right_OF_LOGSUMEXPS(x, *, mesh):
    """The logsumexp of the devices' own logsumexps, one number for a row in each of the two messages."""

    def on_device(block):
        own = jax.nn.logsumexp(block, axis=1)
        top = jax.lax.pmax(own, "x")
        return top + jnp.log(jax.lax.psum(jnp.exp(own - top), "x"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)


# Thinks: any number that all devices share will do, so one largest for all rows; a row far below it becomes log(0).
def global_logsumexp__wrong_ONE_LARGEST_FOR_ALL_ROWS(x, *, mesh):
    def on_device(block):
        largest = jax.lax.pmax(block.max(), "x")
        return largest + jnp.log(jax.lax.psum(jnp.exp(block - largest).sum(axis=1), "x"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)


# Thinks: each device boils its block down as far as it can, the logarithm included, and then the logarithms are added.
def global_logsumexp__wrong_LOG_BEFORE_THE_SUM(x, *, mesh):
    def on_device(block):
        largest = jax.lax.pmax(block.max(axis=1), "x")
        own = jnp.log(jnp.exp(block - largest[:, None]).sum(axis=1))
        return largest + jax.lax.psum(own, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)


# Thinks: "over all devices" means over both axes of the mesh; but along y the devices hold the same, and it is counted again.
def global_logsumexp__wrong_OVER_BOTH_AXES(x, *, mesh):
    def on_device(block):
        largest = jax.lax.pmax(block.max(axis=1), ("x", "y"))
        return largest + jnp.log(jax.lax.psum(jnp.exp(block - largest[:, None]).sum(axis=1), ("x", "y")))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)


# Thinks: the row has to be whole before its largest can come off; gathers the logits, and everything else is local.
def global_logsumexp__wrong_ROW_GATHERED(x, *, mesh):
    def on_device(block):
        row = all_gather(block, "x", axis=1, tiled=True, to="invarying")
        largest = row.max(axis=1, keepdims=True)
        return largest[:, 0] + jnp.log(jnp.exp(row - largest).sum(axis=1))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))(x)


# ---- psum_ref


def psum_ref__right_ONE_AFTER_THE_OTHER(blocks):
    total = np.zeros_like(blocks[0])
    for block in blocks:
        total = total + block
    return [total.copy() for _ in blocks]


# Thinks: psum is the sum of everything, over the devices and over what each holds.
def psum_ref__wrong_EVERYTHING(blocks):
    return [np.sum(blocks)] * len(blocks)


# Thinks: since all hold the same afterwards, the one sum is the answer; a list with one block for each device was asked for.
def psum_ref__wrong_ONE_BLOCK_ONLY(blocks):
    return np.sum(blocks, axis=0)


# Thinks of the ring: a device adds its own to what came from the devices before it, so each holds the sum up to itself (MPI_Scan).
def psum_ref__wrong_SUM_SO_FAR(blocks):
    return list(np.cumsum(blocks, axis=0))


# Thinks of MPI_Reduce: the sum is on device 0, the others keep what they had.
def psum_ref__wrong_ONLY_ON_DEVICE_0(blocks):
    return [np.sum(blocks, axis=0)] + [block for block in blocks[1:]]
