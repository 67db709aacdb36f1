"""Answers to lesson 01, twenty-second batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- device_grid


def device_grid__right_counted(shape, names):
    ids = np.empty(shape, dtype=int)
    for number, place in enumerate(np.ndindex(*shape)):
        ids[place] = number
    return ids


# "There are eight devices, so a mesh is always of all eight": true of the 4 x 2 mesh, but not of a 2 x 2 or 3 x 2 one.
def device_grid__wrong_always_eight(shape, names):
    return np.arange(8).reshape(shape)


# "The names say which axis is counted first": the alphabetically last name is the fast one, wherever it stands.
def device_grid__wrong_by_alphabet(shape, names):
    order = sorted(range(len(names)), key=lambda k: names[k])
    grid = np.arange(np.prod(shape)).reshape([shape[k] for k in order])
    return np.transpose(grid, np.argsort(order))


# "One step along an axis passes over as many devices as this axis has": the axis' own length as its stride, not those after it.
def device_grid__wrong_own_stride(shape, names):
    ids = np.zeros(shape, dtype=int)
    for place in np.ndindex(*shape):
        ids[place] = sum(k * n for k, n in zip(place[:-1], shape[:-1])) + place[-1]
    return ids


# "A grid of a mesh is its .devices": the Device objects themselves, not their ids.
def device_grid__wrong_objects(shape, names):
    return np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape)


# ---- mesh_or_error

mesh_or_error__right_table = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 3 * 2,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 8 - 4,
}

# "batch" without the comma is a sequence of five letters: five names for one axis.
mesh_or_error__wrong_five_letters = mesh_or_error__right_table | {
    'jax.make_mesh((8,), ("batch"))': "error",
}

# A mesh has to divide the machine evenly: 6 does not divide 8, so the rest could not be a mesh; 4 does.
mesh_or_error__wrong_must_divide = mesh_or_error__right_table | {
    'jax.make_mesh((3, 2), ("rows", "columns"))': "error",
}

# "The names are free choices": one too few or too many does not hurt, the mesh has the devices all the same.
mesh_or_error__wrong_names_are_free = mesh_or_error__right_table | {
    'jax.make_mesh((4, 2), ("data",))': 8,
    'Mesh(np.array(jax.devices()), ("x", "y"))': 8,
}

# The devices are simulated, so JAX makes as many as the mesh asks for.
mesh_or_error__wrong_simulates_more = mesh_or_error__right_table | {
    'jax.make_mesh((4, 4), ("x", "y"))': 16,
}


# ---- read_devices

read_devices__right_table = {
    "devices": 8,
    "chips": 8 // 2,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# Each TpuDevice of the list is a chip.
read_devices__wrong_device_is_chip = {
    "devices": 8,
    "chips": 8,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# A place is (row, column, layer), as in a matrix, so she turned the first two of the line around.
read_devices__wrong_row_first = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (1, 0, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# Counts the devices from 1, so that the pairs are 1-2, 3-4, 5-6.
read_devices__wrong_pairs_from_one = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 5,
    "processes": 1,
}

# Takes the process_index that stands in each line for the number of processes.
read_devices__wrong_index_for_count = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 0,
}
