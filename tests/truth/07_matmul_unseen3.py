"""Answers to lesson 07, third batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- find_the_mistake

find_the_mistake__right_all = {
    "gathered": "A",
    "replicated": 1,
    "axis_name": "an error",
    "who_holds": [2, 3],
    "computable": "C[0:2, 0:2]",
}

# On a 2 x 2 mesh y counts columns of the mesh, so the right columns are with devices 1 and 3.
find_the_mistake__wrong_mesh_columns = {**find_the_mistake__right_all, "who_holds": [1, 3]}

# Device 0 has two whole rows of A, so it can compute two whole rows of C.
find_the_mistake__wrong_rows = {**find_the_mistake__right_all, "computable": "C[0:2, 0:4]"}

# J is summed over, so both operands must be there along J; and there are two x places, so one device each: 1 alone holds columns 2 and 3 as x = 1.
find_the_mistake__wrong_both = {
    **find_the_mistake__right_all,
    "gathered": "A and B",
    "who_holds": [1],
}

# An array that nobody cuts is replicated, on all eight; and axis names are not case-sensitive.
find_the_mistake__wrong_everywhere = {
    **find_the_mistake__right_all,
    "replicated": 8,
    "axis_name": "a gather",
}

# ---------------------------------------------------------------- block_matmul


def block_matmul__right_columns(A, B):
    def inner(row, column):
        total = row[0] @ column[0]
        for a, b in list(zip(row, column))[1:]:
            total = total + a @ b
        return total

    columns = list(zip(*B))
    return [[inner(row, column) for column in columns] for row in A]


# Blocks behave like numbers, so I multiply them with *.
def block_matmul__wrong_star(A, B):
    return [[sum(A[i][j] * B[j][k] for j in range(len(B))) for k in range(len(B[0]))] for i in range(len(A))]


# B[k][j]: I went along the rows of B instead of down its columns.
def block_matmul__wrong_rows_of_b(A, B):
    n = len(A)
    return [[sum(A[i][j] @ B[k][j] for j in range(n)) for k in range(n)] for i in range(n)]


# A row of blocks of C has as many sums as there are rows in A: all three ranges len(A).
def block_matmul__wrong_square(A, B):
    n = len(A)
    return [[sum(A[i][j] @ B[j][k] for j in range(n)) for k in range(n)] for i in range(n)]


# The product of the assembled matrices is the answer.
def block_matmul__wrong_whole(A, B):
    return np.block(A) @ np.block(B)


# ---------------------------------------------------------------- case3_scatter_rows


def case3_scatter_rows__right_untiled(a, b, *, mesh):
    n = mesh.shape["x"]

    def body(a, b):
        part = a @ b
        stacked = part.reshape(n, part.shape[0] // n, part.shape[1])
        return jax.lax.psum_scatter(stacked, "x", scatter_dimension=0, tiled=False)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Everybody gets the sum, then keeps its own rows.
def case3_scatter_rows__wrong_psum_and_cut(a, b, *, mesh):
    def body(a, b):
        whole = jax.lax.psum(a @ b, "x")
        rows = whole.shape[0] // jax.lax.axis_size("x")
        return jax.lax.dynamic_slice_in_dim(whole, jax.lax.axis_index("x") * rows, rows, axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# The rows of C are the first dimension that is left once A's cut dimension is gone: scatter_dimension=1, and x stands for the rows.
def case3_scatter_rows__wrong_dimension(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "x", scatter_dimension=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# I copied the example of the lesson, and changed the specs to x: the scatter is still over y.
def case3_scatter_rows__wrong_over_y(a, b, *, mesh):
    def body(a, b):
        return jax.lax.psum_scatter(a @ b, "y", scatter_dimension=0, tiled=True)

    return jax.shard_map(
        body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None), check_vma=False
    )(a, b)


# A is turned to rows by an all_to_all and B gathered: then everybody multiplies its rows by itself and nothing has to be summed.
def case3_scatter_rows__wrong_gathered(a, b, *, mesh):
    def body(a, b):
        rows = jax.lax.all_to_all(a, "x", split_axis=0, concat_axis=1, tiled=True)
        whole_b = jax.lax.all_gather(b, "x", axis=0, tiled=True)
        return rows @ whole_b

    return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)
