"""Answers to lesson 05, twenty-second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
four = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- global_mean
def global_mean__right_divide_at_the_end(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        entries = block.size * mesh.shape["x"]
        return jax.lax.psum(jnp.sum(block), "x") / entries

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


# Thought: the blocks' means are averaged over the devices, and the mesh has mesh.size of them (but the sum ran along x only).
def global_mean__wrong_all_devices(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        return jax.lax.psum(block.mean(), "x") / mesh.size

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


# Thought: "the same on every device" needs a sum over both axes; the copies along y are then added too.
def global_mean__wrong_both_axes(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        return jax.lax.psum(block.sum(), ("x", "y")) / x.size

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


# Thought: pmean is "the sum that divides", so it divides a sum by the number of entries; it divides by the devices along x only.
def global_mean__wrong_pmean_of_sums(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        return jax.lax.pmean(jnp.sum(block), "x")

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


# Thought: the order does not matter for a mean, so average across devices first; the right number, but whole blocks travel.
def global_mean__wrong_blocks_travel(x, *, mesh):
    """The mean of all entries, on every device."""

    def on_device(block):
        return jax.lax.pmean(block, "x").mean()

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


# ---------------------------------------------------------------- vma_types
vma_types__right_rules = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"y", "x"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# Thought: after a gather along y all devices along y hold the same, so y is taken away, as by a psum.
vma_types__wrong_gather_agrees = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# Thought: b comes in by P(), so it varies over nothing, also in the addition; only the sum gets a new type.
vma_types__wrong_no_cast = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": set(),
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# Thought: a psum makes all devices agree, on every axis; nothing is left that varies.
vma_types__wrong_psum_clears_all = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": set(),
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"y"},
    "jnp.zeros(4)": set(),
}

# Thought: what a device makes by itself inside the body is its own, so it may vary over all axes of the mesh.
vma_types__wrong_made_inside = {
    "w + b": {"x"},
    "b, as it is when w + b takes it": {"x"},
    "psum(block, 'x')": {"y"},
    "all_gather(block, 'y')": {"x", "y"},
    "axis_index('y')": {"x", "y"},
    "jnp.zeros(4)": {"x", "y"},
}

# ---------------------------------------------------------------- after_gather
after_gather__right_counted = {
    "block": (4 // 4,),
    "all_gather(block, 'i', tiled=True)": (4,),
    "all_gather(block, 'i')": (4, 1),
    "result of the tiled one, out_specs=P('i')": (4 * 4,),
    "result of the tiled one, out_specs=P()": (4,),
}

# Thought: one number on each device is a scalar, and stacking four scalars gives a vector of four.
after_gather__wrong_scalar_block = {
    "block": (),
    "all_gather(block, 'i', tiled=True)": (4,),
    "all_gather(block, 'i')": (4,),
    "result of the tiled one, out_specs=P('i')": (16,),
    "result of the tiled one, out_specs=P()": (4,),
}

# Thought: tiled lays the blocks like tiles into a grid, with a new dimension; the plain call just joins them.
after_gather__wrong_tiled_swapped = {
    "block": (1,),
    "all_gather(block, 'i', tiled=True)": (4, 1),
    "all_gather(block, 'i')": (4,),
    "result of the tiled one, out_specs=P('i')": (16,),
    "result of the tiled one, out_specs=P()": (4,),
}

# Thought: out_specs=P('i') cuts what was gathered over the four devices again, so the whole has four entries.
after_gather__wrong_specs_cut = {
    "block": (1,),
    "all_gather(block, 'i', tiled=True)": (4,),
    "all_gather(block, 'i')": (4, 1),
    "result of the tiled one, out_specs=P('i')": (4,),
    "result of the tiled one, out_specs=P()": (4,),
}

# Thought: the new dimension comes last, as a column for each device; and P() takes one device's block of the array, of one entry.
after_gather__wrong_behind_and_one_block = {
    "block": (1,),
    "all_gather(block, 'i', tiled=True)": (4,),
    "all_gather(block, 'i')": (1, 4),
    "result of the tiled one, out_specs=P('i')": (16,),
    "result of the tiled one, out_specs=P()": (1,),
}
