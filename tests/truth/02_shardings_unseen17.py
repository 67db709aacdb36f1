"""Answers to lesson 02, seventeenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def shard_shape(shape, spec, axis_sizes):
    """The shape of the block that one device holds."""
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    block = []
    for length, entry in zip(shape, entries):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        for axis in axes:
            length //= axis_sizes[axis]
        block.append(length)
    return tuple(block)


# ---- memory: w has 256 MiB on 8 devices, q has 256 KiB on 32

memory__right_powers = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 512,
}

# Thought that all devices together hold the array once, however it is laid out.
memory__wrong_held_once = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 256,
    "w as P(): MiB on all devices": 256,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# For one device divided by the number of devices of the mesh; for all of them multiplied the array by the copies.
memory__wrong_divided_by_devices = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 32,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 8192,
    "q as P(('x', 'y')): KiB on all devices": 512,
}

# Thought that of a tuple only the first axis cuts (x = 2), and the other is there for the order.
memory__wrong_tuple_first_only = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 131072,
    "q as P(('x', 'y')): KiB on all devices": 4096,
}

# Thought that on a 4 x 2 mesh x is the width, as in a plot: two devices; so P('x') halves w and leaves four copies.
memory__wrong_x_is_width = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 128,
    "w as P('x'): MiB on all devices": 1024,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 512,
}

# ---- bytes_held


def bytes_held__right_by_axes(shape, itemsize, spec, axis_sizes):
    """(bytes on one device, bytes on all devices, devices that hold each block)."""
    import math

    left_out = dict(axis_sizes)
    for entry in spec:
        for axis in (entry,) if isinstance(entry, str) else entry or ():
            del left_out[axis]
    copies = math.prod(left_out.values())
    devices = math.prod(axis_sizes.values())
    together = math.prod(shape) * itemsize * copies
    return together // devices, together, copies


# Thought that every axis which is left out adds one more holder of each block, instead of multiplying them by its length.
def bytes_held__wrong_one_copy_per_axis(shape, itemsize, spec, axis_sizes):
    import math

    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    named = []
    for entry in spec:
        if entry is not None:
            named += [entry] if isinstance(entry, str) else list(entry)
    copies = 1 + len([axis for axis in axis_sizes if axis not in named])
    return one, one * math.prod(axis_sizes.values()), copies


# Thought that an axis is named if it is `in` the spec, and did not look into tuples.
def bytes_held__wrong_tuples_not_opened(shape, itemsize, spec, axis_sizes):
    import math

    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    copies = 1
    for axis, size in axis_sizes.items():
        if axis not in tuple(spec):
            copies *= size
    return one, one * math.prod(axis_sizes.values()), copies


# Thought that the memory of all is a block times its copies: forgot that there are several blocks.
def bytes_held__wrong_block_times_copies(shape, itemsize, spec, axis_sizes):
    import math

    block = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    blocks = math.prod(shape) * itemsize // block
    copies = math.prod(axis_sizes.values()) // blocks
    return block, block * copies, copies


# Walked through shape and spec in step, and did not see that zip drops the dimensions for which the spec has no entry.
def bytes_held__wrong_short_spec_dropped(shape, itemsize, spec, axis_sizes):
    import math

    one, cut = itemsize, 1
    for length, entry in zip(shape, spec):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        parts = math.prod(axis_sizes[axis] for axis in axes)
        one *= length // parts
        cut *= parts
    devices = math.prod(axis_sizes.values())
    return one, one * devices, devices // cut


# ---- draw_it

draw_it__right_digits = {
    "P('x', 'y')": [[{2 * x + y} for y in range(2)] for x in range(4)],
    "P('y', 'x')": [[{2 * x + y} for x in range(4)] for y in range(2)],
    "P('x')": [[{2 * x, 2 * x + 1}] for x in range(4)],
    "P(None, 'y')": [[set(range(0, 8, 2)), set(range(1, 8, 2))]],
    "P(('x', 'y'))": [[{k}] for k in range(8)],
    "P(None, ('y', 'x'))": [[{2 * x + y} for y in range(2) for x in range(4)]],
}

# Thought that the order of the axes in a tuple does not matter: together they cut into eight, and device k has block k.
draw_it__wrong_tuple_in_order = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}]],
}

# For P('y', 'x') found the right tiling, two by four, and then filled it with the devices as one reads.
draw_it__wrong_filled_as_one_reads = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {1}, {2}, {3}], [{4}, {5}, {6}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}

# Thought that the axis which is named is the one along which the devices hold the same.
draw_it__wrong_copies_along_named = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 2, 4, 6}], [{1, 3, 5, 7}]],
    "P(None, 'y')": [[{0, 1}, {2, 3}, {4, 5}, {6, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}

# Passed over the None in front: thought that the only entry that cuts anything cuts the rows.
draw_it__wrong_none_skipped = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}], [{1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}], [{2}], [{4}], [{6}], [{1}], [{3}], [{5}], [{7}]],
}
