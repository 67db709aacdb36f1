"""Answers to lesson 07, fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- local_shapes

local_shapes__right_letters = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (16, 4),
    "A[I, J]": (16, 32),
}

# This student thinks that the first dimension is always cut by the first axis of the mesh, in whatever order the letters stand.
local_shapes__wrong_by_position = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (4, 16),
    "A[I, J_XY]": (16, 4),
    "A[I, J]": (16, 32),
}

# This student thinks that all eight devices share what is cut over x: whoever is along y takes a part of it too.
local_shapes__wrong_eight_share = {
    "A[I_X, J]": (2, 32),
    "A[I, J_X]": (16, 4),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (16, 4),
    "A[I, J]": (16, 32),
}

# This student reads XY below one dimension as x for the first dimension and y for the second.
local_shapes__wrong_xy_apart = {
    "A[I_X, J]": (4, 32),
    "A[I, J_X]": (16, 8),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (4, 16),
    "A[I, J]": (16, 32),
}

# This student thinks, where only one dimension carries letters, that this one stays whole and the other one is cut.
local_shapes__wrong_other_dimension = {
    "A[I_X, J]": (16, 8),
    "A[I, J_X]": (4, 32),
    "A[I_X, J_Y]": (4, 16),
    "A[I_Y, J_X]": (8, 8),
    "A[I, J_XY]": (2, 32),
    "A[I, J]": (16, 32),
}

# ---------------------------------------------------------------- bytes_sent

bytes_sent__right_three_blocks = {
    "all_gather of A[I, J_X]": 3 * 16 * 8 * 4,
    "all_reduce of C[I, K]": 2 * 3 * 4 * 24 * 4,
    "reduce_scatter of C[I, K]": 3 * 4 * 24 * 4,
    "all_gather of B[J, K_X]": 3 * 32 * 6 * 4,
}

# This student takes an all_reduce for one round of the ring.
bytes_sent__wrong_one_round = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 1152,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 2304,
}

# This student thinks that in a gather a device sends its own block once, and the others pass it on at their own cost.
bytes_sent__wrong_own_block_once = {
    "all_gather of A[I, J_X]": 512,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 1152,
    "all_gather of B[J, K_X]": 768,
}

# This student thinks that V of a reduce_scatter is the share that a device ends with.
bytes_sent__wrong_share_for_whole = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 2304,
    "reduce_scatter of C[I, K]": 288,
    "all_gather of B[J, K_X]": 2304,
}

# This student thinks that to add up, everybody sends all of C to the three others.
bytes_sent__wrong_to_each_other = {
    "all_gather of A[I, J_X]": 1536,
    "all_reduce of C[I, K]": 4608,
    "reduce_scatter of C[I, K]": 4608,
    "all_gather of B[J, K_X]": 2304,
}

# ---------------------------------------------------------------- case4_gather_a


def case4_gather_a__right_stacked(a, b, *, mesh):
    """Gathered without `tiled`: the blocks of rows stand in a dimension of their own until after the product."""

    def on_device(a, b):
        blocks = jax.lax.all_gather(a, "x")
        return jnp.einsum("nij,jk->nik", blocks, b).reshape(-1, b.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


# This student gathers the other operand, and gets C cut by rows.
def case4_gather_a__wrong_gathered_b(a, b, *, mesh):
    def on_device(a, b):
        return a @ jax.lax.all_gather(b, "x", axis=1, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)


# This student multiplies what is there and gathers the products: the blocks of the diagonal, in every column.
def case4_gather_a__wrong_products_gathered(a, b, *, mesh):
    def on_device(a, b):
        products = jax.lax.all_gather(a @ b, "x", axis=0, tiled=True)
        return products

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


# This student gathers both, to be safe, and keeps the own columns of the product: right, with B's bytes too many.
def case4_gather_a__wrong_both_gathered(a, b, *, mesh):
    def on_device(a, b):
        k = b.shape[1]
        rows = jax.lax.all_gather(a, "x", axis=0, tiled=True)
        columns = jax.lax.all_gather(b, "x", axis=1, tiled=True)
        return jax.lax.dynamic_slice_in_dim(rows @ columns, jax.lax.axis_index("x") * k, k, axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)


# This student brings A together by a psum of zeros with the own rows in their place: right, with twice the bytes.
def case4_gather_a__wrong_padded_and_summed(a, b, *, mesh):
    def on_device(a, b):
        i = a.shape[0]
        wide = jnp.zeros((i * mesh.shape["x"], a.shape[1]), a.dtype)
        wide = jax.lax.dynamic_update_slice_in_dim(wide + 0 * a[:1], a, jax.lax.axis_index("x") * i, axis=0)
        return jax.lax.psum(wide, "x") @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P(None, "x"))(a, b)
