"""Answers to lesson 02, ninth batch, written by a reader of the notebook only."""

import math
from itertools import zip_longest

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- draw_it

_ids = [[2 * x + y for y in range(2)] for x in range(4)]

draw_it__right_from_grid = {
    "P('x', 'y')": [[{d} for d in row] for row in _ids],
    "P('y', 'x')": [[{d} for d in column] for column in zip(*_ids)],
    "P('x')": [[set(row)] for row in _ids],
    "P(None, 'y')": [[set(column) for column in zip(*_ids)]],
    "P(('x', 'y'))": [[{d}] for row in _ids for d in row],
    "P(None, ('y', 'x'))": [[{d} for column in zip(*_ids) for d in column]],
}

# torch.chunk over ranks: the first half of the devices gets the first half of the columns, the second half the other.
draw_it__wrong_consecutive_halves = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 1, 2, 3}, {4, 5, 6, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}

# Only one dimension is cut, so the picture is one list of blocks (a spec with a single entry is a single row of blocks).
draw_it__wrong_one_row_of_blocks = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}, {2, 3}, {4, 5}, {6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}

# In a tuple the first axis is the one that changes first, so it goes up by one from block to block.
draw_it__wrong_first_axis_fastest = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{2}], [{4}], [{6}], [{1}], [{3}], [{5}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}]],
}

_flat = np.arange(8)

# A spec with y first means a grid of y rows and x columns, so I reshape the devices to (2, 4) and read them off.
draw_it__wrong_reshape_for_transpose = {
    "P('x', 'y')": [[{int(d)} for d in row] for row in _flat.reshape(4, 2)],
    "P('y', 'x')": [[{int(d)} for d in row] for row in _flat.reshape(2, 4)],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{int(d)}] for d in _flat.reshape(4, 2).reshape(-1)],
    "P(None, ('y', 'x'))": [[{int(d)} for d in _flat.reshape(2, 4).reshape(-1)]],
}

# ---------------------------------------------------------------- shard_shape


def shard_shape__right_in_place(shape, spec, axis_sizes):
    block = list(shape)
    for dimension, entry in enumerate(spec):
        if entry is None:
            continue
        names = [entry] if isinstance(entry, str) else entry
        for name in names:
            block[dimension] //= axis_sizes[name]
    return tuple(block)


# zip pairs every dimension with its entry, and dimensions without an entry are not touched anyway.
def shard_shape__wrong_zip_stops(shape, spec, axis_sizes):
    cuts = []
    for entry in spec:
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        cuts.append(math.prod(axis_sizes[a] for a in axes))
    return tuple(length // cut for length, cut in zip(shape, cuts))


# Rule 1: the first entry goes with the first axis of the mesh, the second entry with the second, as the array's dimensions do.
def shard_shape__wrong_by_position(shape, spec, axis_sizes):
    sizes = list(axis_sizes.values())
    block = []
    for k, length in enumerate(shape):
        entry = spec[k] if k < len(spec) else None
        if entry is None:
            block.append(length)
        elif isinstance(entry, str):
            block.append(length // sizes[k])
        else:
            block.append(length // math.prod(axis_sizes[a] for a in entry))
    return tuple(block)


# With a tuple the devices of both axes share the dimension, so they are so many devices together: x plus y.
def shard_shape__wrong_adds_axes(shape, spec, axis_sizes):
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    block = ()
    for length, entry in zip(shape, entries):
        if entry is None:
            parts = 1
        elif isinstance(entry, tuple):
            parts = sum(axis_sizes[axis] for axis in entry)
        else:
            parts = axis_sizes[entry]
        block += (length // parts,)
    return block


# Looping over an entry goes through its axes whether it is "x" or ("x", "y"), so no case is needed (names are one letter here).
def shard_shape__wrong_letters(shape, spec, axis_sizes):
    return tuple(
        length // math.prod(axis_sizes[axis] for axis in (entry or ())) for length, entry in zip_longest(shape, spec)
    )


# ---------------------------------------------------------------- memory

_w = 8192 * 8192 * 4 / 2**20
_q = 128 * 2048 * 1

memory__right_copies = {
    "w as P('x', 'y'): MiB on one device": _w / 8,
    "w as P('x'): MiB on one device": _w / 4,
    "w as P('x'): MiB on all devices": _w * 2,  # two copies, along y
    "w as P(): MiB on all devices": _w * 8,
    "q as P(('x', 'y')): bytes on one device": _q // 16,
    "q as P(('x', 'y')): KiB on all devices": _q * 2 // 1024,  # two copies, along z
}

# The number in the name is the size of an entry: int8 has eight bytes (float32 I know by heart, it has four).
memory__wrong_int8_eight_bytes = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 131072,
    "q as P(('x', 'y')): KiB on all devices": 4096,
}

# An array that is cut is there once, in pieces, so all pieces together are nbytes; only P() makes copies.
memory__wrong_pieces_add_up = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 256,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# x and y are the axes of our mesh: 4 times 2 are eight blocks, and the larger mesh only has more copies of them.
memory__wrong_our_mesh = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 128 * 2048 // 8,
    "q as P(('x', 'y')): KiB on all devices": 128 * 2048 // 8 * 32 // 1024,
}

# An empty spec says nothing, so nothing was dealt out and the array is where every new array is: on device 0.
memory__wrong_empty_spec_one_device = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 256,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 512,
}
