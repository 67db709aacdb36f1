"""Answers to lesson 02, nineteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
wide = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- shard_shape
def shard_shape__right_divide(shape, spec, axis_sizes):
    """The shape of the block that one device holds."""
    block = list(shape)
    for dimension, entry in enumerate(spec):
        if entry is None:
            continue
        for axis in (entry,) if isinstance(entry, str) else entry:
            block[dimension] //= axis_sizes[axis]
    return tuple(block)


# Thought: a spec has one entry for each dimension (entries that are left out at the end are lost, with their dimensions).
def shard_shape__wrong_short(shape, spec, axis_sizes):
    block = []
    for length, entry in zip(shape, spec):
        if entry is None:
            block.append(length)
        elif isinstance(entry, tuple):
            for axis in entry:
                length = length // axis_sizes[axis]
            block.append(length)
        else:
            block.append(length // axis_sizes[entry])
    return tuple(block)


# Thought: each axis of the tuple divides the dimension, but I begin from the whole length each time (only the last one counts).
def shard_shape__wrong_last_of_tuple(shape, spec, axis_sizes):
    block = list(shape)
    for k, entry in enumerate(spec):
        axes = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        for axis in axes:
            block[k] = shape[k] // axis_sizes[axis]
    return tuple(block)


# Thought: an entry is something that I can loop over, a name as well as a tuple (right for names of one letter only).
def shard_shape__wrong_letters(shape, spec, axis_sizes):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    block = ()
    for length, entry in zip(shape, entries):
        parts = 1
        for axis in entry or ():
            parts *= axis_sizes[axis]
        block += (length // parts,)
    return block


# Thought: the first dimension is cut by the first axis of the mesh and the second by the second, where an entry says "cut" at all.
def shard_shape__wrong_by_position(shape, spec, axis_sizes):
    sizes = list(axis_sizes.values())
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    block = []
    for k, length in enumerate(shape):
        if entries[k] is None:
            block.append(length)
        elif isinstance(entries[k], tuple):
            parts = 1
            for axis in entries[k]:
                parts *= axis_sizes[axis]
            block.append(length // parts)
        else:
            block.append(length // sizes[k % len(sizes)])
    return tuple(block)


# ---------------------------------------------------------------- shard_table
def shard_table__right_arrays(shape, spec, mesh):
    """{device.id: the slices of the array that this device holds}."""
    place_along = dict(zip(mesh.axis_names, np.indices(mesh.devices.shape)))
    entries = list(spec) + [None] * (len(shape) - len(spec))
    numbers, lengths = [], []
    for length, entry in zip(shape, entries):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
        number, parts = np.zeros(mesh.devices.shape, int), 1
        for axis in axes:
            number = number * mesh.shape[axis] + place_along[axis]
            parts *= mesh.shape[axis]
        numbers.append(number)
        lengths.append(length // parts)
    return {
        device.id: tuple(
            slice(int(number[place]) * length, (int(number[place]) + 1) * length)
            for number, length in zip(numbers, lengths)
        )
        for place, device in np.ndenumerate(mesh.devices)
    }


# Thought: the place of a device is its id, read row by row in the shape of the mesh.
def shard_table__wrong_id_is_place(shape, spec, mesh):
    table = {}
    for device in mesh.devices.flat:
        place = dict(zip(mesh.axis_names, np.unravel_index(device.id, mesh.devices.shape)))
        slices = []
        for k, n in enumerate(shape):
            entry = spec[k] if k < len(spec) else None
            if entry is None:
                axes = ()
            elif isinstance(entry, str):
                axes = (entry,)
            else:
                axes = entry
            number, length = 0, n
            for axis in axes:
                number = number * mesh.shape[axis] + int(place[axis])
                length //= mesh.shape[axis]
            slices.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(slices)
    return table


# Thought: in a tuple of axes the first one counts by ones, the next one is worth as many as the first has devices.
def shard_table__wrong_first_is_fast(shape, spec, mesh):
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for n, entry in zip(shape, tuple(spec) + (None,) * (len(shape) - len(spec))):
            axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
            number, worth = 0, 1
            for axis in axes:
                number += at[axis] * worth
                worth *= mesh.shape[axis]
            length = n // worth
            slices.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(slices)
    return table


# Thought: the place along an axis is multiplied with the size of that same axis (so that it is right only where the axes are equal).
def shard_table__wrong_radix(shape, spec, mesh):
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        where = dict(zip(mesh.axis_names, place))
        row = []
        for k in range(len(shape)):
            entry = spec[k] if k < len(spec) else None
            axes = [] if entry is None else [entry] if isinstance(entry, str) else list(entry)
            parts = 1
            for axis in axes:
                parts *= mesh.shape[axis]
            length = shape[k] // parts
            number = where[axes[-1]] if axes else 0
            for axis in axes[:-1]:
                number += where[axis] * mesh.shape[axis]
            row.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(row)
    return table


# Thought: one slice for each entry of the spec; what the spec leaves out is whole anyway and needs none.
def shard_table__wrong_slices_left_out(shape, spec, mesh):
    result = {}
    for place, device in np.ndenumerate(mesh.devices):
        slices = ()
        for length, entry in zip(shape, spec):
            number = 0
            for axis in () if entry is None else (entry,) if isinstance(entry, str) else entry:
                number = number * mesh.shape[axis] + place[mesh.axis_names.index(axis)]
                length //= mesh.shape[axis]
            slices += (slice(number * length, (number + 1) * length),)
        result[device.id] = slices
    return result


# ---------------------------------------------------------------- choose_spec
choose_spec__right_other_ways = {
    "two whole rows each": P(("y", "x"), None),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P(None, "x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}

# Thought: in a tuple the first axis counts by ones, so device 1 has block 4 where y is last.
choose_spec__wrong_digits = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("x", "y")),
    "picture": P(None, ("x", "y")),
}

# Thought: the pairs are formed along y, so y is the axis to write, and "two devices" is the axis with two.
choose_spec__wrong_axis_of_the_copies = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P(None, "y"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("y"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(None, ("y", "x")),
}

# Thought: P("x", "y") cuts over x and then over y what is left, so it makes eighths of the rows.
choose_spec__wrong_no_tuple = {
    "two whole rows each": P("x", "y"),
    "column blocks, two devices each": P(None, "x"),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P(None, "y"),
    "device 1: rows 8 and 9, whole": P("y", "x"),
    "picture": P(None, ("y", "x")),
}

# Thought: the first entry cuts from left to right and so makes column blocks.
choose_spec__wrong_first_is_columns = {
    "two whole rows each": P(("x", "y")),
    "column blocks, two devices each": P("x", None),
    "copies in pairs: 0-1, 2-3, 4-5, 6-7": P("x"),
    "even devices: left half, odd devices: right half": P("y", None),
    "device 1: rows 8 and 9, whole": P(("y", "x")),
    "picture": P(("y", "x"), None),
}
