"""Answers to lesson 07, twenty-second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import all_gather  # as the notebook's part 6 imports it

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- two_axis
def two_axis__right_einsum(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K]."""

    def rows(p, q):
        return jax.lax.psum(jnp.einsum("ij,jk->ik", p, q), "y")

    return jax.shard_map(rows, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))(a, b)


# Thought: the devices along y work on the same rows of C, so one takes their mean to make them agree.
def two_axis__wrong_mean(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K]."""

    def body(p, q):
        return jax.lax.pmean(p @ q, "y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# Thought: A is cut over two axes, so the sum has to run over both; rows of different devices get added.
def two_axis__wrong_sum_over_both(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K]."""

    def body(p, q):
        return jax.lax.psum(p @ q, ("x", "y"))

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))(a, b)


# Thought: ask for B whole and slice the matching rows, "slicing is free"; but in_specs gather B first, and that is sent.
def two_axis__wrong_b_by_in_specs(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K]."""

    def body(p, q):
        length = p.shape[1]
        mine = jax.lax.dynamic_slice_in_dim(q, jax.lax.axis_index("y") * length, length)
        return jax.lax.psum(p @ mine, "y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P()), out_specs=P("x", None))(a, b)


# Thought: "treat the axes one by one" means to undo both cuts: sum over y, then gather the rows over x; C is whole, not [I_X, K].
def two_axis__wrong_whole(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K]."""

    def body(p, q):
        rows = jax.lax.psum(p @ q, "y")
        return all_gather(rows, "x", axis=0, tiled=True, to="invarying")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P())(a, b)


# ---------------------------------------------------------------- block_matmul
def block_matmul__right_zip(A, B):
    """The blocks of the product: C[i][k] for A[i][j] and B[j][k]."""
    columns = list(zip(*B))
    return [[sum(a @ b for a, b in zip(row, column)) for column in columns] for row in A]


# Thought: "the blocks behave like numbers", so they are multiplied with *.
def block_matmul__wrong_star(A, B):
    """The blocks of the product: C[i][k] for A[i][j] and B[j][k]."""
    return [[sum(A[i][j] * B[j][k] for j in range(len(B))) for k in range(len(B[0]))] for i in range(len(A))]


# Thought: len(B) is how many blocks B has in each direction; right only where B's grid of blocks is square.
def block_matmul__wrong_square_grid(A, B):
    """The blocks of the product: C[i][k] for A[i][j] and B[j][k]."""
    n = len(B)
    return [[sum(A[i][j] @ B[j][k] for j in range(n)) for k in range(n)] for i in range(len(A))]


# Thought: put the matrices together and multiply; returns the product as one matrix, not its blocks.
def block_matmul__wrong_one_matrix(A, B):
    """The blocks of the product: C[i][k] for A[i][j] and B[j][k]."""
    return np.block(A) @ np.block(B)


# Thought: make the table of zeros by multiplying a list; but all its rows are one and the same list.
def block_matmul__wrong_same_row(A, B):
    """The blocks of the product: C[i][k] for A[i][j] and B[j][k]."""
    C = [[0] * len(B[0])] * len(A)
    for i in range(len(A)):
        for k in range(len(B[0])):
            for j in range(len(B)):
                C[i][k] = C[i][k] + A[i][j] @ B[j][k]
    return C


# ---------------------------------------------------------------- two_axis_scattered
def two_axis_scattered__right_turned(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K_Y]."""

    def turned(p, q):
        part = q.T @ p.T  # the part of C, transposed: its rows are columns of C
        return jax.lax.psum_scatter(part, "y", tiled=True).T

    return jax.shard_map(turned, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# Thought: the example scatters rows, so scatter rows and give them to both axes; values right, but C is cut [I_XY, K].
def two_axis_scattered__wrong_rows_over_both(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K_Y]."""

    def body(p, q):
        return jax.lax.psum_scatter(p @ q, "y", scatter_dimension=0, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P(("x", "y"), None))(a, b)


# Thought: add everything up, then each device slices its columns; right, but the whole all-reduce is sent, twice the bytes.
def two_axis_scattered__wrong_psum_then_slice(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K_Y]."""

    def body(p, q):
        c = jax.lax.psum(p @ q, "y")
        width = c.shape[1] // mesh.shape["y"]
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("y") * width, width, axis=1)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# Thought: two_axis is ready, and out_specs P("x", "y") will cut its columns; they put copies side by side instead.
def two_axis_scattered__wrong_out_specs_cut(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K_Y]."""

    def body(p, q):
        return jax.lax.psum(p @ q, "y")

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)


# Thought: untiled, with a dimension of my own as long as the axis; put last, it deals out every n-th column in place of neighbours.
def two_axis_scattered__wrong_every_nth_column(a, b, *, mesh):
    """A[I_X, J_Y] · B[J_Y, K] → C[I_X, K_Y]."""
    n = mesh.shape["y"]

    def body(p, q):
        part = p @ q
        return jax.lax.psum_scatter(part.reshape(part.shape[0], -1, n), "y", scatter_dimension=2)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", "y"))(a, b)
