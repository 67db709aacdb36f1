"""Answers to lesson 02, written by a reader of the notebook only."""

import itertools
import math

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- shard_shape
def shard_shape__right_padded(shape, spec, axis_sizes):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    block = []
    for length, entry in zip(shape, entries):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        block.append(length // math.prod(axis_sizes[a] for a in axes))
    return tuple(block)


def shard_shape__right_in_place(shape, spec, axis_sizes):
    block = list(shape)
    for k, entry in enumerate(spec):
        if isinstance(entry, str):
            block[k] //= axis_sizes[entry]
        elif entry is not None:
            for axis in entry:
                block[k] //= axis_sizes[axis]
    return tuple(block)


def shard_shape__wrong_zip(shape, spec, axis_sizes):
    # dimensions beyond the end of the spec are dropped
    block = []
    for length, entry in zip(shape, spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        block.append(length // math.prod(axis_sizes[a] for a in axes))
    return tuple(block)


def shard_shape__wrong_first_of_tuple(shape, spec, axis_sizes):
    # of a tuple of axes only the first one cuts
    block = list(shape)
    for k, entry in enumerate(spec):
        if isinstance(entry, tuple):
            entry = entry[0]
        if entry is not None:
            block[k] //= axis_sizes[entry]
    return tuple(block)


def shard_shape__wrong_sum(shape, spec, axis_sizes):
    # the sizes of the axes in a tuple are added instead of multiplied
    block = list(shape)
    for k, entry in enumerate(spec):
        if entry is not None:
            axes = (entry,) if isinstance(entry, str) else entry
            block[k] //= sum(axis_sizes[a] for a in axes)
    return tuple(block)


def shard_shape__wrong_our_mesh(shape, spec, axis_sizes):
    # the notebook's mesh in place of axis_sizes
    return NamedSharding(mesh, spec).shard_shape(tuple(shape))


def shard_shape__wrong_float(shape, spec, axis_sizes):
    # the number of blocks in each dimension, not their length
    block = [1] * len(shape)
    for k, entry in enumerate(spec):
        if entry is not None:
            for a in (entry,) if isinstance(entry, str) else entry:
                block[k] *= axis_sizes[a]
    return tuple(block)


# --- bytes_held
def _block(shape, spec, axis_sizes):
    return shard_shape__right_padded(shape, spec, axis_sizes)


def bytes_held__right_ratio(shape, itemsize, spec, axis_sizes):
    one = math.prod(_block(shape, spec, axis_sizes)) * itemsize
    everywhere = one * math.prod(axis_sizes.values())
    return one, everywhere, everywhere // (math.prod(shape) * itemsize)


def bytes_held__right_unnamed(shape, itemsize, spec, axis_sizes):
    named = []
    for entry in spec:
        named += [] if entry is None else [entry] if isinstance(entry, str) else list(entry)
    cut = math.prod(axis_sizes[a] for a in named)
    copies = math.prod(size for a, size in axis_sizes.items() if a not in named)
    whole = itemsize * math.prod(shape)
    return whole // cut, whole * copies, copies


def bytes_held__wrong_nbytes(shape, itemsize, spec, axis_sizes):
    # the array counted once: copies cost nothing
    one = math.prod(_block(shape, spec, axis_sizes)) * itemsize
    whole = math.prod(shape) * itemsize
    return one, whole, math.prod(axis_sizes.values()) * one // whole


def bytes_held__wrong_entries(shape, itemsize, spec, axis_sizes):
    # entries, not bytes: itemsize is not used
    one = math.prod(_block(shape, spec, axis_sizes))
    everywhere = one * math.prod(axis_sizes.values())
    return one, everywhere, everywhere // math.prod(shape)


def bytes_held__wrong_blocks(shape, itemsize, spec, axis_sizes):
    # third: the number of different blocks, not the devices that hold each
    one = math.prod(_block(shape, spec, axis_sizes)) * itemsize
    return one, one * math.prod(axis_sizes.values()), math.prod(shape) * itemsize // one


def bytes_held__wrong_eight(shape, itemsize, spec, axis_sizes):
    # eight devices, whatever the mesh
    one = math.prod(_block(shape, spec, axis_sizes)) * itemsize
    return one, 8 * one, 8 * one // (math.prod(shape) * itemsize)


# --- choose_spec
_CHOSEN = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}
choose_spec__right_plain = dict(_CHOSEN)
choose_spec__right_other = {
    **_CHOSEN,
    "two whole rows each": P(("y", "x"), None),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P(None, "x"),
}
choose_spec__wrong_digits = {
    **_CHOSEN,
    "device 1: rows 8 and 9, whole": P(("x", "y")),
}  # the slow digit taken for the fast one: rows 2 and 3
choose_spec__wrong_picture = {**_CHOSEN, "picture": P(None, ("x", "y"))}  # columns in the order of the devices
choose_spec__wrong_pairs = {
    **_CHOSEN,
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("y"),
}  # the axis of the copies is named instead of left out
choose_spec__wrong_two_devices = {
    **_CHOSEN,
    "column blocks, two devices each": P(None, "y"),
}  # two blocks on four devices each
choose_spec__wrong_halves = {
    **_CHOSEN,
    "even devices: left half, odd devices: right half": P("y"),
}  # halves of the rows


# --- count_layouts
def count_layouts__right_product(rank, axes):
    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        ways = 1
        for dimension in range(rank):
            ways *= math.factorial(choice.count(dimension))
        total += ways
    return total


def count_layouts__right_formula(rank, axes):
    # which k axes cut; the first can stand in `rank` places, every further one in one place more
    return sum(math.comb(axes, k) * math.prod(rank + j for j in range(k)) for k in range(axes + 1))


def count_layouts__wrong_power(rank, axes):
    # the orders inside a tuple are not counted
    return (rank + 1) ** axes


def count_layouts__wrong_must_cut(rank, axes):
    # every axis has to cut something: "nothing" is left out of the choices
    total = 0
    for choice in itertools.product(range(rank), repeat=axes):
        total += math.prod(math.factorial(choice.count(d)) for d in range(rank))
    return total


def count_layouts__wrong_nothing_ordered(rank, axes):
    # the axes that cut nothing are put in order as well
    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        total += math.prod(math.factorial(choice.count(d)) for d in range(rank + 1))
    return total


def count_layouts__wrong_swapped(rank, axes):
    # dimensions choose axes, not axes dimensions
    return (axes + 1) ** rank


# --- assemble
def assemble__right_seen(array):
    whole, seen = np.zeros(array.shape, array.dtype), np.zeros(array.shape, bool)
    for shard in array.addressable_shards:
        data = np.asarray(shard.data)
        if np.any(seen[shard.index]) and not np.array_equal(whole[shard.index], data):
            raise ValueError(f"device {shard.device.id} holds another copy of {shard.index}")
        whole[shard.index] = data
        seen[shard.index] = True
    return whole


def assemble__right_dict(array):
    blocks = {}
    for shard in array.addressable_shards:
        first = blocks.setdefault(str(shard.index), shard)
        if not np.array_equal(first.data, shard.data):
            raise ValueError("copies differ")
    whole = np.empty(array.shape, array.dtype)
    for shard in blocks.values():
        whole[shard.index] = shard.data
    return whole


def assemble__wrong_last_wins(array):
    # copies are never compared
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        whole[shard.index] = np.asarray(shard.data)
    return whole


def assemble__wrong_asarray(array):
    # compares with np.asarray only the shards of replica 0
    whole = np.asarray(array)
    for shard in array.addressable_shards:
        if shard.replica_id == 0 and not np.array_equal(whole[shard.index], shard.data):
            raise ValueError("copies differ")
    return whole


def assemble__wrong_any_two(array):
    # compares each shard with the one before, also where they are different blocks
    whole, before = np.zeros(array.shape, array.dtype), None
    for shard in array.addressable_shards:
        if before is not None and not np.array_equal(before, shard.data):
            raise ValueError("copies differ")
        before = np.asarray(shard.data)
        whole[shard.index] = before
    return whole


def assemble__wrong_concatenate(array):
    # blocks one below the other in the order of the devices
    return np.concatenate([np.asarray(shard.data) for shard in array.addressable_shards])


def assemble__wrong_prints(array):
    # prints that copies differ, and raises nothing
    blocks, whole = {}, np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        first = blocks.setdefault(str(shard.index), np.asarray(shard.data))
        if not np.array_equal(first, shard.data):
            print("copies differ:", shard.index)
        whole[shard.index] = first
    return whole


def assemble__wrong_zero_test(array):
    # a block of zeros counts as not yet written
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        old = whole[shard.index]
        if np.any(old) and not np.array_equal(old, shard.data):
            raise ValueError("copies differ")
        whole[shard.index] = np.asarray(shard.data)
    return whole
