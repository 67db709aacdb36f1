"""Answers to lesson 07, seventeenth batch, written by a reader of the notebook only."""

from functools import reduce  # used by an answer, not by the notebook

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- block_matmul


def block_matmul__right_ROWS_AGAINST_COLUMNS(A, B):
    """The blocks of the product: each row of blocks of A against each column of blocks of B."""
    columns = list(zip(*B))
    return [[reduce(np.add, map(np.matmul, row, column)) for column in columns] for row in A]


# Thinks: "blocks behave like numbers", so they are multiplied with *.
def block_matmul__wrong_ENTRY_BY_ENTRY(A, B):
    return [[sum(A[i][j] * B[j][k] for j in range(len(B))) for k in range(len(B[0]))] for i in range(len(A))]


# Takes row i of A against row k of B instead of column k.
def block_matmul__wrong_ROWS_OF_B(A, B):
    return [[sum(a @ b for a, b in zip(A[i], B[k])) for k in range(len(B))] for i in range(len(A))]


# Thinks: a grid of blocks is square, as in the picture, so one number n serves for i, j and k.
def block_matmul__wrong_SQUARE_GRID(A, B):
    n = len(A)
    return [[sum(A[i][j] @ B[j][k] for j in range(n)) for k in range(n)] for i in range(n)]


# Thinks: the product is what counts; joins the blocks, multiplies, and returns one matrix instead of a list of lists of blocks.
def block_matmul__wrong_ONE_MATRIX(A, B):
    return np.block(A) @ np.block(B)


# ---- case1_out

case1_out__right_FROM_THE_TEXT = {
    product: "C[" + product[2 : product.index(",")] + product[product.rindex(",") :]
    for product in [
        "A[I, J] · B[J, K]",
        "A[I_X, J] · B[J, K]",
        "A[I, J] · B[J, K_Y]",
        "A[I_X, J] · B[J, K_Y]",
    ]
}

# Thinks: eight devices compute, so on a mesh with two axes the result is cut over both as soon as anything is cut.
case1_out__wrong_ALWAYS_BOTH_AXES = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K_Y]",
    "A[I, J] · B[J, K_Y]": "C[I_X, K_Y]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K_Y]",
}

# Thinks: if one operand is whole on every device, so is the product.
case1_out__wrong_WHOLE_STAYS_WHOLE = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K_Y]",
}

# Thinks: the product is laid out as its left operand; B is only what it is multiplied by.
case1_out__wrong_AS_THE_LEFT_ONE = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_X, K]",
}

# Thinks: the devices' products are put one below the other, so all letters come together at the first dimension.
case1_out__wrong_LETTERS_AT_THE_ROWS = {
    "A[I, J] · B[J, K]": "C[I, K]",
    "A[I_X, J] · B[J, K]": "C[I_X, K]",
    "A[I, J] · B[J, K_Y]": "C[I_Y, K]",
    "A[I_X, J] · B[J, K_Y]": "C[I_XY, K]",
}


# ---- case3_scatter_rows


def case3_scatter_rows__right_UNTILED(a, b, *, mesh):
    """The product cut into n slabs of rows along a new dimension, which an untiled psum_scatter deals out."""
    n = mesh.shape["x"]

    def on_device(a, b):
        part = a @ b
        slabs = part.reshape(n, part.shape[0] // n, part.shape[1])
        return jax.lax.psum_scatter(slabs, "x", scatter_dimension=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Thinks: with the rows of A on the device, and B whole, it is case 1 and no collective is needed; in_specs send for A and B.
def case3_scatter_rows__wrong_CASE_1_BY_IN_SPECS(a, b, *, mesh):
    return jax.shard_map(jnp.matmul, mesh=mesh, in_specs=(P("x", None), P(None, None)), out_specs=P("x", None))(a, b)


# Thinks: psum finishes the sum, and out_specs then cut the rows of it.
def case3_scatter_rows__wrong_OUT_SPECS_CUT(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.psum(a @ b, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Thinks: all devices have a part of the sum, so it is added and dealt out over all of them; along y the parts are copies.
def case3_scatter_rows__wrong_OVER_ALL_DEVICES(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.psum_scatter(a @ b, ("x", "y"), scatter_dimension=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(("x", "y"), None))(
        a, b
    )


# Thinks: one may add up over x first and multiply afterwards: own rows of the sum of A's blocks, times the sum of B's.
def case3_scatter_rows__wrong_SUM_BEFORE_PRODUCT(a, b, *, mesh):
    def on_device(a, b):
        own_rows = jax.lax.psum_scatter(a, "x", scatter_dimension=0, tiled=True)
        return own_rows @ jax.lax.psum(b, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)
