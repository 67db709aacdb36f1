"""Answers to lesson 01, seventeenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---- local_and_global

local_and_global__right_counted = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}

# Thought that jax.devices() lists what this process drives, as it does on one host, and local_devices says the same.
local_and_global__wrong_own_list = {
    "len(jax.devices()) in process 1": 4,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}

# Thought that a device's id is its index in the list, as in all the lesson's other cells.
local_and_global__wrong_id_is_index = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 4,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}

# Thought that in a process y.shape is the shape of the half of the rows which this process has.
local_and_global__wrong_half_shape = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (32, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}

# Thought that y is one array which every process can use as a whole: it reads all shards, and one call drives all devices.
local_and_global__wrong_one_for_all = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 8,
    "processes that must call jit(f)(y)": 1,
}

# ---- topology_order: the grid is [[0, 1], [2, 3], [6, 7], [4, 5]]

topology_order__right_grid = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Read the grid where it was asked for places, but for the way back took device k to hold block k // 2, by its id.
topology_order__wrong_id_gives_block = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 2,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Thought that x is the horizontal axis, so that along x one goes along a row of the grid.
topology_order__wrong_within_row = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 3,
    "along x from device 0": [0, 1],
}

# Counted rows and blocks from 1: row 2 is the second that is printed.
topology_order__wrong_from_one = {
    "the device in row 2, column 0": 2,
    "who holds block 2 of P('x')": [2, 3],
    "the block of device 4 under P('x')": 4,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Thought that P("x") deals a block to each place of the grid in turn, so that place 2 has block 2 and device 4, at place 6, block 6.
topology_order__wrong_eight_blocks = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [2],
    "the block of device 4 under P('x')": 6,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# ---- make_training_mesh


def make_training_mesh__right_by_hand(n_data, n_model, explicit):
    """A mesh with axes "data" and "model", of Explicit or of Auto type."""
    sizes = {"data": n_data, "model": n_model}
    kind = AxisType.Explicit if explicit else AxisType.Auto
    # reshape raises the ValueError where there are too few devices
    grid = np.array(jax.devices()[: n_data * n_model]).reshape(tuple(sizes.values()))
    return Mesh(grid, tuple(sizes), axis_types=(kind,) * len(sizes))


# Thought of matrices: the lengths were given in the order of the axes "columns, rows", so model's length came first.
def make_training_mesh__wrong_lengths_swapped(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_model, n_data), ("data", "model"), axis_types=(kind, kind))


# Thought that Explicit is about how the batch is laid out, so that only the axis "data" needs the type.
def make_training_mesh__wrong_model_stays_auto(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind, AxisType.Auto))


# Thought that Auto is what make_mesh makes when it is told nothing (as it was until JAX 0.8).
def make_training_mesh__wrong_auto_by_default(n_data, n_model, explicit):
    if explicit:
        return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    return jax.make_mesh((n_data, n_model), ("data", "model"))


# Thought that a mesh takes all devices, so that n_data follows from n_model and reshape may find it.
def make_training_mesh__wrong_all_devices(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return Mesh(np.array(jax.devices()).reshape(-1, n_model), ("data", "model"), axis_types=(kind,) * 2)
