"""Answers to lesson 06, fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- logsumexp_gradient


def logsumexp_gradient__right_pulled_back(x, *, mesh):
    """The gradient of the sum, by a pull-back of ones through the vector of rows."""

    def of_block(block):
        largest = jax.lax.pmax(jnp.max(jax.lax.stop_gradient(block), axis=1, keepdims=True), "x")
        terms = jnp.exp(block - largest).sum(axis=1)
        return largest[:, 0] + jnp.log(jax.lax.psum(terms, "x"))

    rows = jax.shard_map(of_block, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(lambda x: jnp.vdot(rows(x), jnp.ones(x.shape[0], x.dtype)))(x)


# This student stops the gradient of the maximum that has been found, after the pmax.
def logsumexp_gradient__wrong_stopped_afterwards(x, *, mesh):
    def of_block(block):
        largest = jax.lax.stop_gradient(jax.lax.pmax(block.max(axis=1), "x"))
        return largest + jnp.log(jax.lax.psum(jnp.exp(block - largest[:, None]).sum(axis=1), "x"))

    rows = jax.shard_map(of_block, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(lambda x: rows(x).sum())(x)


# This student thinks that logs of parts may be added up: the psum stands outside of the log.
def logsumexp_gradient__wrong_logs_added(x, *, mesh):
    def of_block(block):
        largest = jax.lax.stop_gradient(block.max(axis=1))
        own = largest + jnp.log(jnp.exp(block - largest[:, None]).sum(axis=1))
        return jax.lax.psum(own, "x")

    rows = jax.shard_map(of_block, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(lambda x: rows(x).sum())(x)


# This student differentiates the mean of the rows, as one does with a loss, and not their sum.
def logsumexp_gradient__wrong_mean_of_rows(x, *, mesh):
    def of_block(block):
        largest = jax.lax.pmax(jax.lax.stop_gradient(block.max(axis=1)), "x")
        return largest + jnp.log(jax.lax.psum(jnp.exp(block - largest[:, None]).sum(axis=1), "x"))

    rows = jax.shard_map(of_block, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(lambda x: rows(x).mean())(x)


# This student gathers the rows, since a logsumexp needs all of a row: right numbers, and the whole matrix on the wire.
def logsumexp_gradient__wrong_rows_gathered(x, *, mesh):
    def of_block(block):
        whole = all_gather(block, "x", axis=1, tiled=True, to="invarying")
        return jax.nn.logsumexp(whole, axis=1)

    rows = jax.shard_map(of_block, mesh=mesh, in_specs=P(None, "x"), out_specs=P())
    return jax.grad(lambda x: rows(x).sum())(x)


# ---------------------------------------------------------------- reshard_rows_to_cols


def reshard_rows_to_cols__right_untiled(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        pieces = block.reshape(block.shape[0], n, -1)
        came = jax.lax.all_to_all(pieces, "x", split_axis=1, concat_axis=0)
        return came.reshape(-1, came.shape[-1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# This student took over the example with x for y and the specs turned round, but kept its two axes.
def reshard_rows_to_cols__wrong_axes_of_the_example(x, *, mesh):
    def on_device(block):
        return jax.lax.all_to_all(block, "x", split_axis=0, concat_axis=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# This student gathers all rows and keeps the own columns: right, but no all_to_all, and far more bytes.
def reshard_rows_to_cols__wrong_gathered_and_cut(x, *, mesh):
    def on_device(block):
        whole = jax.lax.all_gather(block, "x", axis=0, tiled=True)
        width = whole.shape[1] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# This student thinks that only the columns are concerned: cut by columns, joined by columns.
def reshard_rows_to_cols__wrong_columns_both(x, *, mesh):
    def on_device(block):
        return jax.lax.all_to_all(block, "x", split_axis=1, concat_axis=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x"))(x)


# This student gives the block the shape that it should have afterwards, and leaves the rest to the specs.
def reshard_rows_to_cols__wrong_reshaped_only(x, *, mesh):
    width = x.shape[1] // mesh.shape["x"]
    return jax.shard_map(
        lambda block: block.reshape(-1, width), mesh=mesh, in_specs=P("x", None), out_specs=P(None, "x")
    )(x)


# ---------------------------------------------------------------- safe_softmax


def safe_softmax__right_by_the_log(x, *, mesh):
    """exp(x − log Σ exp): one exponential more, no division."""

    def on_device(block):
        largest = jax.lax.pmax(block.max(axis=1, keepdims=True), "x")
        total = jax.lax.psum(jnp.exp(block - largest).sum(axis=1, keepdims=True), "x")
        return jnp.exp(block - largest - jnp.log(total))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


# This student subtracts the largest entry of the own block, and adds up terms that are scaled differently.
def safe_softmax__wrong_own_largest(x, *, mesh):
    def on_device(block):
        terms = jnp.exp(block - block.max(axis=1, keepdims=True))
        return terms / jax.lax.psum(terms.sum(axis=1, keepdims=True), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


# This student takes the softmax of each block and divides by the number of devices, so that rows add up to 1 over all.
def safe_softmax__wrong_divided_by_devices(x, *, mesh):
    def on_device(block):
        return jax.nn.softmax(block, axis=1) / mesh.shape["x"]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


# This student takes one largest entry of the whole matrix for all rows: fine in a row of like size, zeros elsewhere.
def safe_softmax__wrong_one_largest_for_all(x, *, mesh):
    def on_device(block):
        terms = jnp.exp(block - jax.lax.pmax(block.max(), "x"))
        return terms / jax.lax.psum(terms.sum(axis=1, keepdims=True), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)


# This student brings the rows together, takes the softmax there, and gives each device its columns back.
def safe_softmax__wrong_rows_gathered(x, *, mesh):
    def on_device(block):
        width = block.shape[1]
        rows = jax.nn.softmax(jax.lax.all_gather(block, "x", axis=1, tiled=True), axis=1)
        return jax.lax.dynamic_slice_in_dim(rows, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(x)
