"""Answers to lesson 04, eighteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- same_everywhere


# one set of values, a's as NumPy reads it, and every shard of both is held against it
def same_everywhere__right_one_reference(a, b):
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    expected = np.asarray(a)
    shards = list(a.addressable_shards) + list(b.addressable_shards)
    return all(np.array_equal(np.asarray(shard.data), expected[shard.index]) for shard in shards)


# Laid out alike means that the shardings are equal.
def same_everywhere__wrong_equal_shardings(a, b):
    if a.shape != b.shape or a.sharding != b.sharding or not np.array_equal(a, b):
        return False
    for array in (a, b):
        values = np.asarray(array)
        for shard in array.addressable_shards:
            if not np.array_equal(shard.data, values[shard.index]):
                return False
    return True


# If on every device a and b hold the same, then they are the same everywhere.
def same_everywhere__wrong_device_by_device(a, b):
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    return all(np.array_equal(s.data, t.data) for s, t in zip(a.addressable_shards, b.addressable_shards))


# Copies are there only in an array that is fully replicated; in one that is cut, each device has a block of its own.
def same_everywhere__wrong_only_replicated(a, b):
    if a.shape != b.shape or not a.sharding.is_equivalent_to(b.sharding, a.ndim):
        return False
    if not np.array_equal(np.asarray(a), np.asarray(b)):
        return False
    for array in (a, b):
        if array.is_fully_replicated:
            values = np.asarray(array)
            if not all(np.array_equal(shard.data, values) for shard in array.addressable_shards):
                return False
    return True


# Two arrays are laid out alike if they are on the same devices in blocks of the same shape.
def same_everywhere__wrong_block_shapes(a, b):
    if a.shape != b.shape or a.devices() != b.devices():
        return False
    if a.sharding.shard_shape(a.shape) != b.sharding.shard_shape(b.shape):
        return False
    if not np.array_equal(np.asarray(a), np.asarray(b)):
        return False
    for array in (a, b):
        values = np.asarray(array)
        if not all(np.array_equal(shard.data, values[shard.index]) for shard in array.addressable_shards):
            return False
    return True


# ---------------------------------------------------------------- constraint_moves

_changes = [
    'P("x", "y") → P("x", None)',
    'P("x", None) → P("x", "y")',
    'P("x", None) → P(None, "x")',
    'P() → P("y", "x")',
    'P("x") → P(("x", "y"))',
    'P(("x", "y")) → P(("y", "x"))',
]

# nothing wherever the blocks only become smaller
constraint_moves__right_default_nothing = {
    **dict.fromkeys(_changes, "nothing"),
    _changes[0]: "all_gather",
    _changes[2]: "all_to_all",
    _changes[5]: "collective_permute",
}

# To have whole columns a device needs all the rows first: they are gathered, and then each keeps its columns.
constraint_moves__wrong_gather_then_cut = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_gather",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# An axis that goes away from the spec is reduced, as y was in v.sum(1), and everybody has the result.
constraint_moves__wrong_reduced = {
    'P("x", "y") → P("x", None)': "all_reduce",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# Where axes change places, everybody has pieces for everybody: in the tuple as between rows and columns.
constraint_moves__wrong_all_change_places = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "all_to_all",
}

# When y joins x, the device at y = 0 has to hand half of its block to its neighbour along y.
constraint_moves__wrong_hand_half_on = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "collective_permute",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "collective_permute",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# ---------------------------------------------------------------- constrain_whole


def constrain_whole__right_out_shardings(v, *, mesh):
    add_one = jax.jit(lambda v: v + 1, out_shardings=NamedSharding(mesh, P()))
    return add_one(v)


# The constraint is told to JAX about v + 1, and holds for it from then on.
def constrain_whole__wrong_dropped(v, *, mesh):
    v = v + 1
    jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P()))
    return v


# device_put with a NamedSharding brings an array into a layout, as in lesson 02.
def constrain_whole__wrong_device_put(v, *, mesh):
    return jax.device_put(v + 1, NamedSharding(mesh, P()))


# On every device, so every axis has to be named; one entry, since the array is no longer cut in two directions.
def constrain_whole__wrong_name_all(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(mesh.axis_names)))


# None says "whole", and it is the rows that are cut over the long axis; y stays in its place.
def constrain_whole__wrong_whole_rows_only(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(None, "y")))
