"""Answers to lesson 02, twenty-first batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# -------------------------------------------------------------------- assemble


def assemble__right_GROUPS(array):
    """The whole array; ValueError where copies of a block differ."""

    def place(shard):
        return tuple(part.indices(length)[:2] for part, length in zip(shard.index, array.shape))

    copies = {}
    for shard in array.addressable_shards:
        copies.setdefault(place(shard), []).append((shard.device.id, np.asarray(shard.data)))

    whole = np.empty(array.shape, array.dtype)
    for where, held in copies.items():
        (owner, block), *others = held
        for device, other in others:
            if not np.array_equal(block, other):
                raise ValueError(f"devices {owner} and {device} should hold the same at {where}, and do not")
        whole[tuple(slice(start, stop) for start, stop in where)] = block
    return whole


# "I begin with zeros, so a part that is no longer zero has been written already: only then there is something to compare."
def assemble__wrong_NONZERO(array):
    whole = np.zeros(array.shape, array.dtype)

    def written(index):
        return bool(np.any(whole[index] != 0))

    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if written(shard.index) and not np.array_equal(whole[shard.index], block):
            raise ValueError(f"device {shard.device.id} holds something else at {shard.index}")
        whole[shard.index] = block
    return whole


# "Devices with copies of one block come one after the other in the list of shards, as 0-1, 2-3 do, so it is enough to compare each with the one before."
def assemble__wrong_NEIGHBOURS(array):
    shards = list(array.addressable_shards)
    whole = np.zeros(array.shape, array.dtype)
    for before, shard in zip([None] + shards[:-1], shards):
        if before is not None and str(before.index) == str(shard.index):
            if not np.array_equal(np.asarray(before.data), np.asarray(shard.data)):
                raise ValueError(f"devices {before.device.id} and {shard.device.id} differ")
        whole[shard.index] = np.asarray(shard.data)
    return whole


# "Two copies need not be compared entry by entry: if they differ, their checksums (the sums) differ."
def assemble__wrong_CHECKSUM(array):
    sums = {}
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        total = block.sum()
        known = sums.setdefault(str(shard.index), total)
        if known != total:
            raise ValueError(f"device {shard.device.id}: sum {total} instead of {known}")
        whole[shard.index] = block
    return whole


# "A block is known by the rows at which it begins, so two shards with the same rows should be the same block."
def assemble__wrong_ROWKEY(array):
    first_found = {}
    whole = np.zeros(array.shape, array.dtype)

    def rows(shard):
        return (shard.index[0].start or 0) if shard.index else 0

    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if not np.array_equal(first_found.setdefault(rows(shard), block), block):
            raise ValueError(f"device {shard.device.id} holds other numbers in these rows")
        whole[shard.index] = block
    return whole


# ---------------------------------------------------------------------- memory

_MiB = 2**20
_w, _q = 4 * 8192 * 8192, 128 * 2048
_ours, _theirs = {"x": 4, "y": 2}, {"x": 2, "y": 8, "z": 2}


def _one(total, axes, sizes):
    for axis in axes:
        total //= sizes[axis]
    return total


def _all(total, axes, sizes):
    for axis in sizes:
        total *= 1 if axis in axes else sizes[axis]
    return total


memory__right_COPIES = {
    "w as P('x', 'y'): MiB on one device": _one(_w, "xy", _ours) // _MiB,
    "w as P('x'): MiB on one device": _one(_w, "x", _ours) // _MiB,
    "w as P('x'): MiB on all devices": _all(_w, "x", _ours) // _MiB,
    "w as P(): MiB on all devices": _all(_w, "", _ours) // _MiB,
    "q as P(('x', 'y')): bytes on one device": _one(_q, "xy", _theirs),
    "q as P(('x', 'y')): KiB on all devices": _all(_q, "xy", _theirs) // 1024,
}

# "x is the axis with two places (as on the 2 x 4 mesh of part 2), so P('x') halves the array."
memory__wrong_WIDEMESH = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 128,
    "w as P('x'): MiB on all devices": 1024,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 512,
}

# "However an array is sharded, all devices together hold it once: its nbytes."
memory__wrong_ONCE = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 256,
    "w as P(): MiB on all devices": 256,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# "An entry has four bytes, in q as in w (int8 taken for an ordinary int)."
memory__wrong_FOURBYTES = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 65536,
    "q as P(('x', 'y')): KiB on all devices": 2048,
}

# "All devices: times eight" (q's mesh has 32, and its z keeps copies).
memory__wrong_TIMESEIGHT = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 128,
}

# ----------------------------------------------------------------- shard_table


def _axes_of(entry):
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry)


def shard_table__right_SUBDIVIDE(shape, spec, mesh):
    """{device.id: the slices of the array that this device holds}."""

    def narrowed(start, stop, parts, which):
        length = (stop - start) // parts
        return start + which * length, start + (which + 1) * length

    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place in np.ndindex(*mesh.devices.shape):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            start, stop = 0, length
            for axis in _axes_of(entry):  # the first axis makes the coarse cut, the next cuts inside it
                start, stop = narrowed(start, stop, mesh.shape[axis], at[axis])
            slices.append(slice(start, stop))
        table[mesh.devices[place].id] = tuple(slices)
    return table


# "The axes of a tuple count as the mesh has them: which of them is slow is the mesh's affair, the tuple only says which axes cut."
def shard_table__wrong_MESHORDER(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        slices = []
        for length, entry in zip(shape, entries):
            number, blocks = 0, 1
            for axis, k in zip(mesh.axis_names, place):
                if axis in _axes_of(entry):
                    number = number * mesh.shape[axis] + k
                    blocks *= mesh.shape[axis]
            block = length // blocks
            slices.append(slice(number * block, (number + 1) * block))
        table[device.id] = tuple(slices)
    return table


# "Like digits: what I have so far, times the size of the axis that I have just read, plus the next place."
def shard_table__wrong_LASTSIZE(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            number, blocks, just_read = 0, 1, 1
            for axis in _axes_of(entry):
                number = number * just_read + at[axis]
                just_read = mesh.shape[axis]
                blocks *= just_read
            block = length // blocks
            slices.append(slice(number * block, (number + 1) * block))
        table[device.id] = tuple(slices)
    return table


# "Going through the mesh line by line I meet device 0, 1, 2, ...: the running number is the device's."
def shard_table__wrong_RUNNING(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for running, place in enumerate(np.ndindex(*mesh.devices.shape)):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            number, blocks = 0, 1
            for axis in _axes_of(entry):
                number = number * mesh.shape[axis] + at[axis]
                blocks *= mesh.shape[axis]
            block = length // blocks
            slices.append(slice(number * block, (number + 1) * block))
        table[running] = tuple(slices)
    return table


# "Trailing Nones may be left out of a spec, so where it has no entry there is no slice either."
def shard_table__wrong_ENTRIESONLY(shape, spec, mesh):
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, spec):
            number, blocks = 0, 1
            for axis in _axes_of(entry):
                number = number * mesh.shape[axis] + at[axis]
                blocks *= mesh.shape[axis]
            block = length // blocks
            slices.append(slice(number * block, (number + 1) * block))
        table[device.id] = tuple(slices)
    return table
