"""Answers to lesson 06, tenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- which_collective
# NOT WRITTEN: the puzzles A to F are not in the notebook's text. They appear only when its cell calls
# grader.lessons.collectives.questions.puzzles, and this student may neither run cells nor open the grader.


# ---- distributed_transpose


def distributed_transpose__right_turnfirst(x, *, mesh):
    def on_device(rows):
        turned = rows.T  # (J, I/n)
        return jax.lax.all_to_all(turned, "x", split_axis=0, concat_axis=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# As in lesson 05: each device turns its block, and out_specs turn the grid, so nothing needs to be sent.
def distributed_transpose__wrong_nosend(x, *, mesh):
    return jax.shard_map(lambda rows: rows.T, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# After the exchange a block has shape (I, J/n) and must have (J/n, I): a reshape gives it that shape.
def distributed_transpose__wrong_reshape(x, *, mesh):
    def on_device(rows):
        columns = jax.lax.all_to_all(rows, "x", split_axis=1, concat_axis=0, tiled=True)
        return columns.reshape(columns.shape[1], columns.shape[0])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# all_to_all is the transpose (part 5 says so), so after it nobody needs to turn anything.
def distributed_transpose__wrong_noturn(x, *, mesh):
    def on_device(rows):
        return jax.lax.all_to_all(rows, "x", split_axis=1, concat_axis=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# A row of the transpose has entries from all devices, so everybody must gather X and cut its rows out of the transpose (right values, n times the bytes).
def distributed_transpose__wrong_gathered(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(rows):
        turned = jax.lax.all_gather(rows, "x", axis=0, tiled=True).T
        mine = turned.shape[0] // n
        return jax.lax.dynamic_slice_in_dim(turned, jax.lax.axis_index("x") * mine, mine, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# ---- logsumexp_gradient


def logsumexp_gradient__right_suminside(x, *, mesh):
    def on_device(block):
        largest = jax.lax.pmax(jax.lax.stop_gradient(block).max(axis=1, keepdims=True), "x")
        total = jax.lax.psum(jnp.exp(block - largest).sum(axis=1, keepdims=True), "x")
        return (largest + jnp.log(total)).sum()

    loss = jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(loss)(x)


# stop_gradient goes around the finished maximum, like .detach() on a result.
def logsumexp_gradient__wrong_detach(x, *, mesh):
    def on_device(block):
        largest = jax.lax.stop_gradient(jax.lax.pmax(block.max(axis=1), "x"))
        total = jax.lax.psum(jnp.exp(block - largest[:, None]).sum(axis=1), "x")
        return largest + jnp.log(total)

    rows = jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))
    return jax.grad(lambda x: rows(x).sum())(x)


# The shift is only there against overflow, so each device may subtract its own maximum, and the largest of all is added back.
def logsumexp_gradient__wrong_ownshift(x, *, mesh):
    def on_device(block):
        own = jax.lax.stop_gradient(block.max(axis=1))
        total = jax.lax.psum(jnp.exp(block - own[:, None]).sum(axis=1), "x")
        return jax.lax.pmax(own, "x") + jnp.log(total)

    rows = jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))
    return jax.grad(lambda x: rows(x).sum())(x)


# A loss is averaged over its rows, and any scalar will do for jax.grad.
def logsumexp_gradient__wrong_mean(x, *, mesh):
    def on_device(block):
        largest = jax.lax.pmax(jax.lax.stop_gradient(block.max(axis=1)), "x")
        total = jax.lax.psum(jnp.exp(block - largest[:, None]).sum(axis=1), "x")
        return largest + jnp.log(total)

    rows = jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None))
    return jax.grad(lambda x: rows(x).mean())(x)


# Each device takes the log Σ exp of its part of the row, and the sum outside adds over the devices anyway.
def logsumexp_gradient__wrong_sumoflogs(x, *, mesh):
    def on_device(block):
        return jax.nn.logsumexp(block, axis=1)

    rows = jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P("x"))
    return jax.grad(lambda x: rows(x).sum())(x)
