"""Answers to lesson 01, fifteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def axis_groups__right_coordinates(mesh, axis):
    """Sort every device into the drawer named by its place along all the other axes."""
    k = mesh.axis_names.index(axis)
    drawers = {}
    for place, device in np.ndenumerate(mesh.devices):
        elsewhere = place[:k] + place[k + 1 :]
        drawers.setdefault(elsewhere, []).append(device.id)
    return list(drawers.values())


# Thought: the devices that share their place along the axis ("row 2 of x") are the ones that work together over it.
def axis_groups__wrong_sameplace(mesh, axis):
    k = mesh.axis_names.index(axis)
    groups = {}
    for place, device in np.ndenumerate(mesh.devices):
        groups.setdefault(place[k], []).append(device.id)
    return [groups[p] for p in sorted(groups)]


# Thought: the ids in a mesh are 0, 1, 2 ... in the order of the grid, so the places may be numbered instead of asked.
def axis_groups__wrong_places(mesh, axis):
    sizes = tuple(mesh.shape[name] for name in mesh.axis_names)
    ids = np.arange(int(np.prod(sizes))).reshape(sizes)
    k = mesh.axis_names.index(axis)
    return np.moveaxis(ids, k, -1).reshape(-1, sizes[k]).tolist()


# Thought: an axis is either the first one (columns of the grid) or it is not (lines of the grid); forgets a middle axis.
def axis_groups__wrong_twoaxes(mesh, axis):
    ids = np.vectorize(lambda device: device.id)(mesh.devices)
    length = mesh.shape[axis]
    if axis == mesh.axis_names[0]:
        lines = ids.reshape(length, -1).T
    else:
        lines = ids.reshape(-1, length)
    return [[int(i) for i in one] for one in lines]


# Thought: after the axis is moved to the end there are as many groups as the axis is long (number and length swapped).
def axis_groups__wrong_swapped(mesh, axis):
    ids = np.array([device.id for device in mesh.devices.flat]).reshape(mesh.devices.shape)
    k = mesh.axis_names.index(axis)
    moved = np.moveaxis(ids, k, -1)
    return moved.reshape(mesh.shape[axis], -1).tolist()


_board = [(k, (k // 2 % 2, k // 4, 0), k % 2, 0) for k in range(8)]  # id, coords, core, process: read off the list
read_devices__right_counted = {
    "devices": len(_board),
    "chips": len({coords for _, coords, _, _ in _board}),
    "place of device 5": _board[5][1],
    "on one chip with device 6": next(k for k, coords, _, _ in _board if coords == _board[6][1] and k != 6),
    "processes": len({process for *_, process in _board}),
}
# Thought: a TpuDevice is a chip, so eight lines are eight chips.
read_devices__wrong_devicechips = {
    "devices": 8,
    "chips": 8,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 1,
}
# Thought: core_on_chip is 0 or 1, so there are two chips; the chip's number is core_on_chip, and 4 is 6's neighbour on it.
read_devices__wrong_corechips = {
    "devices": 8,
    "chips": 2,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 4,
    "processes": 1,
}
# Thought: the core belongs to a device's place, since without it two devices would stand at the same place.
read_devices__wrong_coreplace = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0, 1),
    "on one chip with device 6": 7,
    "processes": 1,
}
# Thought: every chip is driven by a process of its own.
read_devices__wrong_processchip = {
    "devices": 8,
    "chips": 4,
    "place of device 5": (0, 1, 0),
    "on one chip with device 6": 7,
    "processes": 4,
}

_printed = [[0, 1], [2, 3], [6, 7], [4, 5]]
_first_column = [row[0] for row in _printed]
topology_order__right_lookup = {
    "the device in row 2, column 0": _printed[2][0],
    "who holds block 2 of P('x')": _printed[2],
    "the block of device 4 under P('x')": next(k for k, row in enumerate(_printed) if 4 in row),
    "after device 2 along x": _first_column[_first_column.index(2) + 1],
    "along x from device 0": _first_column,
}
# Thought: a place in the mesh is an id (row 2 has devices 4 and 5).
topology_order__wrong_ids = {
    "the device in row 2, column 0": 4,
    "who holds block 2 of P('x')": [4, 5],
    "the block of device 4 under P('x')": 2,
    "after device 2 along x": 4,
    "along x from device 0": [0, 2, 4, 6],
}
# Thought: x runs to the right, so "along x" is within a row of the grid.
topology_order__wrong_withinrow = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 3,
    "along x from device 0": [0, 1],
}
# Thought: rows and blocks are counted from one.
topology_order__wrong_fromone = {
    "the device in row 2, column 0": 2,
    "who holds block 2 of P('x')": [2, 3],
    "the block of device 4 under P('x')": 4,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}
# Thought: P('x') does not name y, so only the devices of column 0 get blocks.
topology_order__wrong_nocopy = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}
