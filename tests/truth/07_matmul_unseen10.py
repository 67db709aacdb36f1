"""Answers to lesson 07, tenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- case3_scatter_columns


def case3_scatter_columns__right_turned(a, b, *, mesh):
    def on_device(a, b):
        turned = b.T @ a.T  # a part of the sum for all of C transposed
        return jax.lax.psum_scatter(turned, "x", scatter_dimension=0, tiled=True).T

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# scatter_dimension is as in the example; which dimension ends up cut is what out_specs decide.
def case3_scatter_columns__wrong_rows(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# First C must be whole, and then each device keeps its columns, since cutting is free (right values, twice the bytes).
def case3_scatter_columns__wrong_allreduce(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        c = jax.lax.psum(a @ b, "x")
        width = c.shape[1] // n
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# A device needs only its own columns of C, so it multiplies by its own columns of B, and a psum adds up the small parts.
def case3_scatter_columns__wrong_owncolumns(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        width = b.shape[1] // n
        mine = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * width, width, axis=1)
        return jax.lax.psum(a @ mine, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# The product is linear, so the sum and the scatter may be done on B, before it, where the array is smaller.
def case3_scatter_columns__wrong_before(a, b, *, mesh):
    def on_device(a, b):
        columns = jax.lax.psum_scatter(b, "x", scatter_dimension=1, tiled=True)
        return a @ columns

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# ---- case4_gather_b


def case4_gather_b__right_einsum(a, b, *, mesh):
    def on_device(a, b):
        stacked = jax.lax.all_gather(b, "x")  # (n, J, K/n)
        return jnp.einsum("ij,njk->ink", a, stacked).reshape(a.shape[0], -1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# Stacked blocks have all the numbers of B; a reshape to J rows makes B of them.
def case4_gather_b__wrong_reshaped(a, b, *, mesh):
    def on_device(a, b):
        whole = jax.lax.all_gather(b, "x").reshape(b.shape[0], -1)
        return a @ whole

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# "B gathered" means that B's cut is the one which stays in the result, so A has to be brought together.
def case4_gather_b__wrong_othercut(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


# Every device has one block of C, and the blocks that it lacks in its rows are with the others: gather the products.
def case4_gather_b__wrong_products(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.all_gather(a @ b, "x", axis=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# Both want x, so both are gathered, and each device keeps its rows of the whole product (right values, A is sent for nothing).
def case4_gather_b__wrong_both(a, b, *, mesh):
    def on_device(a, b):
        rows = a.shape[0]
        whole_a = jax.lax.all_gather(a, "x", axis=0, tiled=True)
        whole_b = jax.lax.all_gather(b, "x", axis=1, tiled=True)
        return jax.lax.dynamic_slice_in_dim(whole_a @ whole_b, jax.lax.axis_index("x") * rows, rows, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# ---- two_axis_scattered


def two_axis_scattered__right_untiled(a, b, *, mesh):
    n = mesh.shape["y"]

    def on_device(a, b):
        part = a @ b
        pieces = part.reshape(part.shape[0], n, -1)  # a dimension exactly as long as y, which the scatter takes away
        return jax.lax.psum_scatter(pieces, "y", scatter_dimension=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# It is case3_scatter_columns with one more entry in the specs, so the call can stay as it was, over x.
def two_axis_scattered__wrong_copied(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# A psum makes the sum whole, and out_specs with a y for the columns cut it.
def two_axis_scattered__wrong_outspecscut(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.psum(a @ b, "y")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# A is cut over x and y, so a device's product lacks the parts of both: add over x first, then add and deal out over y.
def two_axis_scattered__wrong_bothaxes(a, b, *, mesh):
    def on_device(a, b):
        over_x = jax.lax.psum(a @ b, "x")
        return jax.lax.psum_scatter(over_x, "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# Deal out rows, as the example did; the rows are then cut over both axes, and that is C over X and Y too.
def two_axis_scattered__wrong_rowstwice(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P(("x", "y"), None))(
        a, b
    )
