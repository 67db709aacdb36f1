"""Answers to lesson 02, thirteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- assemble


def assemble__right_two_passes(array):
    """The whole array; ValueError where copies of a block differ."""
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        whole[shard.index] = shard.data
    for shard in array.addressable_shards:
        if not np.array_equal(whole[shard.index], np.asarray(shard.data)):
            raise ValueError(f"the copies of block {shard.index} differ, on device {shard.device.id} for one")
    return whole


# This student thinks that different blocks are always stacked along the first dimension, one below the other.
def assemble__wrong_stacked(array):
    blocks = {}
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if str(shard.index) in blocks and not np.array_equal(blocks[str(shard.index)], block):
            raise ValueError("copies differ")
        blocks.setdefault(str(shard.index), block)
    return np.concatenate(list(blocks.values()), axis=0)


# This student takes a part that is still all zeros for a part that nobody has written.
def assemble__wrong_zeros_are_empty(array):
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        there = whole[shard.index]
        if there.any() and not np.array_equal(there, block):
            raise ValueError("two devices hold different copies of a block")
        whole[shard.index] = block
    return whole


# This student thinks that copies stand on neighbouring devices, and compares each shard with the next one only.
def assemble__wrong_neighbours(array):
    whole = np.zeros(array.shape, array.dtype)
    shards = array.addressable_shards
    for one, other in zip(shards, shards[1:]):
        if one.index == other.index and not np.array_equal(one.data, other.data):
            raise ValueError(f"devices {one.device.id} and {other.device.id} differ")
    for shard in shards:
        whole[shard.index] = shard.data
    return whole


# This student thinks that two copies are equal when their sums are.
def assemble__wrong_sums(array):
    whole, sums = np.zeros(array.shape, array.dtype), {}
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if sums.setdefault(str(shard.index), block.sum()) != block.sum():
            raise ValueError("copies differ")
        whole[shard.index] = block
    return whole


# ---------------------------------------------------------------- shard_shape


def shard_shape__right_zip_longest(shape, spec, axis_sizes):
    """The shape of the block that one device holds."""
    import itertools

    block = []
    for length, entry in itertools.zip_longest(shape, tuple(spec)):
        for name in (entry,) if isinstance(entry, str) else entry or ():
            length //= axis_sizes[name]
        block.append(length)
    return tuple(block)


# This student forgot that entries may be left out at the end: zip stops with the spec.
def shard_shape__wrong_short_spec(shape, spec, axis_sizes):
    block = []
    for length, entry in zip(shape, spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        block.append(length // int(np.prod([axis_sizes[a] for a in axes], dtype=int)))
    return tuple(block)


# This student adds the sizes of the axes of a tuple where they multiply.
def shard_shape__wrong_sum(shape, spec, axis_sizes):
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    block = []
    for length, entry in zip(shape, entries):
        if entry is None:
            block.append(length)
        elif isinstance(entry, tuple):
            block.append(length // sum(axis_sizes[a] for a in entry))
        else:
            block.append(length // axis_sizes[entry])
    return tuple(block)


# This student loops over every entry as over a tuple of names, and a name as "data" falls apart into its letters.
def shard_shape__wrong_one_letter(shape, spec, axis_sizes):
    block = list(shape)
    for k, entry in enumerate(spec):
        for name in entry or ():
            block[k] //= axis_sizes[name]
    return tuple(block)


# This student returns how many blocks there are along each dimension, and forgot to divide by it.
def shard_shape__wrong_block_counts(shape, spec, axis_sizes):
    counts = [1] * len(shape)
    for k, entry in enumerate(spec):
        if entry is None:
            continue
        for name in (entry,) if isinstance(entry, str) else entry:
            counts[k] *= axis_sizes[name]
    return tuple(counts)


# ---------------------------------------------------------------- choose_spec

choose_spec__right_other_orders = {
    "two whole rows each": P(("y", "x"), None),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P(None, "x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}

# This student thinks that the first name of a tuple is the fast one.
choose_spec__wrong_fast_first = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("x", "y")),
    "picture": P(None, ("x", "y")),
}

# This student writes into the spec the axis along which there are to be copies.
choose_spec__wrong_names_the_copies = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "y"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("y"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}

# This student thinks that two axes for one dimension are two entries: P("x", "y") cuts the rows into eight.
choose_spec__wrong_no_tuple = {
    "two whole rows each": P("x", "y"),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P("y", "x"),
    "picture": P(None, ("y", "x")),
}

# This student thinks that the first entry gives columns where a card speaks of columns: that the cut runs that way.
choose_spec__wrong_first_entry = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P("x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P("y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}
