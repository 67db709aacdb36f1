"""Answers to lesson 02, sixteenth batch, written by a reader of the notebook only."""

import math

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- choose_spec

choose_spec__right_other_specs = {
    "two whole rows each": P(("y", "x"), None),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P(None, "x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x"), None),
    "picture": P(None, ("y", "x")),
}

# This student thinks that the axis which the spec names is the one along which the copies are: two copies, so y.
choose_spec__wrong_names_the_copies = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "y"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("y"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}

# This student counts with the first axis of a tuple as the fast one.
choose_spec__wrong_first_is_fast = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("x", "y")),
    "picture": P(None, ("x", "y")),
}

# This student thinks that two entries after one another cut the rows twice, as a tuple does.
choose_spec__wrong_two_entries = {
    "two whole rows each": P("x", "y"),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P("y", "x"),
    "picture": P(None, ("y", "x")),
}

# This student leaves out a None wherever it stands, since it cuts nothing, and forgets that it keeps the place.
choose_spec__wrong_leading_none = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P("x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P("y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}


# ---------------------------------------------------------------- assemble


def assemble__right_write_then_compare(array):
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        whole[shard.index] = np.asarray(shard.data)
    if not all(np.array_equal(whole[shard.index], np.asarray(shard.data)) for shard in array.addressable_shards):
        raise ValueError("copies of a block differ")
    return whole


# This student thinks that copies stand beside each other in the list of shards, so that neighbours are all there is to compare.
def assemble__wrong_neighbours(array):
    shards = array.addressable_shards
    for one, other in zip(shards, shards[1:]):
        if one.index == other.index and not np.array_equal(one.data, other.data):
            raise ValueError("copies of a block differ")
    whole = np.zeros(array.shape, array.dtype)
    for shard in shards:
        whole[shard.index] = np.asarray(shard.data)
    return whole


# This student takes a part that is all zeros for one that nobody has written yet.
def assemble__wrong_zero_is_empty(array):
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if np.any(whole[shard.index] != 0) and not np.array_equal(whole[shard.index], block):
            raise ValueError("copies of a block differ")
        whole[shard.index] = block
    return whole


# This student negates "all entries agree" into "all entries disagree".
def assemble__wrong_all_disagree(array):
    found = {}
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        before = found.setdefault(str(shard.index), block)
        if np.all(before != block):
            raise ValueError("copies of a block differ")
        whole[shard.index] = block
    return whole


# This student thinks that the different blocks, one after the other, are the array, and needs the index only to find copies.
def assemble__wrong_stacked(array):
    blocks = {}
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if not np.array_equal(blocks.setdefault(str(shard.index), block), block):
            raise ValueError("copies of a block differ")
    return np.concatenate([block.ravel() for block in blocks.values()]).reshape(array.shape)


# ---------------------------------------------------------------- shard_table


def axes_of(spec, rank):
    """For each dimension the tuple of the axes that cut it."""
    entries = tuple(spec) + (None,) * (rank - len(tuple(spec)))
    return [() if entry is None else (entry,) if isinstance(entry, str) else tuple(entry) for entry in entries]


def shard_table__right_ravel(shape, spec, mesh):
    def part(n, axes, at):
        sizes = tuple(mesh.shape[axis] for axis in axes)
        number = int(np.ravel_multi_index(tuple(at[axis] for axis in axes), sizes)) if axes else 0
        length = n // math.prod(sizes)
        return slice(number * length, (number + 1) * length)

    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        table[device.id] = tuple(part(n, axes, at) for n, axes in zip(shape, axes_of(spec, len(shape))))
    return table


# This student runs through the axes in the order of the mesh, and asks of each only whether the entry has it.
def shard_table__wrong_mesh_order(shape, spec, mesh):
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        slices = []
        for n, axes in zip(shape, axes_of(spec, len(shape))):
            number, blocks = 0, 1
            for axis, k in zip(mesh.axis_names, place):
                if axis in axes:
                    number = number * mesh.shape[axis] + k
                    blocks *= mesh.shape[axis]
            length = n // blocks
            slices.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(slices)
    return table


# This student multiplies a place by the size of its own axis where it should be that of the axis after it; on a square mesh nobody notices.
def shard_table__wrong_own_stride(shape, spec, mesh):
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for n, axes in zip(shape, axes_of(spec, len(shape))):
            number = at[axes[0]] if axes else 0
            for before, axis in zip(axes, axes[1:]):
                number = number * mesh.shape[before] + at[axis]
            length = n // math.prod(mesh.shape[axis] for axis in axes)
            slices.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(slices)
    return table


# This student takes the second argument of slice for the length of the block, not for its end.
def shard_table__wrong_start_and_length(shape, spec, mesh):
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for n, axes in zip(shape, axes_of(spec, len(shape))):
            number = 0
            for axis in axes:
                number = number * mesh.shape[axis] + at[axis]
            length = n // math.prod(mesh.shape[axis] for axis in axes)
            slices.append(slice(number * length, length))
        table[device.id] = tuple(slices)
    return table


# This student computes the place of a device from its number, as if the numbers came row by row in every mesh.
def shard_table__wrong_id_is_place(shape, spec, mesh):
    sizes = [mesh.shape[axis] for axis in mesh.axis_names]
    table = {}
    for device in mesh.devices.flat:
        rest, at = device.id % math.prod(sizes), {}
        for axis, size in zip(mesh.axis_names[::-1], sizes[::-1]):
            rest, at[axis] = divmod(rest, size)
        slices = []
        for n, axes in zip(shape, axes_of(spec, len(shape))):
            number = 0
            for axis in axes:
                number = number * mesh.shape[axis] + at[axis]
            length = n // math.prod(mesh.shape[axis] for axis in axes)
            slices.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(slices)
    return table
