"""Answers to lesson 01, sixth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- read_devices
read_devices__right_counted = {
    "devices": 8,
    "chips": len({(c, r, 0) for c in range(2) for r in range(2)}),
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# Every line of the list says TpuDevice, so every line is a chip, and a process drives each board of four cores.
read_devices__wrong_each_line_a_chip = {
    "devices": 8,
    "chips": 8,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# Coordinates are given as in a matrix, row before column, so I turned them round.
read_devices__wrong_row_first = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (1, 0, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# I counted the lines from one: line 5 and line 6 stand together, with the same coords.
read_devices__wrong_lines_from_one = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 5,
    "processes": 1,
}

# Every chip needs a process that feeds its cores; and a place is only complete with the core.
read_devices__wrong_process_per_chip = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0, 1),
    "on one chip with device 6": 7,
    "processes": 4,
}


# ---------------------------------------------------------------- mesh_or_error
mesh_or_error__right_three_questions = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 3 * 2,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 8 - 4,
}

# ("batch") is a string, five letters, so there are five names for one axis: an error.
mesh_or_error__wrong_string_is_five_names = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': "error",
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# A mesh has to use all the devices there are: 6 of 8 and 4 of 8 cannot be.
mesh_or_error__wrong_must_use_all = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': "error",
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': "error",
}

# One name too few is as with P: what is left out at the end simply has no name.
mesh_or_error__wrong_trailing_names_optional = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': 8,
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# Mesh arranges the eight devices in a grid by itself, as make_mesh does; and [4:] starts at the fourth device, so five are left.
mesh_or_error__wrong_mesh_folds = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': 8,
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 5,
}


# ---------------------------------------------------------------- longest_hop
def longest_hop__right_index_minus_one(coords, order):
    """The number of wires in the longest step of the closed ring that visits devices in this order."""
    longest = 0
    for k in range(len(order)):
        (c0, r0), (c1, r1) = coords[order[k - 1]], coords[order[k]]  # k = 0: from the last to the first
        longest = max(longest, abs(c0 - c1) + abs(r0 - r1))
    return longest


# A path through n devices has n - 1 steps.
def longest_hop__wrong_open(coords, order):
    steps = [abs(coords[a][0] - coords[b][0]) + abs(coords[a][1] - coords[b][1]) for a, b in zip(order, order[1:])]
    return max(steps)


# The way is the difference of the columns plus that of the rows, and one abs around all of it makes it positive.
def longest_hop__wrong_one_abs(coords, order):
    places = [coords[k] for k in order]
    following = places[1:] + places[:1]
    return max(abs((b[0] - a[0]) + (b[1] - a[1])) for a, b in zip(places, following))


# order[k] says at which place of the ring device k stands.
def longest_hop__wrong_inverse_order(coords, order):
    ring = [order.index(k) for k in sorted(order)]
    longest = 0
    for here, there in zip(ring, ring[1:] + ring[:1]):
        column, row = coords[here]
        next_column, next_row = coords[there]
        longest = max(longest, abs(column - next_column) + abs(row - next_row))
    return longest


# A message can go across columns and rows at the same time, so the larger of the two differences counts.
def longest_hop__wrong_larger_difference(coords, order):
    places = np.array([coords[k] for k in order])
    steps = np.abs(places - np.roll(places, -1, axis=0))
    return int(steps.max())
