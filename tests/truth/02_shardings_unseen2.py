"""Answers to lesson 02, second batch, written by a reader of the notebook only."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh


def distribute__right_two_lines(value, spec, mesh):
    layout = NamedSharding(mesh=mesh, spec=spec)
    return jax.device_put(jnp.asarray(value), layout)


def distribute__wrong_lessons_mesh(value, spec, mesh):
    """The notebook's 4 × 2, not the mesh given."""
    return jax.device_put(value, NamedSharding(MESH, spec))


def distribute__wrong_only_said(value, spec, mesh):
    """Says how, and puts nothing there."""
    sharding = NamedSharding(mesh, spec)
    return jnp.asarray(value)


def distribute__wrong_the_example(value, spec, mesh):
    """The spec of the example."""
    return jax.device_put(value, NamedSharding(mesh, P("x", "y")))


def distribute__wrong_no_sharding(value, spec, mesh):
    """device_put takes the array and one thing more."""
    return jax.device_put(value, mesh, spec)


draw_it__right_digits = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}

# in ('y', 'x') the blocks are dealt out in the order of the devices
draw_it__wrong_in_order = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {1}, {2}, {3}], [{4}, {5}, {6}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}, {1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}]],
}

# the 2 × 4 mesh of the examples
draw_it__wrong_the_wide_mesh = {
    "P('x', 'y')": [[{0}, {1}, {2}, {3}], [{4}, {5}, {6}, {7}]],
    "P('y', 'x')": [[{0}, {4}], [{1}, {5}], [{2}, {6}], [{3}, {7}]],
    "P('x')": [[{0, 1, 2, 3}], [{4, 5, 6, 7}]],
    "P(None, 'y')": [[{0, 4}, {1, 5}, {2, 6}, {3, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {4}, {1}, {5}, {2}, {6}, {3}, {7}]],
}

# None is overlooked: y cuts the rows; and likewise in the last
draw_it__wrong_none_skipped = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0, 1}], [{2, 3}], [{4, 5}], [{6, 7}]],
    "P(None, 'y')": [[{0, 2, 4, 6}], [{1, 3, 5, 7}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}], [{2}], [{4}], [{6}], [{1}], [{3}], [{5}], [{7}]],
}

# P('x') and P(None, 'y') without the copies
draw_it__wrong_no_copies = {
    "P('x', 'y')": [[{0}, {1}], [{2}, {3}], [{4}, {5}], [{6}, {7}]],
    "P('y', 'x')": [[{0}, {2}, {4}, {6}], [{1}, {3}, {5}, {7}]],
    "P('x')": [[{0}], [{2}], [{4}], [{6}]],
    "P(None, 'y')": [[{0}, {1}]],
    "P(('x', 'y'))": [[{0}], [{1}], [{2}], [{3}], [{4}], [{5}], [{6}], [{7}]],
    "P(None, ('y', 'x'))": [[{0}, {2}, {4}, {6}, {1}, {3}, {5}, {7}]],
}


def _axes(entry):
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def shard_table__right_ravel(shape, spec, mesh):
    """NumPy reads the digits."""
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    table = {}
    for place in np.ndindex(*mesh.devices.shape):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            axes = _axes(entry)
            sizes = tuple(mesh.shape[a] for a in axes)
            number = int(np.ravel_multi_index(tuple(at[a] for a in axes), sizes)) if axes else 0
            block = length // math.prod(sizes)
            slices.append(slice(number * block, (number + 1) * block))
        table[mesh.devices[place].id] = tuple(slices)
    return table


def shard_table__wrong_not_filled_up(shape, spec, mesh):
    """Dimensions that the spec leaves out get no slice."""
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, spec):
            number, parts = 0, 1
            for axis in _axes(entry):
                number = number * mesh.shape[axis] + at[axis]
                parts *= mesh.shape[axis]
            block = length // parts
            slices.append(slice(number * block, (number + 1) * block))
        table[device.id] = tuple(slices)
    return table


def shard_table__wrong_first_is_fast(shape, spec, mesh):
    """The first axis of a tuple counts fastest."""
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            number, parts = 0, 1
            for axis in _axes(entry):
                number += at[axis] * parts
                parts *= mesh.shape[axis]
            block = length // parts
            slices.append(slice(number * block, (number + 1) * block))
        table[device.id] = tuple(slices)
    return table


def shard_table__wrong_counted(shape, spec, mesh):
    """Counts the devices, where the mesh may have them in another order."""
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    table = {}
    for k, place in enumerate(np.ndindex(*mesh.devices.shape)):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            number, parts = 0, 1
            for axis in _axes(entry):
                number = number * mesh.shape[axis] + at[axis]
                parts *= mesh.shape[axis]
            block = length // parts
            slices.append(slice(number * block, (number + 1) * block))
        table[k] = tuple(slices)
    return table


def shard_table__wrong_start_and_length(shape, spec, mesh):
    """slice(start, length) for slice(start, end)."""
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            number, parts = 0, 1
            for axis in _axes(entry):
                number = number * mesh.shape[axis] + at[axis]
                parts *= mesh.shape[axis]
            block = length // parts
            slices.append(slice(number * block, block))
        table[device.id] = tuple(slices)
    return table


memory__right_powers_of_two = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 2**18 // 16,
    "q as P(('x', 'y')): KiB on all devices": 512,
}

# together the devices hold the array once: copies forgotten
memory__wrong_no_copies = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 256,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# q is divided by all 32 devices
memory__wrong_all_axes = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 32,
    "w as P('x'): MiB on all devices": 256,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 8192,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# int8 taken for eight bytes
memory__wrong_int8 = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 131072,
    "q as P(('x', 'y')): KiB on all devices": 4096,
}

# entries for bytes, in w
memory__wrong_entries = {
    "w as P('x', 'y'): MiB on one device": 8,
    "w as P('x'): MiB on one device": 16,
    "w as P('x'): MiB on all devices": 128,
    "w as P(): MiB on all devices": 512,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 512,
}
