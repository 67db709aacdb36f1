"""Answers to lesson 07, sixth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- block_matmul
def block_matmul__right_whole_and_cut(A, B):
    """The blocks of the product: C[i][k] for A[i][j] and B[j][k]."""
    whole = np.block(A) @ np.block(B)
    rows = np.cumsum([row[0].shape[0] for row in A])[:-1]
    columns = np.cumsum([block.shape[1] for block in B[0]])[:-1]
    return [np.split(band, columns, axis=1) for band in np.split(whole, rows, axis=0)]


# The blocks behave like numbers, so multiply them as numbers, with *.
def block_matmul__wrong_star(A, B):
    C = []
    for row in A:
        C.append([])
        for k in range(len(B[0])):
            C[-1].append(sum(row[j] * B[j][k] for j in range(len(B))))
    return C


# As many block columns as block rows: n is the number of blocks, as in the formula.
def block_matmul__wrong_square_grid(A, B):
    n = len(A)
    return [[sum(A[i][j] @ B[j][k] for j in range(n)) for k in range(n)] for i in range(n)]


# Put together, the blocks are matrices, and their product is the product.
def block_matmul__wrong_returns_matrix(A, B):
    return np.block(A) @ np.block(B)


# Block (i, k) pairs row i of A with row k of B, block by block, each B turned the right way by the @.
def block_matmul__wrong_row_with_row(A, B):
    result = []
    for i, row in enumerate(A):
        line = []
        for k in range(len(B[0])):
            total = 0
            for j, block in enumerate(row):
                total = total + block @ B[k][j]
            line.append(total)
        result.append(line)
    return result


# ---------------------------------------------------------------- case1_out
case1_out__right_letters_come_along = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K_Y]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K_Y]",
}

# A product of something cut and something whole is whole.
case1_out__wrong_whole_wins = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K_Y]",
}

# Each device has one block of eight, so C is cut eight ways: rows over both axes.
case1_out__wrong_both_on_rows = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K_Y]",
    "A[I_X, J] · B[J, K_Y]": "C[I_XY, K]",
}

# The layout of C is that of its first operand; where that is whole, of the second.
case1_out__wrong_first_operand_decides = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K_Y]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K]",
}

# X stands for rows and Y for columns of the mesh: going through the product turns them round, as in B's transpose.
case1_out__wrong_axes_swapped = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I_Y, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_Y, K_X]",
}


# ---------------------------------------------------------------- case4_gather_a
def case4_gather_a__right_stacked(a, b, *, mesh):
    """A[I_X, J] · B[J, K_X] → C[I, K_X], A gathered."""

    def on_device(rows, columns):
        blocks = jax.lax.all_gather(rows, "x")  # stacked: device, row, J
        return jnp.einsum("dij,jk->dik", blocks, columns).reshape(-1, columns.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


# Multiply first, it is less to send: then gather the products, one below the other.
def case4_gather_a__wrong_products_gathered(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.all_gather(a @ b, "x", axis=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


# Stack the rows along a new dimension beside I, and reshape to (I, J): all rows are there.
def case4_gather_a__wrong_interleaved(a, b, *, mesh):
    def on_device(rows, columns):
        stacked = jax.lax.all_gather(rows, "x", axis=1)
        everything = stacked.reshape(-1, rows.shape[1])
        return everything @ columns

    specs = dict(in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))
    return jax.shard_map(on_device, mesh=mesh, **specs)(a, b)


# "C is cut as the other one is": the other one than B, so B is gathered, and rows stay cut.
def case4_gather_a__wrong_gathers_b(a, b, *, mesh):
    body = lambda a, b: a @ jax.lax.all_gather(b, "x", axis=1, tiled=True)
    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# Both are cut over x, so both are gathered; and then each device keeps its columns of C.
def case4_gather_a__wrong_both_gathered(a, b, *, mesh):
    def on_device(a_block, b_block):
        whole_a = jax.lax.all_gather(a_block, "x", axis=0, tiled=True)
        whole_b = jax.lax.all_gather(b_block, "x", axis=1, tiled=True)
        c = whole_a @ whole_b
        width = b_block.shape[1]
        return jax.lax.dynamic_slice_in_dim(c, jax.lax.axis_index("x") * width, width, axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)
