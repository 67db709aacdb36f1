"""Answers to lesson 06, eighteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------- block_bytes_sent
block_bytes_sent__right_table = {
    "all_gather": 3 * 32,
    "psum": 2 * 3 * 32 // 4,
    "psum_scatter": 3 * 32 // 4,
    "all_to_all": 3 * 32 // 4,
    "ppermute +1": 32,
    "axis_index": 0,
}

# "(n-1)/n of V, and V is always the whole array of 4 * 32 = 128 bytes", also for the sums.
block_bytes_sent__wrong_wholev = {
    "all_gather": 96,
    "psum": 192,
    "psum_scatter": 96,
    "all_to_all": 24,
    "ppermute +1": 32,
    "axis_index": 0,
}

# "Every piece is sent, my own one too": n instead of n - 1.
block_bytes_sent__wrong_ownpiece = {
    "all_gather": 128,
    "psum": 48,
    "psum_scatter": 32,
    "all_to_all": 32,
    "ppermute +1": 32,
    "axis_index": 0,
}

# "For a sum everybody needs everybody's block, so I send mine to the three others": psum as a gather with an addition.
block_bytes_sent__wrong_psumgather = {
    "all_gather": 96,
    "psum": 96,
    "psum_scatter": 24,
    "all_to_all": 24,
    "ppermute +1": 32,
    "axis_index": 0,
}

# "The last device has no next one, so three of four send: 3/4 of a block on average".
block_bytes_sent__wrong_openring = {
    "all_gather": 96,
    "psum": 48,
    "psum_scatter": 24,
    "all_to_all": 24,
    "ppermute +1": 24,
    "axis_index": 0,
}


# ------------------------------------------------------------ gather_columns
def gather_columns__right_stackinside(a, *, mesh):
    def body(columns):
        rows, _ = columns.shape
        stacked = all_gather(columns, "x", axis=1, to="invarying")  # (rows, n, columns of a block)
        return stacked.reshape(rows, -1)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, None))(a)


# "Stacked or joined, a reshape to the right shape does the rest": the blocks lie one under the other when they are reshaped.
def gather_columns__wrong_reshape(a, *, mesh):
    def body(columns):
        stacked = all_gather(columns, "x", to="invarying")
        return stacked.reshape(columns.shape[0], -1)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(a)


# "Put my columns into zeros at my place, and add everything up": right numbers, for twice the bytes of a gather.
def gather_columns__wrong_psum(a, *, mesh):
    n = mesh.shape["x"]

    def body(columns):
        mine = jnp.arange(n) == jax.lax.axis_index("x")
        wide = jnp.where(mine[None, :, None], columns[:, None, :], 0)
        return jax.lax.psum(wide.reshape(columns.shape[0], -1), "x")

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(a)


# "The array is cut over x along the columns, and so it is in the out_specs": four whole copies stand side by side.
def gather_columns__wrong_outspecs(a, *, mesh):
    body = lambda columns: jax.lax.all_gather(columns, "x", axis=1, tiled=True)
    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"))(a)


# "Columns lie along y, so they are gathered over y": the example's axis of the mesh with the other dimension of the matrix.
def gather_columns__wrong_overy(a, *, mesh):
    def body(columns):
        return jax.lax.all_gather(columns, "y", axis=1, tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, None), check_vma=False)(a)


# ------------------------------------------------------------- result_shapes
result_shapes__right_table = {
    "all_gather over x, axis=0, tiled": (4 * 4, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (8 * 4, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (4 // 4, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (2 * 4, 6 // 2),
}

# "Over x and y: four and two, six devices take part".
result_shapes__wrong_sixdevices = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (24, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (1, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (8, 3),
}

# "split_axis=1 is the dimension that the pieces are dealt into, so it grows": split and concat the wrong way round.
result_shapes__wrong_splitgrows = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (32, 6),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (1, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (2, 12),
}

# "A sum over an axis takes a dimension away, as jnp.sum(axis=0) does": psum and psum_scatter lose their rows.
result_shapes__wrong_sumdropsrows = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (2, 4, 6),
    "all_gather over (x, y), axis=0, tiled": (32, 6),
    "psum over x": (6,),
    "psum_scatter over x, tiled": (6,),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (8, 3),
}

# "The gather over y goes along a row of the grid, so the new blocks come side by side": untiled, and still joined, along the columns.
result_shapes__wrong_sidebyside = {
    "all_gather over x, axis=0, tiled": (16, 6),
    "all_gather over y": (4, 12),
    "all_gather over (x, y), axis=0, tiled": (16, 12),
    "psum over x": (4, 6),
    "psum_scatter over x, tiled": (1, 6),
    "all_to_all over y, split_axis=1, concat_axis=0, tiled": (8, 3),
}
