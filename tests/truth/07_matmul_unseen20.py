"""Answers to lesson 07, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ------------------------------------------------------------------ case1_out


def _product_of(pattern):
    """First dimension of A, last one of B."""
    a, b = pattern.split(" · ")
    rows = a[2:-1].split(", ")[0]
    columns = b[2:-1].split(", ")[1]
    return f"C[{rows}, {columns}]"


case1_out__right_from_the_pattern = {
    pattern: _product_of(pattern)
    for pattern in ("A[I, J] · B[J, K]", "A[I_X, J] · B[J, K]", "A[I, J] · B[J, K_Y]", "A[I_X, J] · B[J, K_Y]")
}

# No communication is needed, so no device lacks anything: C is whole everywhere.
case1_out__wrong_whole_everywhere = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I, K]",
}

# A row of C is made with all columns of B and a column with all rows of A, so B's cut goes to the rows and A's to the columns.
case1_out__wrong_swapped = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I, K_X]",
    "A[I, J] · B[J, K_Y]": "C[I_Y, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_Y, K_X]",
}

# With operands cut over both axes there are eight pieces of C, and they are cut as rows, over both axes.
case1_out__wrong_both_on_rows = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K_Y]",
    "A[I_X, J] · B[J, K_Y]": "C[I_XY, K]",
}

# If one operand is cut over an axis, the product is cut over that axis in each of its dimensions.
case1_out__wrong_cut_in_both_dimensions = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K_X]",
    "A[I, J] · B[J, K_Y]": "C[I_Y, K_Y]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K_Y]",
}


# --------------------------------------------------------- two_axis_scattered


def two_axis_scattered__right_untiled(a, b, *, mesh):
    """The columns of the product as n groups; the untiled scatter deals the groups out, and their dimension disappears."""
    n = mesh.shape["y"]

    def on_device(a, b):
        part = a @ b
        groups = part.reshape(part.shape[0], n, part.shape[1] // n)
        return jax.lax.psum_scatter(groups, "y", scatter_dimension=1, tiled=False)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# psum_scatter deals out rows, as in the example, and out_specs name y for the columns.
def two_axis_scattered__wrong_rows_dealt_out(a, b, *, mesh):
    def on_device(part_of_a, part_of_b):
        part = part_of_a @ part_of_b
        return jax.lax.psum_scatter(part, "y", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# First the sum, and then scatter the finished sum (adds n equal sums once more).
def two_axis_scattered__wrong_added_twice(a, b, *, mesh):
    def on_device(part_of_a, part_of_b):
        whole_rows = jax.lax.psum(part_of_a @ part_of_b, "y")
        return jax.lax.psum_scatter(whole_rows, "y", scatter_dimension=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# The psum of two_axis, and then each device cuts its own columns off, since slicing is free (twice the bytes).
def two_axis_scattered__wrong_sum_then_slice(a, b, *, mesh):
    def own_columns(c):
        width = c.shape[1] // mesh.shape["y"]
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("y") * width, width, axis=1)

    def on_device(part_of_a, part_of_b):
        return own_columns(jax.lax.psum(part_of_a @ part_of_b, "y"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# Device y only has to have columns y of C, so it multiplies its rows by those columns of its B, and nothing is sent.
def two_axis_scattered__wrong_never_added(a, b, *, mesh):
    def on_device(part_of_a, part_of_b):
        width = part_of_b.shape[1] // mesh.shape["y"]
        start = jax.lax.axis_index("y") * width
        columns = jax.lax.dynamic_slice_in_dim(part_of_b, start, width, axis=1)
        return part_of_a @ columns

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# ---------------------------------------------------------------------- case3


def case3__right_tensordot(a, b, *, mesh):
    cut_along_j = P(None, "x"), P("x")

    def on_device(*parts):
        return jax.lax.psum(jnp.tensordot(*parts, axes=1), ("x",))

    return jax.shard_map(on_device, mesh=mesh, in_specs=cut_along_j, out_specs=P(None, None))(a, b)


# C is to be whole on every device of the mesh, so the sum runs over all devices, both axes (y holds copies: counted twice).
def case3__wrong_over_all_devices(a, b, *, mesh):
    def on_device(part_of_a, part_of_b):
        return jax.lax.psum(part_of_a @ part_of_b, mesh.axis_names)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


# Every device needs the other parts: gather the products, one on top of the other, and add them up at home (n/2 times the bytes).
def case3__wrong_parts_gathered(a, b, *, mesh):
    def on_device(part_of_a, part_of_b):
        own = part_of_a @ part_of_b
        everyone = all_gather(own, "x", axis=0, tiled=False, to="invarying")
        return everyone.sum(axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)


# The blocks match, so the product of the blocks is C; the error about out_specs goes away when the check is off, as it offers.
def case3__wrong_check_off(a, b, *, mesh):
    product = jax.shard_map(
        jnp.matmul, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, None), check_vma=False
    )
    return product(a, b)


# Fewest bytes means psum_scatter, half of a psum; all rows of C are there once (but cut over x, not whole on every device).
def case3__wrong_left_cut(a, b, *, mesh):
    def on_device(part_of_a, part_of_b):
        return jax.lax.psum_scatter(part_of_a @ part_of_b, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)
