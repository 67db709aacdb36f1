"""Answers to lesson 02, fourth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader import put

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- distribute


def distribute__right_program(value, spec, mesh):
    return jax.jit(lambda whole: whole, out_shardings=NamedSharding(mesh, spec))(value)


# This student uses the course's helper, which the exercise forbids.
def distribute__wrong_course_put(value, spec, mesh):
    return put(value, spec, mesh)


# This student thinks that the names are all that counts of a mesh, and makes one of the same shape (the order of the devices is lost).
def distribute__wrong_mesh_made_anew(value, spec, mesh):
    again = jax.make_mesh(mesh.devices.shape, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))
    return jax.device_put(value, NamedSharding(again, spec))


# This student thinks that each axis of the mesh cuts the dimension of its number, and does not look at the spec.
def distribute__wrong_spec_ignored(value, spec, mesh):
    return jax.device_put(value, NamedSharding(mesh, P(*mesh.axis_names[: value.ndim])))


# This student thinks that x is the horizontal direction, so that the first name of a spec belongs to the columns.
def distribute__wrong_turned_round(value, spec, mesh):
    entries = list(spec) + [None] * (value.ndim - len(spec))
    return jax.device_put(value, NamedSharding(mesh, P(*entries[::-1])))


# ---------------------------------------------------------------- count_layouts


def count_layouts__right_closed_form(rank, axes):
    import math

    # k of the axes cut something; they come one by one: into rank lists, then rank + 1 gaps, rank + 2 ...
    return sum(math.comb(axes, k) * math.prod(range(rank, rank + k)) for k in range(axes + 1))


# This student lets every axis choose a dimension or nothing, and forgets that the order in a tuple counts.
def count_layouts__wrong_no_orders(rank, axes):
    return (rank + 1) ** axes


# This student thinks that all axes which cut anything have an order among them, also those of different dimensions.
def count_layouts__wrong_order_of_all(rank, axes):
    import itertools
    import math

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        total += math.factorial(sum(c < rank for c in choice))
    return total


# This student counts orders for "nothing" as well, as if the axes that cut nothing stood in a tuple too.
def count_layouts__wrong_order_of_nothing(rank, axes):
    import itertools
    import math

    return sum(
        math.prod(math.factorial(choice.count(d)) for d in range(rank + 1))
        for choice in itertools.product(range(rank + 1), repeat=axes)
    )


# This student thinks that a shared dimension has two orders, this way round and the other, however many axes share it.
def count_layouts__wrong_two_orders(rank, axes):
    import itertools

    total = 0
    for choice in itertools.product(range(rank + 1), repeat=axes):
        ways = 1
        for d in range(rank):
            if choice.count(d) > 1:
                ways *= 2
        total += ways
    return total


# ---------------------------------------------------------------- shard_table


def shard_table__right_ravelled(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            names = () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
            if names:
                sizes = [mesh.shape[name] for name in names]
                number = int(np.ravel_multi_index([at[name] for name in names], sizes))
                length //= int(np.prod(sizes))
            else:
                number = 0
            slices.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(slices)
    return table


# This student reads the axes of a tuple from the right: the first name is the fast one.
def shard_table__wrong_first_is_fast(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            names = () if entry is None else (entry,) if isinstance(entry, str) else entry
            number, blocks = 0, 1
            for name in names:
                number += blocks * at[name]
                blocks *= mesh.shape[name]
            slices.append(slice(number * length // blocks, (number + 1) * length // blocks))
        table[device.id] = tuple(slices)
    return table


# This student takes a device's number for its place: device k stands where k stands when one counts the mesh through.
def shard_table__wrong_number_for_place(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for k in sorted(device.id for device in mesh.devices.flat):
        at = dict(zip(mesh.axis_names, np.unravel_index(k, mesh.devices.shape)))
        slices = []
        for length, entry in zip(shape, entries):
            names = () if entry is None else (entry,) if isinstance(entry, str) else entry
            number, blocks = 0, 1
            for name in names:
                number = number * mesh.shape[name] + int(at[name])
                blocks *= mesh.shape[name]
            part = length // blocks
            slices.append(slice(number * part, (number + 1) * part))
        table[k] = tuple(slices)
    return table


# This student asks JAX for its own table and only fills in the open ends, which the exercise forbids.
def shard_table__wrong_asked_jax(shape, spec, mesh):
    where = NamedSharding(mesh, spec)
    return {
        device.id: tuple(slice(*part.indices(length)[:2]) for part, length in zip(index, shape))
        for device, index in where.devices_indices_map(tuple(shape)).items()
    }


# This student thinks that a tuple cuts into as many blocks as its axes have devices together: the sum, not the product, and the digits with it.
def shard_table__wrong_sum_of_sizes(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        slices = []
        for length, entry in zip(shape, entries):
            names = () if entry is None else (entry,) if isinstance(entry, str) else entry
            blocks = sum(mesh.shape[name] for name in names) or 1
            number = sum(at[name] for name in names)
            part = length // blocks
            slices.append(slice(number * part, (number + 1) * part))
        table[device.id] = tuple(slices)
    return table
