"""Answers to lesson 02, twenty-fourth batch, written by a reader of the notebook only."""

import itertools
import math

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- draw_it ----

draw_it__right_computed = {
    "P('x', 'y')": [[{2 * x + y} for y in range(2)] for x in range(4)],
    "P('y', 'x')": [[{2 * x + y} for x in range(4)] for y in range(2)],
    "P('x')": [[{2 * x, 2 * x + 1}] for x in range(4)],
    "P(None, 'y')": [[set(range(0, 8, 2)), set(range(1, 8, 2))]],
    "P(('x', 'y'))": [[{k}] for k in range(8)],
    "P(None, ('y', 'x'))": [[{2 * x + y} for y in range(2) for x in range(4)]],
}

# Thought that P('y', 'x') makes a 2 x 4 grid and deals the devices out in it in the order of their numbers.
draw_it__wrong_numbered_anew = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {1}, {2}, {3}], [{4}, {5}, {6}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}

# Thought that a tuple is a set of axes, whose order says nothing: device k holds block k.
draw_it__wrong_tuple_is_a_set = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}]],
}

# Thought that where an axis is not named only its first place holds data, and the other devices stay empty.
draw_it__wrong_no_copies = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0}], [{2}], [{4}], [{6}]],
    "P(None, 'y')": [[{0}, {1}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}

# Thought that two halves of the columns go to two halves of the machine, the devices 0 to 3 and 4 to 7.
draw_it__wrong_consecutive_halves = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 1, 2, 3}, {4, 5, 6, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}


# ---- shard_shape ----


def shard_shape__right_in_place(shape, spec, axis_sizes):
    block = list(shape)
    for dimension, entry in enumerate(spec):
        if entry is None:
            continue
        for axis in (entry,) if isinstance(entry, str) else entry:
            block[dimension] //= axis_sizes[axis]
    return tuple(block)


# Forgot that entries may be missing at the end: zip stops there, and the dimensions after it are lost.
def shard_shape__wrong_zip_stops(shape, spec, axis_sizes):
    block = []
    for n, entry in zip(shape, spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        block.append(n // math.prod(axis_sizes[a] for a in axes))
    return tuple(block)


# Thought that the slow axis, the first of a tuple, makes the blocks, and the others only say in which order they lie.
def shard_shape__wrong_slow_axis_only(shape, spec, axis_sizes):
    block = []
    for n, entry in itertools.zip_longest(shape, spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        block.append(n // axis_sizes[axes[0]] if axes else n)
    return tuple(block)


# Went through an entry letter by letter, which also serves for tuples: right while every name is a single letter.
def shard_shape__wrong_letters(shape, spec, axis_sizes):
    block = []
    for n, entry in itertools.zip_longest(shape, spec, fillvalue=None):
        for axis in entry or ():
            n //= axis_sizes[axis]
        block.append(n)
    return tuple(block)


# Thought that dimension k is divided by the mesh's k-th axis, and the names only say whether to cut.
def shard_shape__wrong_by_position(shape, spec, axis_sizes):
    sizes = list(axis_sizes.values())
    block = list(shape)
    for k, entry in enumerate(spec):
        if entry is None:
            continue
        if isinstance(entry, tuple):
            block[k] //= math.prod(axis_sizes[a] for a in entry)
        else:
            block[k] //= sizes[k % len(sizes)]
    return tuple(block)


# ---- attributes ----

attributes__right_table = {
    "len(cut.devices())": mesh.size,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": mesh.size,
    "cut.addressable_shards[5].data.shape": (16 // 2, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16 // 2, 8),
}

# Thought that the shards are the different blocks, of which there are two, though all eight devices are used.
attributes__wrong_two_shards = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 2,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# Thought that y, the mesh's second axis, cuts the array's second dimension.
attributes__wrong_second_dimension = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (16, 4),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 4),
}

# Thought that an array of which every block has copies (here four) is called fully replicated.
attributes__wrong_copies_are_replicated = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": True,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# Thought that the array is local as in MPI: .shape is the block's, and a result comes back whole on every device.
attributes__wrong_local_shape = {
    "len(cut.devices())": 8,
    "cut.shape": (8, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 8),
}
