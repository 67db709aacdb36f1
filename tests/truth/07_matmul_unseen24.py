"""Answers to lesson 07, twenty-fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- case3_layer


def case3_layer__right_biasonce(a, b, bias, *, mesh):
    def body(a, b, bias):
        mine = jnp.where(jax.lax.axis_index("x") == 0, bias, jnp.zeros_like(bias))
        return jnp.maximum(jax.lax.psum(a @ b + mine, "x"), 0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# Thought: bias belongs to the product, and the sum over x and then relu come after both.
def case3_layer__wrong_biasearly(a, b, bias, *, mesh):
    def body(a, b, bias):
        return jax.nn.relu(jax.lax.psum(a @ b + bias, "x"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P(None)), out_specs=P())(a, b, bias)


# Thought: each device finishes its part with a relu, the bias counts once and so comes after the sum.
def case3_layer__wrong_reluofparts(a, b, bias, *, mesh):
    def body(a, b, bias):
        part = jax.nn.relu(a @ b)
        return jax.nn.relu(jax.lax.psum(part, "x") + bias)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# Thought: every device adds the bias, so take pmean for psum, then it counts once.
def case3_layer__wrong_pmean(a, b, bias, *, mesh):
    layer = lambda a, b, bias: jax.nn.relu(jax.lax.pmean(a @ b + bias, "x"))
    return jax.shard_map(layer, mesh=mesh, in_specs=(P(None, "x"), P("x"), P()), out_specs=P(None, None))(a, b, bias)


# Thought: relu as soon as C is whole, and the bias last since it counts only once.
def case3_layer__wrong_biaslast(a, b, bias, *, mesh):
    def body(a, b, bias):
        c = jax.lax.psum(a @ b, "x")
        return jax.nn.relu(c) + bias

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None), P()), out_specs=P())(a, b, bias)


# ---- two_axis


def two_axis__right_einsum(a, b, *, mesh):
    def body(rows, cols):
        return jax.lax.psum(jnp.einsum("ij,jk->ik", rows, cols), axis_name="y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))(a, b)


# Thought: two axes cut the operands, so the sum goes over both.
def two_axis__wrong_sumoverboth(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum(a @ b, ("x", "y"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# Thought: the devices along y have different values for the same rows, and an average makes them agree.
def two_axis__wrong_mean(a, b, *, mesh):
    return jax.shard_map(
        lambda a, b: jax.lax.pmean(a @ b, "y"), mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None)
    )(a, b)


# Thought: after the sum the rows have to be brought together too, C is to be complete.
def two_axis__wrong_wholec(a, b, *, mesh):
    def body(a, b):
        c = jax.lax.psum(a @ b, "y")
        return all_gather(c, "x", axis=0, tiled=True, to="invarying")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P(None, None))(a, b)


# Thought: the blocks match along J, so each device has its rows of C; the error is only about types, so the check goes off.
def two_axis__wrong_checkoff(a, b, *, mesh):
    product = jax.shard_map(
        jnp.matmul, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None), check_vma=False
    )
    return product(a, b)


# ---- two_axis_scattered


def two_axis_scattered__right_einsum(a, b, *, mesh):
    def body(a, b):
        part = jnp.einsum("ij,jk->ik", a, b)
        return jax.lax.psum_scatter(part, "y", scatter_dimension=part.ndim - 1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x", "y"))(a, b)


# Thought: the example scatters rows with scatter_dimension=0, only the specs change here.
def two_axis_scattered__wrong_rows(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# Thought: case3_scatter_columns as it was, with x in the collective, and only the specs get one more entry.
def two_axis_scattered__wrong_overx(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# Thought: I keep only my columns of C, so multiply by only these columns of B and sum that; it is shorter to send.
def two_axis_scattered__wrong_cutfirst(a, b, *, mesh):
    def body(a, b):
        width = b.shape[1] // mesh.shape["y"]
        mine = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("y") * width, width, axis=1)
        return jax.lax.psum(a @ mine, "y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# Thought: sum over y, and out_specs cut the columns of the sum over y.
def two_axis_scattered__wrong_outspecscut(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum(a @ b, "y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)
