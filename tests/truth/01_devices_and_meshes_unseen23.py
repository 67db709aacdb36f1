"""Answers to lesson 01, twenty-third batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- topology_order

topology_order__right_grid = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Reads the grid for the places, but takes blocks to go to devices by their ids: device k holds block k // 2.
topology_order__wrong_blocks_by_id = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [4, 5],
    "the block of device 4 under P('x')": 2,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# "Along x" means within one row of the grid, from left to right.
topology_order__wrong_within_row = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 3,
    "along x from device 0": [0, 1],
}

# Counts rows and blocks from one: row 2 is the second line of the print, and its block is block 2.
topology_order__wrong_from_one = {
    "the device in row 2, column 0": 2,
    "who holds block 2 of P('x')": [2, 3],
    "the block of device 4 under P('x')": 4,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Takes the ring of the four chips (0, 1, 3, 2 around the square) for the order of devices along x.
topology_order__wrong_chips = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 0,
    "along x from device 0": [0, 1, 3, 2],
}

# ---------------------------------------------------------------- array_facts

array_facts__right_asked = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# y is now eight pieces, so it is a list of them, and its shape is that of a piece.
array_facts__wrong_pieces = {
    "devices of x": 1,
    "type of y": "a list of arrays",
    "devices of y": 8,
    "shape of y": (16, 32),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# device_put moves the array itself: x and y are two names of one array that is now spread.
array_facts__wrong_moved = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 8,
    "devices of z": 8,
}

# jit computes on all devices, but hands the result back to the default device.
array_facts__wrong_result_collected = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 1,
}

# Only x of the mesh deals an array out over devices (4 of them); y merely cuts the columns inside a device.
array_facts__wrong_first_axis_only = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 4,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 4,
}

# ---------------------------------------------------------------- setup_cells

setup_cells__right_late_imports = {
    "config": ["A", "C", "E", "B", "D"],
    "flag": ["B", "A", "C", "E", "D"],
}

# Thinks that only computing starts JAX, so jax.devices() may stand before the flag.
setup_cells__wrong_asking_is_harmless = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "B", "D", "C", "E"],
}

# Has learnt "ask before everything else" and puts the request above the import that it needs.
setup_cells__wrong_before_import = {
    "config": ["C", "A", "B", "D", "E"],
    "flag": ["A", "C", "B", "D", "E"],
}

# Takes the second variable for the one that JAX reads, and leaves out XLA_FLAGS.
setup_cells__wrong_other_variable = {
    "config": ["A", "B", "C", "E", "D"],
    "flag": ["A", "F", "B", "D", "E"],
}

# A guard belongs at the top, before one asks for anything: then one would see whether asking is needed.
setup_cells__wrong_guard_first = {
    "config": ["A", "E", "C", "B", "D"],
    "flag": ["A", "B", "E", "C", "D"],
}
