"""Answers to lesson 02, twenty-third batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- memory

memory__right_powers = {
    "w as P('x', 'y'): MiB on one device": 2**28 / 8 / 2**20,
    "w as P('x'): MiB on one device": 2**28 / 4 / 2**20,
    "w as P('x'): MiB on all devices": 2 * 2**28 / 2**20,
    "w as P(): MiB on all devices": 8 * 2**28 / 2**20,
    "q as P(('x', 'y')): bytes on one device": 2**18 // 16,
    "q as P(('x', 'y')): KiB on all devices": 2 * 2**18 / 2**10,
}

# However it is laid out it is one array: all devices together hold its nbytes.
memory__wrong_nbytes_together = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 256,
    "w as P(): MiB on all devices": 256,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 256,
}

# Goes on with four bytes an entry for q, which is int8.
memory__wrong_four_bytes = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 65536,
    "q as P(('x', 'y')): KiB on all devices": 2048,
}

# In a tuple the first axis cuts; the other one has nothing left to cut in this dimension.
memory__wrong_tuple_first = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 512,
    "w as P(): MiB on all devices": 2048,
    "q as P(('x', 'y')): bytes on one device": 131072,
    "q as P(('x', 'y')): KiB on all devices": 4096,
}

# The copies are as many as the devices of the axes that are named: four of w, sixteen of q, one of P().
memory__wrong_copies_of_named = {
    "w as P('x', 'y'): MiB on one device": 32,
    "w as P('x'): MiB on one device": 64,
    "w as P('x'): MiB on all devices": 1024,
    "w as P(): MiB on all devices": 256,
    "q as P(('x', 'y')): bytes on one device": 16384,
    "q as P(('x', 'y')): KiB on all devices": 4096,
}

# ---------------------------------------------------------------- count_layouts


def count_layouts__right_rising(rank, axes):
    """Choose the axes that cut, then put them one by one into the dimensions, each at any place among those there."""
    from math import comb

    total = 0
    for used in range(axes + 1):
        ways = 1
        for k in range(used):
            ways *= rank + k
        total += comb(axes, used) * ways
    return total


# Each axis cuts one of the dimensions or nothing, and that is the whole layout.
def count_layouts__wrong_choices_only(rank, axes):
    return (rank + 1) ** axes


# "Nothing" is one more pile, and axes in it have an order as well.
def count_layouts__wrong_order_of_nothing(rank, axes):
    from itertools import product
    from math import factorial

    total = 0
    for choice in product(range(rank + 1), repeat=axes):
        ways = 1
        for pile in range(rank + 1):
            ways *= factorial(choice.count(pile))
        total += ways
    return total


# Each dimension is cut by one axis or by none, an axis by at most one dimension: partial matchings, no tuples.
def count_layouts__wrong_matchings(rank, axes):
    from math import comb, perm

    return sum(comb(rank, k) * perm(axes, k) for k in range(min(rank, axes) + 1))


# All axes that cut anything can stand in any order in the spec, also those which cut different dimensions.
def count_layouts__wrong_one_order_for_all(rank, axes):
    from itertools import product
    from math import factorial

    total = 0
    for choice in product(range(rank + 1), repeat=axes):
        total += factorial(sum(c < rank for c in choice))
    return total


# ---------------------------------------------------------------- shard_table


def _axes(entry):
    if entry is None:
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry)


def shard_table__right_strides(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        held = []
        for n, entry in zip(shape, entries):
            blocks, number = 1, 0
            for axis in reversed(_axes(entry)):
                number += blocks * at[axis]
                blocks *= mesh.shape[axis]
            held.append(slice(n * number // blocks, n * (number + 1) // blocks))
        table[device.id] = tuple(held)
    return table


# A device's place is its number written in the mesh's shape, so one needs no list of devices for it.
def shard_table__wrong_place_from_id(shape, spec, mesh):
    sizes = tuple(mesh.shape.values())
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for k, device in enumerate(sorted(mesh.devices.flat, key=lambda d: d.id)):
        at = dict(zip(mesh.axis_names, (int(i) for i in np.unravel_index(k, sizes))))
        held = []
        for n, entry in zip(shape, entries):
            number, blocks = 0, 1
            for axis in _axes(entry):
                number = number * mesh.shape[axis] + at[axis]
                blocks *= mesh.shape[axis]
            length = n // blocks
            held.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(held)
    return table


# To shift the digits one multiplies by the size of the slow axis (the first), not by that of the axis to come.
def shard_table__wrong_digit_base(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        held = []
        for n, entry in zip(shape, entries):
            axes = _axes(entry)
            number, blocks = 0, 1
            for axis in axes:
                number = number * mesh.shape[axes[0]] + at[axis]
                blocks *= mesh.shape[axis]
            length = n // blocks
            held.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(held)
    return table


# Loops over the spec alone; what the spec does not mention is whole anyway and needs no slice.
def shard_table__wrong_spec_only(shape, spec, mesh):
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        held = []
        for n, entry in zip(shape, spec):
            number, blocks = 0, 1
            for axis in _axes(entry):
                number = number * mesh.shape[axis] + at[axis]
                blocks *= mesh.shape[axis]
            length = n // blocks
            held.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(held)
    return table


# Dimension d is dealt out by the d-th coordinate of the device; the name only says into how many blocks.
def shard_table__wrong_coordinate_by_dimension(shape, spec, mesh):
    entries = list(spec) + [None] * (len(shape) - len(spec))
    table = {}
    for place, device in np.ndenumerate(mesh.devices):
        at = dict(zip(mesh.axis_names, place))
        held = []
        for d, (n, entry) in enumerate(zip(shape, entries)):
            axes = _axes(entry)
            number, blocks = 0, 1
            for axis in axes:
                number = number * mesh.shape[axis] + at[axis]
                blocks *= mesh.shape[axis]
            if len(axes) == 1:
                number = place[d % len(place)] % blocks
            length = n // blocks
            held.append(slice(number * length, (number + 1) * length))
        table[device.id] = tuple(held)
    return table
