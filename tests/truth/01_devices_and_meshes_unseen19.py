"""Answers to lesson 01, nineteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- read_devices
read_devices__right_counted = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# Thought: core_on_chip is the number of the chip, and it takes the values 0 and 1, so there are two chips.
read_devices__wrong_core_is_chip = {
    "devices": 8,
    "chips": 2,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# Thought: coords are (row, column, layer), as in NumPy, so I turn them round to get (column, row, layer).
read_devices__wrong_row_first = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (1, 0, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# Thought: every line says process_index=0, so the number of processes is 0.
read_devices__wrong_index_as_number = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 0,
}

# Thought: pairs of cores go 1-2, 3-4, 5-6; and the core (1) is the last part of the place of device 5.
read_devices__wrong_pairs_from_one = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 1),
    "on one chip with device 6": 5,
    "processes": 1,
}


# ---------------------------------------------------------------- device_grid
def device_grid__right_digits(shape, names):
    """The ids of a mesh of this shape, with these axis names, over devices 0, 1, 2 …"""
    shape = tuple(shape)
    places = np.indices(shape)  # one array of places for each axis
    return np.ravel_multi_index(tuple(places), shape)


# Thought: the mesh always has all the devices, so I number all that there are and put them into the shape.
def device_grid__wrong_all_devices(shape, names):
    return np.arange(jax.device_count()).reshape(shape)


# Thought: x is the first axis, so the ids grow by one along the first axis.
def device_grid__wrong_first_axis_fast(shape, names):
    n = 1
    for size in shape:
        n *= size
    return np.arange(n).reshape(shape, order="F")


# Thought: the mesh itself knows, and mesh.devices is already a NumPy array of this shape (but of Device objects, not ids).
def device_grid__wrong_device_objects(shape, names):
    grid = jax.make_mesh(shape, names, axis_types=(AxisType.Auto,) * len(names))
    return grid.devices


# Thought: a grid has rows and columns (right for two axes only).
def device_grid__wrong_two_axes_only(shape, names):
    rows, columns = shape[0], shape[-1]
    return np.array([[columns * row + column for column in range(columns)] for row in range(rows)])


# ---------------------------------------------------------------- topology_order
# the printed grid: [[0 1] [2 3] [6 7] [4 5]]
topology_order__right_grid = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Thought: along x means within a row, from column to column.
topology_order__wrong_x_in_a_row = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 3,
    "along x from device 0": [0, 1],
}

# Thought: rows and blocks are counted from 1, so row 2 and block 2 are the second row.
topology_order__wrong_from_one = {
    "the device in row 2, column 0": 2,
    "who holds block 2 of P('x')": [2, 3],
    "the block of device 4 under P('x')": 4,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Thought: blocks go to places in the grid, but a step along x adds two to the id, as in lesson's part 5.
topology_order__wrong_step_of_two = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 4,
    "along x from device 0": [0, 2, 4, 6],
}

# Thought: the block of a device is its place when the grid is read as one line, and block 2 is then the third of that line.
topology_order__wrong_flat_place = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [2],
    "the block of device 4 under P('x')": 6,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}
