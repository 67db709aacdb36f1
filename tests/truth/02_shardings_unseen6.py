"""Answers to lesson 02, sixth batch, written by a reader of the notebook only."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def shard_shape(shape, spec, axis_sizes):
    """The shape of the block that one device holds (an answer of the same lesson)."""
    entries = list(spec) + [None] * (len(shape) - len(spec))
    block = []
    for length, entry in zip(shape, entries):
        axes = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        block.append(length // math.prod(axis_sizes[axis] for axis in axes))
    return tuple(block)


# ---------------------------------------------------------------- distribute
def distribute__right_asarray_device(value, spec, mesh):
    """The array `value`, laid out over `mesh` by `spec`."""
    return jnp.asarray(value, device=NamedSharding(mesh, spec))


# Only sizes and names of a mesh matter, so I make myself a mesh of the same shape.
def distribute__wrong_mesh_made_anew(value, spec, mesh):
    sizes = tuple(mesh.shape[name] for name in mesh.axis_names)
    own = jax.make_mesh(sizes, mesh.axis_names, axis_types=(AxisType.Auto,) * len(sizes))
    return jax.device_put(value, NamedSharding(own, spec))


# With the mesh set as the default, new arrays are laid out over it.
def distribute__wrong_default_mesh(value, spec, mesh):
    with jax.set_mesh(mesh):
        array = jnp.asarray(value)
    return array


# One puts the spec's names on the dimensions; I took those of the mesh, as in the example, where both are x, y.
def distribute__wrong_names_of_the_mesh(value, spec, mesh):
    names = mesh.axis_names[: value.ndim]
    return jax.device_put(jnp.asarray(value), NamedSharding(mesh, P(*names)))


# "Laid out" means that I should give back the piece that lies on a device.
def distribute__wrong_one_shard(value, spec, mesh):
    sharding = NamedSharding(mesh, spec)
    spread = jax.device_put(value, sharding)
    return spread.addressable_shards[0].data


# ---------------------------------------------------------------- bytes_held
def bytes_held__right_axes_left_out(shape, itemsize, spec, axis_sizes):
    """(bytes on one device, bytes on all devices, devices that hold each block)."""
    named = set()
    for entry in spec:
        if entry is not None:
            named |= {entry} if isinstance(entry, str) else set(entry)
    copies = math.prod(size for axis, size in axis_sizes.items() if axis not in named)
    everything = copies * math.prod(shape) * itemsize
    return everything // math.prod(axis_sizes.values()), everything, copies


# An axis is used if it stands among the entries of the spec; whatever does not is copies.
def bytes_held__wrong_tuples_overlooked(shape, itemsize, spec, axis_sizes):
    one = itemsize
    for length in shard_shape(shape, spec, axis_sizes):
        one *= length
    copies = 1
    for axis, size in axis_sizes.items():
        if axis not in list(spec):
            copies *= size
    return one, one * math.prod(axis_sizes.values()), copies


# All together the devices hold the array, and the array has shape times itemsize bytes.
def bytes_held__wrong_nbytes_is_all(shape, itemsize, spec, axis_sizes):
    block = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    whole = math.prod(shape) * itemsize
    devices = math.prod(axis_sizes.values())
    return block, whole, devices * block // whole


# The third number is the whole array divided by the block: so many of them there are.
def bytes_held__wrong_blocks_for_copies(shape, itemsize, spec, axis_sizes):
    one = math.prod(shard_shape(shape, spec, axis_sizes)) * itemsize
    n = int(np.prod(list(axis_sizes.values())))
    return one, n * one, math.prod(shape) * itemsize // one


# The mesh has as many devices as its axes have places, x and y added up.
def bytes_held__wrong_sizes_added(shape, itemsize, spec, axis_sizes):
    one = itemsize * math.prod(shard_shape(shape, spec, axis_sizes))
    together = one * sum(axis_sizes.values())
    copies = max(1, together // (itemsize * math.prod(shape)))
    return (one, together, copies)


# ---------------------------------------------------------------- shard_table
def shard_table__right_halving(shape, spec, mesh):
    """{device.id: the slices of the array that this device holds}."""
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in itertools.zip_longest(shape, spec):
            first, size = 0, length
            for axis in () if entry is None else (entry,) if isinstance(entry, str) else entry:
                size //= mesh.shape[axis]  # cut what is left, and keep my piece of it
                first += at[axis] * size
            slices.append(slice(first, first + size))
        table[device.id] = tuple(slices)
    return table


# Device k of an x by y mesh stands at (k // y, k % y).
def shard_table__wrong_place_from_id(shape, spec, mesh):
    sizes = tuple(mesh.shape.values())
    table = {}
    for device in mesh.devices.flat:
        at = dict(zip(mesh.axis_names, np.unravel_index(device.id, sizes)))
        slices = []
        for k, length in enumerate(shape):
            entry = spec[k] if k < len(spec) else None
            axes = () if entry is None else (entry,) if isinstance(entry, str) else entry
            number, blocks = 0, 1
            for axis in axes:
                number = number * mesh.shape[axis] + int(at[axis])
                blocks *= mesh.shape[axis]
            step = length // blocks
            slices.append(slice(number * step, (number + 1) * step))
        table[device.id] = tuple(slices)
    return table


# In a tuple the first axis is the one that goes up by one from block to block.
def shard_table__wrong_first_axis_fast(shape, spec, mesh):
    entries = tuple(spec) + (None,) * (len(shape) - len(spec))

    def part(length, entry, at):
        if entry is None:
            return slice(0, length)
        axes = [entry] if isinstance(entry, str) else list(entry)
        number, stride = 0, 1
        for axis in axes:
            number += at[axis] * stride
            stride *= mesh.shape[axis]
        return slice(number * length // stride, (number + 1) * length // stride)

    return {
        device.id: tuple(part(n, e, dict(zip(mesh.axis_names, place))) for n, e in zip(shape, entries))
        for place, device in np.ndenumerate(mesh.devices)
    }


# The slices of a device are those of the entries of the spec: zip them with the shape.
def shard_table__wrong_only_entries(shape, spec, mesh):
    answer = {}
    for place, device in np.ndenumerate(mesh.devices):
        where = {name: p for name, p in zip(mesh.axis_names, place)}
        held = ()
        for length, entry in zip(shape, spec):
            if entry is None:
                entry = ()
            if isinstance(entry, str):
                entry = (entry,)
            number = 0
            for axis in entry:
                number = number * mesh.shape[axis] + where[axis]
            size = length // math.prod(mesh.shape[axis] for axis in entry)
            held += (slice(number * size, (number + 1) * size),)
        answer[device.id] = held
    return answer


# The block's number in a tuple is the place along the one axis plus the place along the other.
def shard_table__wrong_places_added(shape, spec, mesh):
    block = shard_shape(shape, spec, dict(mesh.shape))
    entries = list(spec)
    while len(entries) < len(shape):
        entries.append(None)
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        slices = []
        for size, entry in zip(block, entries):
            axes = (entry,) if isinstance(entry, str) else (entry or ())
            number = sum(place[mesh.axis_names.index(axis)] for axis in axes)
            slices.append(slice(number * size, number * size + size))
        table[device.id] = tuple(slices)
    return table
