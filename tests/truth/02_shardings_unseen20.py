"""Answers to lesson 02, twentieth batch, written by a reader of the notebook only."""

import itertools
import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def shard_shape(shape, spec, axis_sizes):
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    block = []
    for length, entry in zip(shape, entries):
        for name in () if entry is None else entry if isinstance(entry, tuple) else (entry,):
            length //= axis_sizes[name]
        block.append(length)
    return tuple(block)


def names_in(spec):
    """My helper: all axes that a spec names."""
    names = []
    for entry in spec:
        if entry is not None:
            names.extend(entry if isinstance(entry, tuple) else (entry,))
    return names


# ---------------------------------------------------------------- attributes

attributes__right_halves = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# Thinks that y cuts the columns (y is the second axis of the mesh, so the second dimension).
attributes__wrong_columns = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (16, 4),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 4),
}

# Thinks that there is one shard for each different block, and that its copies are not shards of their own.
attributes__wrong_two_shards = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 2,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# Thinks that an array is replicated as soon as there are copies of every block.
attributes__wrong_replicated = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": True,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# Thinks that without a sharding of its own the result of jnp.sin is a whole array on each device.
attributes__wrong_sin_whole = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 8),
}

# ---------------------------------------------------------------- count_layouts


def count_layouts__right_dealt(rank, axes):
    import math

    # Choose the k axes that cut; then put them one by one into the spec: the first has `rank` places, each later one a place more.
    total = 0
    for k in range(axes + 1):
        total += math.comb(axes, k) * math.prod(range(rank, rank + k))
    return total


# Thinks that each axis chooses a dimension or nothing, and that this is all.
def count_layouts__wrong_power(rank, axes):
    return (rank + 1) ** axes


# Thinks that whichever axes made the same choice can be ordered, also those that cut nothing.
def count_layouts__wrong_orders_nothing(rank, axes):
    import math

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        total += math.prod(math.factorial(choice.count(c)) for c in range(rank + 1))
    return total


# Thinks that all axes which cut anything can be put in any order, also when they cut different dimensions.
def count_layouts__wrong_orders_all(rank, axes):
    import math

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        total += math.factorial(sum(c > 0 for c in choice))
    return total


# Thinks that m axes on one dimension make m layouts (any of them may be the slow one), which is right for two.
def count_layouts__wrong_slowest(rank, axes):
    import math

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        total += math.prod(max(1, choice.count(c)) for c in range(1, rank + 1))
    return total


# ---------------------------------------------------------------- bytes_held


def bytes_held__right_left_out(shape, itemsize, spec, axis_sizes):
    named = names_in(spec)
    copies = math.prod(size for name, size in axis_sizes.items() if name not in named)
    everywhere = math.prod(shape) * itemsize * copies
    return everywhere // math.prod(axis_sizes.values()), everywhere, copies


# Thinks that the copies along several axes that are left out add up, where they multiply.
def bytes_held__wrong_added(shape, itemsize, spec, axis_sizes):
    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    left_out = [size for name, size in axis_sizes.items() if name not in names_in(spec)]
    return one, one * math.prod(axis_sizes.values()), sum(left_out) or 1


# Thinks that all devices together hold the array, so its nbytes, whatever the copies.
def bytes_held__wrong_nbytes(shape, itemsize, spec, axis_sizes):
    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    array = math.prod(shape) * itemsize
    return one, array, one * math.prod(axis_sizes.values()) // array


# Thinks that "how many devices hold each block" is the array divided by the block: that is the number of blocks.
def bytes_held__wrong_blocks(shape, itemsize, spec, axis_sizes):
    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    return one, one * math.prod(axis_sizes.values()), math.prod(shape) * itemsize // one


# Thinks that a spec has an entry for every dimension, so that zip loses the dimensions whose entry was left out.
def bytes_held__wrong_zip(shape, itemsize, spec, axis_sizes):
    devices, one, cuts = math.prod(axis_sizes.values()), itemsize, 1
    for length, entry in zip(shape, spec):
        names = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        pieces = math.prod(axis_sizes[name] for name in names)
        one *= length // pieces
        cuts *= pieces
    return one, one * devices, devices // cuts
