"""Answers to lesson 05, fifteenth batch, written by a reader of the notebook only."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def column_sums__right_einsum(x, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))
    def body(block):
        mine = jnp.einsum("ij->j", block)
        return jax.lax.psum(mine, "x")

    return body(x)


# The columns are cut over y, so it is over y that the column sums must be added.
def column_sums__wrong_axis(x, *, mesh):
    body = lambda block: jax.lax.psum(block.sum(axis=0), "y")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"), check_vma=False)(x)


# A sum over "all devices" is a psum over all axes of the mesh.
def column_sums__wrong_both(x, *, mesh):
    body = lambda block: jax.lax.psum(block.sum(axis=0), ("x", "y"))
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# To make the devices agree one takes the mean of what they have.
def column_sums__wrong_mean(x, *, mesh):
    body = lambda block: jax.lax.pmean(block.sum(axis=0), "x")
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P("y"))(x)


# The promise need not be made: out_specs name x as well, and they will put the parts together.
def column_sums__wrong_unpromised(x, *, mesh):
    body = lambda block: block.sum(axis=0)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=P(("x", "y")))(x)


block_transpose__right_grid = {
    "shape": (2, 8),
    "first row": [k for i in range(4) for k in (4 * i, 4 * i + 1)],
    "device 3 returns": [6, 7],
    "bytes sent": 0,
}
# With the two names exchanged the result is the transpose of the matrix.
block_transpose__wrong_transpose = {
    "shape": (4, 4),
    "first row": [0, 4, 8, 12],
    "device 3 returns": [6, 7],
    "bytes sent": 0,
}
# Each block (two int32) must move to its new place in the grid.
block_transpose__wrong_moves = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [6, 7],
    "bytes sent": 8,
}
# The blocks are laid into the new grid in the order of the devices, 0 to 3 in the first row.
block_transpose__wrong_order = {
    "shape": (2, 8),
    "first row": [0, 1, 2, 3, 4, 5, 6, 7],
    "device 3 returns": [6, 7],
    "bytes sent": 0,
}
# Devices are counted along x first, so device 3 is the last in the first column of the grid.
block_transpose__wrong_device = {
    "shape": (2, 8),
    "first row": [0, 1, 4, 5, 8, 9, 12, 13],
    "device 3 returns": [12, 13],
    "bytes sent": 0,
}

vma_types__right_rules = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"x", "y"} - {"x"},
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}
# After a gather along y all devices along y hold the same, so y is gone.
vma_types__wrong_gather = {**vma_types__right_rules, "all_gather(block, 'y')": {"x"}}
# b is an argument with P(): it is the same everywhere, and stays so wherever it is used.
vma_types__wrong_nocast = {**vma_types__right_rules, "b, as it is when w + b takes it": set()}
# psum over x leaves one sum for each place along x.
vma_types__wrong_psum = {**vma_types__right_rules, "psum(block, 'x')": {"x"}}
# What a device makes by itself, its index or zeros, may differ from every other device's.
vma_types__wrong_made_here = {**vma_types__right_rules, "axis_index('y')": {"x", "y"}, "jnp.zeros(4)": {"x", "y"}}
