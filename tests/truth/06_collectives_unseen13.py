"""Answers to lesson 06, thirteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- after_collective

_blocks = [[3, 9, 5, 2], [6, 6, 3, 5], [8, 1, 4, 6], [5, 4, 2, 3]]

after_collective__right_columns = {
    "all_gather": [number for block in _blocks for number in block],
    "psum": [sum(column) for column in zip(*_blocks)],
    "psum_scatter": [sum(block[2] for block in _blocks)],
}

# Counted the devices from 1, so that device 2 gets the second sum.
after_collective__wrong_counts_from_one = {
    "all_gather": [3, 9, 5, 2, 6, 6, 3, 5, 8, 1, 4, 6, 5, 4, 2, 3],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [20],
}

# Thought that a device's own block stands first in what it gathers, and the others follow as they come round the ring.
after_collective__wrong_own_block_first = {
    "all_gather": [8, 1, 4, 6, 5, 4, 2, 3, 3, 9, 5, 2, 6, 6, 3, 5],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [14],
}

# Thought that psum adds everything up to one number, and that in the scattered form each device is left with the sum of its own.
after_collective__wrong_adds_inside = {
    "all_gather": [3, 9, 5, 2, 6, 6, 3, 5, 8, 1, 4, 6, 5, 4, 2, 3],
    "psum": [72],
    "psum_scatter": [19],
}

# Thought that the finished sum takes the place of the third number in device 2's block, and the rest of the block stays.
after_collective__wrong_sum_in_place = {
    "all_gather": [3, 9, 5, 2, 6, 6, 3, 5, 8, 1, 4, 6, 5, 4, 2, 3],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [8, 1, 14, 6],
}

# ---------------------------------------------------------------- block_bytes_sent

_n, _b = 4, 8 * 4

block_bytes_sent__right_formulas = {
    "all_gather": (_n - 1) * _b,
    "psum": 2 * ((_n - 1) * _b // _n),
    "psum_scatter": (_n - 1) * _b // _n,
    "all_to_all": (_n - 1) * _b // _n,
    "ppermute +1": _b,
    "axis_index": 0,
}

# Took the rule "(n-1)/n of V" for the gather with V the block, though V is there the whole of four blocks.
block_bytes_sent__wrong_gather_of_a_block = {
    "all_gather": 24,
    "psum": 48,
    "psum_scatter": 24,
    "all_to_all": 24,
    "ppermute +1": 32,
    "axis_index": 0,
}

# Added the rows for psum_scatter and all_gather to get psum, but the gather there is one of shares, not of whole blocks.
block_bytes_sent__wrong_gather_after_scatter = {
    "all_gather": 96,
    "psum": 120,
    "psum_scatter": 24,
    "all_to_all": 24,
    "ppermute +1": 32,
    "axis_index": 0,
}

# Thought that in an all_to_all a device sends its whole block to each of the three others, who pick their piece.
block_bytes_sent__wrong_whole_block_to_all = {
    "all_gather": 96,
    "psum": 48,
    "psum_scatter": 24,
    "all_to_all": 96,
    "ppermute +1": 32,
    "axis_index": 0,
}

# Thought that in a ring of four everything goes round four times, until it is back where it began.
block_bytes_sent__wrong_all_the_way_round = {
    "all_gather": 128,
    "psum": 64,
    "psum_scatter": 32,
    "all_to_all": 24,
    "ppermute +1": 32,
    "axis_index": 0,
}

# ---------------------------------------------------------------- psum_by_two


def psum_by_two__right_untiled(parts, w, *, mesh):
    """(sum over N of parts[N_X, I, J]) · w[J, K] → [I, K], on every device."""
    n = mesh.shape["x"]

    def on_device(part, w):
        in_shares = part.reshape(n, part.shape[1] // n, part.shape[2])
        mine = jax.lax.psum_scatter(in_shares, "x", scatter_dimension=0, tiled=False)
        products = all_gather(mine @ w, "x", axis=0, tiled=False, to="invarying")
        return products.reshape(-1, w.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# Put the two halves of the psum together again before the product, so that every device multiplies all rows.
def psum_by_two__wrong_every_device_multiplies(parts, w, *, mesh):
    def on_device(part, w):
        share = jax.lax.psum_scatter(part[0], "x", scatter_dimension=0, tiled=True)
        total = all_gather(share, "x", axis=0, tiled=True, to="invarying")
        return total @ w

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# Brought the products together with a psum, which adds the rows of different devices in place of joining them.
def psum_by_two__wrong_psum_joins(parts, w, *, mesh):
    def on_device(part, w):
        share = jax.lax.psum_scatter(part[0], "x", scatter_dimension=0, tiled=True)
        return jax.lax.psum(share @ w, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)


# Thought that out_specs=P("x") brings the products together, and that the result is then whole on every device.
def psum_by_two__wrong_specs_gather(parts, w, *, mesh):
    def on_device(part, w):
        share = jax.lax.psum_scatter(part[0], "x", scatter_dimension=0, tiled=True)
        return share @ w

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x", None))(parts, w)


# Stacked the products behind the rows and reshaped to the right shape: the devices' rows are interleaved (right only if each has one row).
def psum_by_two__wrong_interleaved(parts, w, *, mesh):
    def on_device(part, w):
        share = jax.lax.psum_scatter(part[0], "x", scatter_dimension=0, tiled=True)
        stacked = all_gather(share @ w, "x", axis=1, tiled=False, to="invarying")
        return stacked.reshape(part.shape[1], w.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P()), out_specs=P())(parts, w)
