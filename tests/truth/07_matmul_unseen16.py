"""Answers to lesson 07, sixteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- find_the_mistake

find_the_mistake__right_looked = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}

# A device has to hold all of both operands before it can multiply anything.
find_the_mistake__wrong_needs_everything = {
    "gathered": "A and B",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "nothing",
}

# An array that was not cut is on all devices, as with P().
find_the_mistake__wrong_uncut_is_everywhere = {
    "gathered": "A",
    "replicated": 8,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}

# In the picture of the 2 x 2 mesh x runs to the right, so the second half of the columns is with the devices on the right.
find_the_mistake__wrong_x_runs_right = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [1, 3],
    "computable": "C[0:2, 0:2]",
}

# J is whole, so a device that has the rows 0 and 1 of A can compute the rows 0 and 1 of C.
find_the_mistake__wrong_rows_of_a_are_rows_of_c = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:4]",
}


# ---------------------------------------------------------------- name_the_case

name_the_case__right_j_first = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# J is cut in both operands, so each device has a part of the sum, whichever the axes are.
name_the_case__wrong_cut_in_both = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 3,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# Where J is whole in both, every device can multiply what it has, and that is case 1.
name_the_case__wrong_whole_j_is_case_1 = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 1,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# Case 4 is when the same axis stands below both operands, whatever letter it stands below.
name_the_case__wrong_axis_twice_is_case_4 = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 4,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 4,
}

# Case 2 is one operand cut and the other whole, so the cut one has to be gathered.
name_the_case__wrong_one_cut_is_case_2 = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 2,
    "A[I, J_XY] · B[J_XY, K]": 3,
}


# ---------------------------------------------------------------- case3_scatter_columns


def case3_scatter_columns__right_transposed(a, b, *, mesh):
    def on_device(a, b):
        # the rows of the transpose are the columns of C
        return jax.lax.psum_scatter(b.T @ a.T, "x", tiled=True).T

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# The scattered dimension is the one of the example, and the out_specs then say that it is the columns.
def case3_scatter_columns__wrong_rows_scattered(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# The sum is the psum of case3, and from it every device cuts its own columns without sending.
def case3_scatter_columns__wrong_psum_then_columns(a, b, *, mesh):
    def on_device(a, b):
        c = jax.lax.psum(a @ b, "x")
        width = c.shape[1] // mesh.shape["x"]
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# Columns of C come from columns of B, so with in_specs that cut B by columns it is case 1 and no collective is written.
def case3_scatter_columns__wrong_in_specs_move(a, b, *, mesh):
    return jax.shard_map(jnp.matmul, mesh=mesh, in_specs=(P(), P(None, "x")), out_specs=P(None, "x"))(a, b)


# If every device keeps only its own columns, there is nothing to add any more: each computes those columns and is done.
def case3_scatter_columns__wrong_no_sum(a, b, *, mesh):
    def on_device(a, b):
        width = b.shape[1] // mesh.shape["x"]
        mine = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * width, width, axis=1)
        return a @ mine

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)
