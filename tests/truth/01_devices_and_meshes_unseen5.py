"""Answers to lesson 01, fifth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- device_grid


def device_grid__right_ravel(shape, names):
    return np.ravel_multi_index(tuple(np.indices(shape)), tuple(shape))


# Thought that ids run down the columns first, because the first axis comes first.
def device_grid__wrong_columns(shape, names):
    return np.arange(np.prod(shape)).reshape(shape, order="F")


# Thought that a mesh always has all eight devices.
def device_grid__wrong_alleight(shape, names):
    return np.arange(8).reshape(shape)


# Thought of a grid as rows and columns: the first axis, and all the rest; right for two axes only.
def device_grid__wrong_twodims(shape, names):
    return np.arange(np.prod(shape)).reshape(shape[0], -1)


# Thought that devices are counted from 1.
def device_grid__wrong_fromone(shape, names):
    places = int(np.prod(shape))
    return np.arange(1, places + 1).reshape(shape)


# ---- topology_order

topology_order__right_printed = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Read the first two rows off the grid, and then went on as if ids were in order.
topology_order__wrong_ids = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 2,
    "after device 2 along x": 4,
    "along x from device 0": [0, 2, 4, 6],
}

# Thought that "along x" goes along a row of the printed grid.
topology_order__wrong_row = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 3,
    "along x from device 0": [0, 1],
}

# Thought that each block is on one device, the first of its row: forgot the copies along y.
topology_order__wrong_nocopy = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# Counted rows and blocks from 1.
topology_order__wrong_offbyone = {
    "the device in row 2, column 0": 2,
    "who holds block 2 of P('x')": [2, 3],
    "the block of device 4 under P('x')": 4,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}


# ---- make_training_mesh


def make_training_mesh__right_dict(n_data, n_model, explicit):
    sizes = {"data": n_data, "model": n_model}
    kind = (AxisType.Auto, AxisType.Explicit)[bool(explicit)]
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(kind,) * len(sizes))


# Thought that Auto is what one gets without saying anything.
def make_training_mesh__wrong_default(n_data, n_model, explicit):
    if explicit:
        return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    return jax.make_mesh((n_data, n_model), ("data", "model"))


# Thought of the grid as width by height, so that the lengths stand the other way round.
def make_training_mesh__wrong_swapped(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_model, n_data), ("data", "model"), axis_types=(kind, kind))


# Thought that a mesh takes all devices, and that Mesh does the same as make_mesh.
def make_training_mesh__wrong_alldevices(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    grid = np.array(jax.devices()).reshape(n_data, n_model)
    return Mesh(grid, ("data", "model"), axis_types=(kind, kind))


# Thought that only the first axis, the data, has to be typed, and that the model's layout stays the compiler's business.
def make_training_mesh__wrong_oneaxis(n_data, n_model, explicit):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh((n_data, n_model), ("data", "model"), axis_types=(kind, AxisType.Auto))
