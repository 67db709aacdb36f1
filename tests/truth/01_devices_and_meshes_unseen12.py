"""Answers to lesson 01, twelfth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- setup_cells

setup_cells__right_guard_first = {
    "config": ["B", "A", "C", "E", "D"],
    "flag": ["B", "A", "C", "E", "D"],
}

# Thought: asking for devices belongs right before the guard that counts them; a sum over four numbers needs no eight devices and may come earlier.
setup_cells__wrong_config_before_guard = {
    "config": ["A", "B", "D", "C", "E"],
    "flag": ["A", "C", "B", "D", "E"],
}

# Thought: only computing starts JAX; to look at the first device is harmless, and the flag may be set after it.
setup_cells__wrong_looking_is_harmless = {
    "config": ["A", "C", "B", "D", "E"],
    "flag": ["A", "B", "D", "C", "E"],
}

# Thought: JAX reads JAX_NUM_DEVICES, as its name says, and XLA_FLAGS (with a "host platform") is for something else.
setup_cells__wrong_variable = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "F", "B", "D", "E"],
}

# Thought: `import jax.numpy as jnp` brings the name `jax` with it, so that `import jax` may come any time.
setup_cells__wrong_jnp_brings_jax = {
    "config": ["B", "C", "A", "D", "E"],
    "flag": ["A", "C", "B", "E", "D"],
}


# ---------------------------------------------------------------- device_grid


def device_grid__right_steps(shape, names):
    """The ids of a mesh of this shape, with these axis names, over devices 0, 1, 2 …"""
    ids = np.zeros(shape, dtype=int)
    step = 1  # by how much the id grows for one step along the axis
    for axis in reversed(range(len(shape))):
        along = step * np.arange(shape[axis])
        ids = ids + along.reshape([-1 if other == axis else 1 for other in range(len(shape))])
        step *= shape[axis]
    return ids


# Thought: the first axis is the one that is gone along first, so ids grow by one down the first axis.
def device_grid__wrong_first_axis_first(shape, names):
    places = 1
    for length in shape:
        places *= length
    ids = np.zeros(shape, dtype=int)
    for number in range(places):
        rest, place = number, []
        for length in shape:
            place.append(rest % length)
            rest //= length
        ids[tuple(place)] = number
    return ids


# Thought: a mesh has all devices there are, so it is the list of all of them in this shape.
def device_grid__wrong_all_devices(shape, names):
    ids = np.array([device.id for device in jax.devices()])
    return ids.reshape(shape)


# Thought: axes are known by name, so ids run through them in the alphabetical order of their names.
def device_grid__wrong_sorted_names(shape, names):
    by_name = sorted(range(len(names)), key=lambda k: names[k])
    sorted_shape = [shape[k] for k in by_name]
    ids = np.arange(np.prod(shape)).reshape(sorted_shape)
    back = [by_name.index(k) for k in range(len(names))]
    return ids.transpose(back)


# Thought: one step along an axis passes over as many devices as the next axis has (and not over the product of all that follow).
def device_grid__wrong_next_length(shape, names):
    steps = list(shape[1:]) + [1]
    ids = np.zeros(shape, dtype=int)
    for place in np.ndindex(*shape):
        ids[place] = sum(k * step for k, step in zip(place, steps))
    return ids


# ---------------------------------------------------------------- read_devices

_board = [
    ((0, 0, 0), 0),
    ((0, 0, 0), 1),
    ((1, 0, 0), 0),
    ((1, 0, 0), 1),
    ((0, 1, 0), 0),
    ((0, 1, 0), 1),
    ((1, 1, 0), 0),
    ((1, 1, 0), 1),
]  # coords, core_on_chip

read_devices__right_from_the_list = {
    "devices": len(_board),
    "chips": len({coords for coords, core in _board}),
    "place of device 5": _board[5][0],
    "on one chip with device 6": next(
        k for k, (coords, core) in enumerate(_board) if coords == _board[6][0] and k != 6
    ),
    "processes": len({0}),
}

# Thought: each entry of the list is a chip, since each says TpuDevice.
read_devices__wrong_chip_each = {
    "devices": 8,
    "chips": 8,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}

# Thought: the layer is the core, so that the place of a device is column, row and core_on_chip.
read_devices__wrong_core_as_layer = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 1),
    "on one chip with device 6": 7,
    "processes": 1,
}

# Thought: core_on_chip is the number of the chip on which the core is: chips 0 and 1, and device 6 is on chip 0 with 4.
read_devices__wrong_core_on_chip_is_chip = {
    "devices": 8,
    "chips": 2,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 4,
    "processes": 1,
}

# Thought: process_index is 0 everywhere, so there are none.
read_devices__wrong_index_as_count = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 0,
}
