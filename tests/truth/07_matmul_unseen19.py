"""Answers to lesson 07, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---- case4_gather_b


def case4_gather_b__right_stacked_in_place(a, b, *, mesh):
    def on_device(a, b):
        stacked = jax.lax.all_gather(b, "x", axis=1)  # (J, n, K / n)
        return jnp.einsum("ij,jk->ik", a, stacked.reshape(b.shape[0], -1))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x")), out_specs=P("x"))(a, b)


# Thought: multiply first and gather the small products; but the others' products are of their own rows of A.
def case4_gather_b__wrong_product_first(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.all_gather(a @ b, "x", axis=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# Thought: gather stacked, then reshape to (J, K): the shape is right, the columns are in the wrong order.
def case4_gather_b__wrong_reshaped(a, b, *, mesh):
    def on_device(a, b):
        whole = jax.lax.all_gather(b, "x").reshape(b.shape[0], -1)
        return a @ whole

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# Thought: C[I_X, K] has its cut from I, so it is the operand with I that has to be gathered; comes out as C[I, K_X].
def case4_gather_b__wrong_other_operand(a, b, *, mesh):
    def on_device(a, b):
        return jax.lax.all_gather(a, "x", axis=0, tiled=True) @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


# Thought: "every device needs all of B", so gathers over all axes of the mesh; each block of columns comes once for each device along y.
def case4_gather_b__wrong_all_devices(a, b, *, mesh):
    def on_device(a, b):
        return a @ all_gather(b, ("x", "y"), axis=1, tiled=True, to="invarying")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# ---- bytes_sent

bytes_sent__right_by_blocks = {
    "all_gather of A[I, J_X]": 3 * (16 * 8 * 4),
    "all_reduce of C[I, K]": 2 * 3 * (16 * 24 * 4) // 4,
    "reduce_scatter of C[I, K]": 3 * (4 * 24 * 4),
    "all_gather of B[J, K_X]": 3 * (32 * 6 * 4),
}

# Thought: (n - 1) times the array for a gather, as lesson 06 has (n - 1) * b; there b was the block, here it took the whole.
bytes_sent__wrong_block_or_whole = {
    "all_gather of A[I, J_X]": 6144,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 9216,
}

# Thought: an all_reduce is one round of the ring like the others; everything is added as it goes by.
bytes_sent__wrong_once_round = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 1152,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 2304,
}

# Thought: after a reduce_scatter C is cut in four, so V is a quarter of C (384 bytes) there.
bytes_sent__wrong_share = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 288,
    "all_gather of B[J, K_X]": 2304,
}

# Thought: in a gather a device passes on all n blocks until each is back where it began, so all of V.
bytes_sent__wrong_all_n_blocks = {
    "all_gather of A[I, J_X]": 2048,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 3072,
}

# ---- case2_gather


def case2_gather__right_transposed(a, b, *, mesh):
    def on_device(columns, b):
        turned = all_gather(columns.T, "x", axis=0, tiled=True, to="invarying")  # [J, I]
        return jnp.einsum("ji,jk->ik", turned, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Thought: without tiled, and a reshape to (I, J) makes it fit: it fits, with the columns of A mixed up.
def case2_gather__wrong_reshaped(a, b, *, mesh):
    def on_device(columns, b):
        stacked = all_gather(columns, "x", axis=0, tiled=False, to="invarying")
        return stacked.reshape(columns.shape[0], -1) @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)


# Thought: took the rows of B that match the columns at hand, and had the product at last; never added the parts, and switched off the check that said so.
def case2_gather__wrong_part_of_sum(a, b, *, mesh):
    def on_device(columns, b):
        length = columns.shape[1]
        rows = jax.lax.dynamic_slice_in_dim(b, jax.lax.axis_index("x") * length, length, axis=0)
        return columns @ rows

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P(), check_vma=False)(a, b)


# Thought: in_specs choose how A is cut, and rows are handier to gather; so A, which lies cut by columns, is recut first, at a price.
def case2_gather__wrong_rows_in_specs(a, b, *, mesh):
    def on_device(rows, b):
        return all_gather(rows, "x", axis=0, tiled=True, to="invarying") @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P()), out_specs=P())(a, b)


# Thought: J was cut, so the products have to be added up over x as well; but after the gather each is whole already, and the sum is n times too large.
def case2_gather__wrong_psum_too(a, b, *, mesh):
    def on_device(columns, b):
        whole = jax.lax.all_gather(columns, "x", axis=1, tiled=True)
        return jax.lax.psum(whole @ b, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P())(a, b)
