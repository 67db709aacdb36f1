"""Answers to lesson 02, tenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- attributes

attributes__right_by_hand = {
    "len(cut.devices())": 4 * 2,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (16 // 2, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# Thought that shards are the different blocks, so that four copies of a half count as one shard.
attributes__wrong_distinct = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 2,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# Thought that y is the axis of the columns, wherever it stands in the spec.
attributes__wrong_columns = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (16, 4),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 4),
}

# Thought "replicated" means that nothing is held by one device alone, and here every half is on four.
attributes__wrong_copies = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": True,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# Thought that the rows of each half are shared out further among the four devices along x, as eight devices hold the array.
attributes__wrong_shared_out = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (2, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (2, 8),
}


# ---------------------------------------------------------------- count_layouts


def count_layouts__right_insert(rank, axes):
    """The number of different layouts of an array of this rank, on a mesh with so many axes."""
    # Place one axis after the other. With k axes placed, the next goes nowhere, or into one of k + rank gaps.
    ways = [1]
    for _ in range(axes):
        more = ways + [0]
        for k, n in enumerate(ways):
            more[k + 1] += n * (k + rank)
        ways = more
    return sum(ways)


# Thought that the axes that cut nothing also stand in an order that counts.
def count_layouts__wrong_nothing_ordered(rank, axes):
    import itertools
    import math

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        total += math.prod(math.factorial(choice.count(d)) for d in range(rank + 1))
    return total


# Thought that the order of all axes that are used matters, also when they cut different dimensions.
def count_layouts__wrong_every_order(rank, axes):
    import math

    return sum(math.perm(axes, used) * rank**used for used in range(axes + 1))


# Thought that a dimension that several axes share has two layouts, one way round and the other, however many share it.
def count_layouts__wrong_two_ways(rank, axes):
    import itertools

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        ways = 1
        for dimension in range(1, rank + 1):
            if choice.count(dimension) >= 2:
                ways = ways * 2
        total = total + ways
    return total


# Counted the entries that one dimension can have and took that to the power of the rank; forgot that an axis may stand once only.
def count_layouts__wrong_each_dimension(rank, axes):
    import math

    entries = sum(math.perm(axes, m) for m in range(axes + 1))
    return entries**rank


# ---------------------------------------------------------------- assemble


def assemble__right_grouped(array):
    """The whole array; ValueError where copies of a block differ."""
    groups = {}
    for shard in array.addressable_shards:
        where = tuple(s.indices(n) for s, n in zip(shard.index, array.shape))
        groups.setdefault(where, []).append(shard)
    whole = np.empty(array.shape, array.dtype)
    for shards in groups.values():
        copies = [np.asarray(s.data) for s in shards]
        for shard, copy in zip(shards[1:], copies[1:]):
            if not np.array_equal(copies[0], copy):
                raise ValueError(f"devices {shards[0].device.id} and {shard.device.id} differ in {shard.index}")
        whole[shards[0].index] = copies[0]
    return whole


# Thought that where zeros stand nothing has been written yet, though a block may itself be zeros.
def assemble__wrong_zero_is_empty(array):
    whole = np.zeros(array.shape, array.dtype)
    for shard in array.addressable_shards:
        block = np.asarray(shard.data)
        if whole[shard.index].any() and not np.array_equal(whole[shard.index], block):
            raise ValueError("copies of a block differ")
        whole[shard.index] = block
    return whole


# Thought that copies lie on devices that follow one another, and compared each shard with the one before it only.
def assemble__wrong_neighbours(array):
    whole = np.zeros(array.shape, array.dtype)
    before = None
    for shard in array.addressable_shards:
        if before is not None and str(before.index) == str(shard.index):
            if not np.array_equal(np.asarray(before.data), np.asarray(shard.data)):
                raise ValueError(f"devices {before.device.id} and {shard.device.id} do not hold the same block")
        whole[shard.index] = np.asarray(shard.data)
        before = shard
    return whole


# Thought that there are copies only when the array is fully replicated, as in the example with the liar.
def assemble__wrong_only_full(array):
    shards = array.addressable_shards
    if array.is_fully_replicated:
        first = np.asarray(shards[0].data)
        for s in shards:
            if not np.array_equal(first, np.asarray(s.data)):
                raise ValueError("the copies differ")
        return first
    out = np.zeros(array.shape, array.dtype)
    for s in shards:
        out[s.index] = np.asarray(s.data)
    return out


# Thought that copies may differ by rounding and are the same if they are close.
def assemble__wrong_close(array):
    whole = np.zeros(array.shape, array.dtype)
    written = np.zeros(array.shape, bool)
    for shard in array.addressable_shards:
        if written[shard.index].all() and not np.allclose(whole[shard.index], shard.data):
            raise ValueError(f"device {shard.device.id} has another block at {shard.index}")
        whole[shard.index] = shard.data
        written[shard.index] = True
    return whole
