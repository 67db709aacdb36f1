"""Answers to lesson 02, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- count_layouts


def count_layouts__right_one_axis_at_a_time(rank, axes):
    """The number of different layouts of an array of this rank, on a mesh with so many axes."""
    # ways[k]: layouts that name k of the axes looked at so far. The next axis is left out, or is inserted somewhere
    # into the entries: with k names standing in `rank` entries there are k + rank places for it.
    ways = [1]
    for _ in range(axes):
        following = ways + [0]
        for named, number in enumerate(ways):
            following[named + 1] += number * (named + rank)
        ways = following
    return sum(ways)


# Thought: a tuple has two orders, forwards and backwards, however many axes stand in it.
def count_layouts__wrong_forwards_backwards(rank, axes):
    import itertools

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        layouts = 1
        for dimension in range(rank):
            if choice.count(dimension) > 1:
                layouts *= 2
        total += layouts
    return total


# Thought: axes that chose the same thing may stand in any order, and "nothing" is one of the things that they choose.
def count_layouts__wrong_orders_of_nothing(rank, axes):
    import itertools
    import math

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        layouts = 1
        for chosen in range(rank + 1):
            layouts *= math.factorial(choice.count(chosen))
        total += layouts
    return total


# Thought: an entry is None or one name, so the names are dealt out to the dimensions, at most one to each.
def count_layouts__wrong_one_name_each(rank, axes):
    import math

    return sum(math.comb(rank, k) * math.perm(axes, k) for k in range(min(rank, axes) + 1))


# Thought: whatever axes are named, they can be named in any order, also where they stand in different entries.
def count_layouts__wrong_order_of_all_named(rank, axes):
    import itertools
    import math

    total = 0
    for choice in itertools.product([None, *range(rank)], repeat=axes):
        named = [dimension for dimension in choice if dimension is not None]
        total += math.factorial(len(named))
    return total


# ---------------------------------------------------------------- distribute


def distribute__right_callback(value, spec, mesh):
    """The array `value`, laid out over `mesh` by `spec`."""
    layout = NamedSharding(mesh, spec)

    def block(index):
        return value[index]

    return jax.make_array_from_callback(value.shape, layout, block)


# Thought: device_put brings the array itself to the devices, so that it is there afterwards.
def distribute__wrong_in_place(value, spec, mesh):
    array = jnp.asarray(value)
    jax.device_put(array, NamedSharding(mesh, spec))
    return array


# Thought: None cuts nothing and may be left out, at the end or elsewhere.
def distribute__wrong_nones_dropped(value, spec, mesh):
    entries = [entry for entry in spec if entry is not None]
    return jax.device_put(value, NamedSharding(mesh, P(*entries)))


# Thought: P takes the tuple of the entries of a spec.
def distribute__wrong_tuple_for_entries(value, spec, mesh):
    entries = tuple(spec)
    layout = NamedSharding(mesh, P(entries))
    return jax.device_put(value, layout)


# Thought: blocks are dealt out in reading order to the devices in their order, and copies stand side by side.
def distribute__wrong_reading_order(value, spec, mesh):
    layout = NamedSharding(mesh, spec)
    lengths = layout.shard_shape(value.shape)
    counts = [whole // length for whole, length in zip(value.shape, lengths)]
    blocks = [
        value[tuple(slice(k * length, (k + 1) * length) for k, length in zip(place, lengths))]
        for place in np.ndindex(*counts)
    ]
    copies = mesh.devices.size // len(blocks)
    in_order = [block for block in blocks for _ in range(copies)]
    pieces = [jax.device_put(block, device) for block, device in zip(in_order, mesh.devices.flat)]
    return jax.make_array_from_single_device_arrays(value.shape, layout, pieces)


# ---------------------------------------------------------------- shard_table


def shard_table__right_numbers_as_arrays(shape, spec, mesh):
    """{device.id: the slices of the array that this device holds}."""
    grid = mesh.devices.shape
    places = dict(zip(mesh.axis_names, np.indices(grid)))  # for each axis: the place along it, for the whole mesh

    entries = list(spec) + [None] * (len(shape) - len(tuple(spec)))
    cuts = []  # for each dimension: the numbers of the blocks (for the whole mesh), and a block's length
    for whole, entry in zip(shape, entries):
        names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        number, parts = np.zeros(grid, dtype=int), 1
        for name in names:
            number = number * mesh.shape[name] + places[name]
            parts *= mesh.shape[name]
        cuts.append((number, whole // parts))

    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        starts = [(int(number[place]) * length, length) for number, length in cuts]
        table[device.id] = tuple(slice(start, start + length) for start, length in starts)
    return table


# Thought: device k stands at the k-th place of the grid, so its id gives its place.
def shard_table__wrong_id_is_place(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(tuple(spec)))
    ids = sorted(device.id for device in mesh.devices.flat)
    table = {}
    for k, device_id in enumerate(ids):
        place = dict(zip(mesh.axis_names, np.unravel_index(k, mesh.devices.shape)))
        slices = []
        for whole, entry in zip(shape, entries):
            names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
            number, parts = 0, 1
            for name in names:
                number = number * mesh.shape[name] + int(place[name])
                parts *= mesh.shape[name]
            length = whole // parts
            slices.append(slice(number * length, (number + 1) * length))
        table[device_id] = tuple(slices)
    return table


# Thought: a spec has one entry for each dimension, so shape and spec can be gone through together.
def shard_table__wrong_entries_left_out(shape, spec, mesh):
    def numbered(entry, place):
        names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        number, parts = 0, 1
        for name in names:
            number = number * mesh.shape[name] + place[name]
            parts *= mesh.shape[name]
        return number, parts

    table = {}
    for where, device in np.ndenumerate(mesh.devices):
        place = dict(zip(mesh.axis_names, where))
        slices = []
        for whole, entry in zip(shape, tuple(spec)):
            number, parts = numbered(entry, place)
            length = whole // parts
            slices.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(slices)
    return table


# Thought: a tuple only says which axes cut the dimension; they count in the order in which the mesh has them.
def shard_table__wrong_order_of_the_mesh(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(tuple(spec)))
    table = {}
    for where, device in np.ndenumerate(mesh.devices):
        slices = []
        for whole, entry in zip(shape, entries):
            named = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
            number, parts = 0, 1
            for name, place in zip(mesh.axis_names, where):
                if name in named:
                    number = number * mesh.shape[name] + place
                    parts *= mesh.shape[name]
            length = whole // parts
            slices.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(slices)
    return table


# Thought: rows are dealt out over an axis like cards, one to each place and then again from the first.
def shard_table__wrong_dealt_like_cards(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(tuple(spec)))
    table = {}
    for where, device in np.ndenumerate(mesh.devices):
        place = dict(zip(mesh.axis_names, where))
        slices = []
        for whole, entry in zip(shape, entries):
            if entry is None:
                slices.append(slice(0, whole))
                continue
            number, parts = 0, 1
            for name in (entry,) if isinstance(entry, str) else tuple(entry):
                number = number * mesh.shape[name] + place[name]
                parts *= mesh.shape[name]
            slices.append(slice(number, whole, parts))
        table[device.id] = tuple(slices)
    return table
