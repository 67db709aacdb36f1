"""Answers to lesson 07, second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh


def case2_gather__right_whole_a(a, b, *, mesh):
    def body(own_columns, b):
        whole = all_gather(own_columns, "x", axis=1, tiled=True, to="invarying")
        return jnp.einsum("ij,jk->ik", whole, b)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


def case2_gather__wrong_axis_0(a, b, *, mesh):
    """Joined one below the other, where A was cut by columns."""

    def body(a, b):
        return all_gather(a, "x", axis=0, tiled=True, to="invarying") @ b

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


def case2_gather__wrong_reshaped(a, b, *, mesh):
    """Stacked and then reshaped: all numbers, in the wrong order."""

    def body(a, b):
        whole = all_gather(a, "x", axis=0, tiled=False, to="invarying").reshape(a.shape[0], -1)
        return whole @ b

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


def case2_gather__wrong_part_of_sum(a, b, *, mesh):
    """Each device multiplies by its rows of B, and nobody adds: a part of the sum, claimed to be whole."""

    def body(a, b):
        return a @ jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * a.shape[1], a.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P(), check_vma=False)(a, b)


def case2_gather__wrong_over_y(a, b, *, mesh):
    """Gathers over the axis of the example."""

    def body(a, b):
        return all_gather(a, "y", axis=1, tiled=True, to="invarying") @ b

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


def case3_scatter_columns__right_transposed(a, b, *, mesh):
    """The transpose of the product, scattered by rows."""

    def body(a, b):
        turned = b.T @ a.T
        return jax.lax.psum_scatter(turned, "x", scatter_dimension=0, tiled=True).T

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


def case3_scatter_columns__wrong_rows(a, b, *, mesh):
    """Rows are scattered, and laid side by side."""

    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


def case3_scatter_columns__wrong_by_rows(a, b, *, mesh):
    """The exercise before: C cut by rows."""

    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


def case3_scatter_columns__wrong_side_by_side(a, b, *, mesh):
    """psum, and the whole sums side by side: n times as many columns."""
    body = lambda a, b: jax.lax.psum(a @ b, "x")
    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


def case3_scatter_columns__wrong_sum_then_cut(a, b, *, mesh):
    """Right numbers, at twice the bytes: an all-reduce, of which each keeps a part."""
    n = mesh.shape["x"]

    def body(a, b):
        whole = jax.lax.psum(a @ b, "x")
        width = whole.shape[1] // n
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


def two_axis__right_einsum(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum(jnp.einsum("ij,jk->ik", a, b), axis_name="y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))(a, b)


def two_axis__wrong_over_x(a, b, *, mesh):
    """Adds over the axis that cuts the rows of C."""
    body = lambda a, b: jax.lax.psum(a @ b, "x")
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


def two_axis__wrong_over_both(a, b, *, mesh):
    """Adds over both axes: different rows of C are added up."""
    body = lambda a, b: jax.lax.psum(a @ b, ("x", "y"))
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


def two_axis__wrong_scattered(a, b, *, mesh):
    """The second of the pair: C[I_X, K_Y]."""
    body = lambda a, b: jax.lax.psum_scatter(a @ b, "y", scatter_dimension=1, tiled=True)
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


def two_axis__wrong_unchecked(a, b, *, mesh):
    """No sum, and the check taken off: device 0's part of it."""
    body = lambda a, b: a @ b
    specs = P("x", "y"), P("y", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x", None), check_vma=False)(a, b)


name_the_case__right_j_first = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# J cut in both is taken for case 3, over whatever axes
name_the_case__wrong_different_axes = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 3,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# only A's J counts: cut in B alone is case 1
name_the_case__wrong_only_a = {
    "A[I, J] · B[J_Y, K]": 1,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# both cut, so nothing to send: 4 taken for 1; the whole K in the fifth taken for a missing part
name_the_case__wrong_same_axis = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 3,
    "A[I_Y, J] · B[J, K_Y]": 1,
    "A[I, J_X] · B[J_Y, K]": 2,
    "A[I_X, J] · B[J, K]": 2,
    "A[I, J_XY] · B[J_XY, K]": 3,
}

# any axis that comes twice is case 4
name_the_case__wrong_twice = {
    "A[I, J] · B[J_Y, K]": 2,
    "A[I_Y, J_X] · B[J_X, K]": 4,
    "A[I_Y, J] · B[J, K_Y]": 4,
    "A[I, J_X] · B[J_Y, K]": 3,
    "A[I_X, J] · B[J, K]": 1,
    "A[I, J_XY] · B[J_XY, K]": 4,
}
