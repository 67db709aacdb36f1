"""Answers to lesson 02, eighth batch, written by a reader of the notebook only."""

import math

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def shard_shape(shape, spec, axis_sizes):
    """The shape of the block that one device holds."""
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    out = []
    for n, e in zip(shape, entries):
        names = () if e is None else (e,) if isinstance(e, str) else tuple(e)
        out.append(n // math.prod(axis_sizes[a] for a in names))
    return tuple(out)


# ------------------------------------------------------------------- assemble
def assemble__right_write_then_compare(array):
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        whole[shard.index] = np.asarray(shard.data)
    # the last copy of each block stands there now: every other one must be the same
    for shard in array.addressable_shards:
        if not np.array_equal(whole[shard.index], np.asarray(shard.data)):
            raise ValueError(f"device {shard.device.id} holds another copy of {shard.index}")
    return whole


# thought: where there are still zeros nobody has written yet
def assemble__wrong_zeros_are_empty(array):
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if np.any(whole[shard.index]) and not np.array_equal(whole[shard.index], block):
            raise ValueError("copies differ")
        whole[shard.index] = block
    return whole


# thought: copies are on neighbouring devices, so each shard need only be compared with the one before it in the list
def assemble__wrong_neighbours(array):
    shards = list(array.addressable_shards)
    for one, two in zip(shards, shards[1:]):
        if one.index == two.index and not (np.asarray(one.data) == np.asarray(two.data)).all():
            raise ValueError(f"{one.device} and {two.device} differ")
    result = np.empty(array.shape, dtype=array.dtype)
    for s in shards:
        result[s.index] = s.data
    return result


# thought: equal copies have equal sums, and one number per block is much less to keep
def assemble__wrong_same_sum(array):
    out, seen = np.zeros(array.shape, array.dtype), {}
    for shard in array.addressable_shards:
        key, total = str(shard.index), np.asarray(shard.data).sum()
        if seen.setdefault(key, total) != total:
            raise ValueError("two devices hold different copies of " + key)
        out[shard.index] = np.asarray(shard.data)
    return out


# thought: P() is the only layout with copies, so only fully replicated arrays need to be compared
def assemble__wrong_only_replicated(array):
    if array.is_fully_replicated:
        first = np.asarray(array.addressable_shards[0].data)
        for shard in array.addressable_shards[1:]:
            if not np.array_equal(first, np.asarray(shard.data)):
                raise ValueError("not the same on all devices")
        return first
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        whole[shard.index] = np.asarray(shard.data)
    return whole


# --------------------------------------------------------------- legal_or_not
legal_or_not__right_all = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}

# thought: a tuple deals its axes out over the dimensions, 12 over x and 2 over y: that divides
legal_or_not__wrong_tuple_spreads = dict(legal_or_not__right_all, **{"(12, 2) as P(('x', 'y'))": "fine"})

# thought: the first entry's length is always compared with the first axis of the mesh, 4, and 10 is no multiple of 4
legal_or_not__wrong_first_axis = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "does not divide",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}

# thought: trailing Nones may be left out, so they may be added as well; and a mesh with spare places leaves them empty
legal_or_not__wrong_nones_are_free = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "fine",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "fine",
}

# thought: two names in one place are one entry more than there is room for; and x twice asks for 16 blocks, more than devices
legal_or_not__wrong_counts_names = {
    "(16, 8) as P('x', 'x')": "too few devices",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "too many entries",
    "a 4 × 4 mesh": "too few devices",
}


# ----------------------------------------------------------------- bytes_held
def bytes_held__right_by_names(shape, itemsize, spec, axis_sizes):
    left = dict(axis_sizes)
    blocks = 1
    for entry in spec:
        for name in entry if isinstance(entry, tuple) else (entry,):
            blocks *= left.pop(name) if name is not None else 1
    copies = math.prod(left.values())
    total = math.prod(shape) * itemsize
    return total // blocks, total * copies, copies


# thought: each axis that is not named adds its devices, so the copies are the sum over these axes
def bytes_held__wrong_copies_added(shape, itemsize, spec, axis_sizes):
    one = itemsize * math.prod(shard_shape(shape, spec, axis_sizes))
    named = set()
    for entry in spec:
        named |= set() if entry is None else {entry} if isinstance(entry, str) else set(entry)
    free = [n for a, n in axis_sizes.items() if a not in named]
    return one, one * math.prod(axis_sizes.values()), sum(free) or 1


# thought: all devices together: the block times the number of different blocks; I forgot that copies are paid for
def bytes_held__wrong_together_once(shape, itemsize, spec, axis_sizes):
    block = shard_shape(shape, spec, axis_sizes)
    one = math.prod(block) * itemsize
    blocks = math.prod(n // b for n, b in zip(shape, block))
    return one, one * blocks, math.prod(axis_sizes.values()) // blocks


# thought: the mesh has an axis x and an axis y, as all meshes of this lesson
def bytes_held__wrong_x_and_y(shape, itemsize, spec, axis_sizes):
    devices = axis_sizes.get("x", 1) * axis_sizes.get("y", 1)
    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    together = one * devices
    return one, together, together // (math.prod(shape) * itemsize)


# thought: the last number asks on how many *other* devices the block is too
def bytes_held__wrong_other_devices(shape, itemsize, spec, axis_sizes):
    def size(entry):
        return (
            1
            if entry is None
            else axis_sizes[entry]
            if isinstance(entry, str)
            else math.prod(map(axis_sizes.get, entry))
        )

    cut = math.prod(size(e) for e in spec)
    devices = math.prod(axis_sizes.values())
    one = itemsize * math.prod(shape) // cut
    return (one, one * devices, devices // cut - 1)
