"""Answers to lesson 01, tenth batch, written by a reader of the notebook only."""

import math

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- local_and_global

local_and_global__right_counted = {
    "len(jax.devices()) in process 1": 2 * 4,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}

# Thought that the ids run 0 to 7 in the list, so that entry 4 has the id 4.
local_and_global__wrong_numbered = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 4,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}

# Thought that in a process `y` is only that half of the rows which its own four devices hold.
local_and_global__wrong_half = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (32, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}

# Thought that a global array is open to everybody: each process reads all shards, so that one caller is enough.
local_and_global__wrong_global = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 8,
    "processes that must call jit(f)(y)": 1,
}

# Thought that an array is dealt out to processes, one shard for each, whatever devices they drive.
local_and_global__wrong_per_process = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 1,
    "processes that must call jit(f)(y)": 2,
}


# ---------------------------------------------------------------- topology_order
# The printed grid: 0 1 / 2 3 / 6 7 / 4 5

_grid = np.array([[0, 1], [2, 3], [6, 7], [4, 5]])

topology_order__right_read_off = {
    "the device in row 2, column 0": int(_grid[2, 0]),
    "who holds block 2 of P('x')": _grid[2].tolist(),
    "the block of device 4 under P('x')": int(np.argwhere(_grid == 4)[0, 0]),
    "after device 2 along x": 6,
    "along x from device 0": _grid[:, 0].tolist(),
}

# Read the devices off the grid, but took the block of a device from its id (id // 2), as on the simulated devices.
topology_order__wrong_halved_id = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 2,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Thought that a block has one holder, the one in the first column; forgot the copy in the other column.
topology_order__wrong_one_holder = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Thought that x runs from left to right as in geometry, so that "along x" is within a row.
topology_order__wrong_within_row = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 3,
    "along x from device 0": [0, 1],
}

# Took "x" for the first of the chips' coords: from chip (0, 0) to chip (1, 0), and from there back around to (0, 0).
topology_order__wrong_chip_column = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 0,
    "along x from device 0": [0, 2],
}


# ---------------------------------------------------------------- longest_hop


def longest_hop__right_rolled(coords, order):
    """The number of wires in the longest step of the closed ring that visits devices in this order."""
    points = np.array([coords[k] for k in order])
    steps = np.abs(points - np.roll(points, 1, axis=0))
    return int(steps.sum(axis=1).max())


# Thought that the grid's ends are wired to each other, as in the torus that the text mentions: the way around may be shorter.
def longest_hop__wrong_torus(coords, order):
    every = [coords[k] for k in order]
    wide = max(c for c, r in every) + 1
    high = max(r for c, r in every) + 1
    worst = 0
    for i in range(len(order)):
        (c0, r0), (c1, r1) = every[i], every[(i + 1) % len(order)]
        dc, dr = abs(c0 - c1), abs(r0 - r1)
        worst = max(worst, min(dc, wide - dc) + min(dr, high - dr))
    return worst


# Thought that the largest step in columns plus the largest step in rows is the largest step (they may be different steps).
def longest_hop__wrong_apart(coords, order):
    places = [coords[k] for k in order]
    pairs = list(zip(places, places[1:] + places[:1]))
    columns = max(abs(a[0] - b[0]) for a, b in pairs)
    rows = max(abs(a[1] - b[1]) for a, b in pairs)
    return columns + rows


# Added the differences first and took the absolute value of the sum: right and up cancel left and down.
def longest_hop__wrong_signs(coords, order):
    ring = list(order) + [order[0]]
    lengths = []
    for here, there in zip(ring, ring[1:]):
        a, b = coords[here], coords[there]
        lengths.append(abs((a[0] - b[0]) + (a[1] - b[1])))
    return max(lengths)


# Thought that wires are the straight distance rounded up to whole wires: right for a diagonal of one, not for one of two.
def longest_hop__wrong_straight(coords, order):
    return max(math.ceil(math.dist(coords[order[i - 1]], coords[order[i]])) for i in range(len(order)))
