"""Answers to lesson 06, ninth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from grader import (
    all_gather,  # `jax.lax.all_gather`, with `to=` in every version of JAX
)

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- partners

_grid = np.arange(8).reshape(4, 2)

partners__right_on_the_grid = {
    "psum over x": _grid[:, 1].tolist(),
    "psum over y": _grid[2].tolist(),
    "psum over (x, y)": _grid.ravel().tolist(),
    "ppermute +1 over x": [int(np.roll(_grid, 1, axis=0)[2, 1])],
    "ppermute +1 over y": [int(np.roll(_grid, 1, axis=1)[2, 1])],
    "axis_index over x": [],
}

# Device 5 sends to the next one down its column, so 7 is its partner.
partners__wrong_whom_it_sends_to = {
    "psum over x": [1, 3, 5, 7],
    "psum over y": [4, 5],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [7],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}

# Partners are the others in the group; its own number a device does not have to be told.
partners__wrong_without_itself = {
    "psum over x": [1, 3, 7],
    "psum over y": [4],
    "psum over (x, y)": [0, 1, 2, 3, 4, 6, 7],
    "ppermute +1 over x": [3],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}

# +1 is rank to rank + 1, whatever the axis; so device 5 receives from rank 4.
partners__wrong_rank_minus_one = {
    "psum over x": [1, 3, 5, 7],
    "psum over y": [4, 5],
    "psum over (x, y)": list(range(8)),
    "ppermute +1 over x": [4],
    "ppermute +1 over y": [4],
    "axis_index over x": [],
}

# Along y device 5 is the last one, and what comes to it is from the start of the next row; and an index is its own number, so it depends on itself.
partners__wrong_wraps_into_next_row = {
    "psum over x": [1, 3, 5, 7],
    "psum over y": [4, 5],
    "psum over (x, y)": [0, 1, 2, 3, 4, 5, 6, 7],
    "ppermute +1 over x": [3],
    "ppermute +1 over y": [6],
    "axis_index over x": [5],
}

# ---------------------------------------------------------------- masked_mean


def masked_mean__right_one_message(x, mask, *, mesh):
    def on_device(x, mask):
        two = jnp.stack([jnp.sum(x, where=mask), jnp.sum(mask).astype(x.dtype)])
        total, count = jax.lax.psum(two, "x")
        return total / count

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


# Devices that keep nothing have no mean, so I average the means of those that have one.
def masked_mean__wrong_mean_of_those(x, mask, *, mesh):
    def on_device(x, mask):
        count = mask.sum()
        mine = jnp.where(mask, x, 0).sum() / jnp.maximum(count, 1)
        has_any = (count > 0).astype(x.dtype)
        return jax.lax.psum(mine, "x") / jax.lax.psum(has_any, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


# A device without entries would divide by zero, so its count is at least one (torch: mask.sum().clamp(min=1)).
def masked_mean__wrong_clamped_before(x, mask, *, mesh):
    def on_device(x, mask):
        total = jnp.where(mask, x, 0).sum()
        count = mask.sum().clip(1)
        return jax.lax.psum(total, "x") / jax.lax.psum(count, "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


# What is masked out is zero and does not count in a mean; pmean does the rest as the blocks are equally long.
def masked_mean__wrong_zeros_count(x, mask, *, mesh):
    def on_device(x, mask):
        return jax.lax.pmean(jnp.where(mask, x, 0).mean(), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


# Means of unequal parts are dangerous: better gather both and take one mean of everything.
def masked_mean__wrong_gathers(x, mask, *, mesh):
    def on_device(x, mask):
        every_x = all_gather(x, "x", axis=0, tiled=True, to="invarying")
        every_mask = all_gather(mask, "x", axis=0, tiled=True, to="invarying")
        return jnp.mean(every_x, where=every_mask)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P())(x, mask)


# ---------------------------------------------------------------- after_collective

_held = [[3, 9, 5, 2], [6, 6, 3, 5], [8, 1, 4, 6], [5, 4, 2, 3]]

after_collective__right_zip = {
    "all_gather": sum(_held, []),
    "psum": [sum(place) for place in zip(*_held)],
    "psum_scatter": [[sum(place) for place in zip(*_held)][2]],
}

# A device begins with its own block and appends the others as they come by.
after_collective__wrong_own_first = {
    "all_gather": [8, 1, 4, 6, 5, 4, 2, 3, 3, 9, 5, 2, 6, 6, 3, 5],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [14],
}

# psum is the sum of everything, one number for all.
after_collective__wrong_one_total = {
    "all_gather": [3, 9, 5, 2, 6, 6, 3, 5, 8, 1, 4, 6, 5, 4, 2, 3],
    "psum": [72],
    "psum_scatter": [14],
}

# psum_scatter leaves the sum at the device's own place; the buffer keeps its shape and the rest is zero.
after_collective__wrong_same_buffer = {
    "all_gather": [3, 9, 5, 2, 6, 6, 3, 5, 8, 1, 4, 6, 5, 4, 2, 3],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [0, 0, 14, 0],
}

# Device 2 gathers the third number of each device, as psum_scatter gives it the sum of the third ones.
after_collective__wrong_third_of_each = {
    "all_gather": [5, 3, 4, 2],
    "psum": [22, 20, 14, 16],
    "psum_scatter": [14],
}
