"""Answers to lesson 01, thirteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- topology_order

topology_order__right_grid = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# This student read the first two rows off the printed grid, and then went on in his head with ids in order (2·x + y).
topology_order__wrong_ids = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 2,
    "after device 2 along x": 4,
    "along x from device 0": [0, 2, 4, 6],
}

# This student takes "along x" for "within a row of the grid".
topology_order__wrong_within_row = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6, 7],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 3,
    "along x from device 0": [0, 1],
}

# This student counts rows and blocks from one.
topology_order__wrong_from_one = {
    "the device in row 2, column 0": 2,
    "who holds block 2 of P('x')": [2, 3],
    "the block of device 4 under P('x')": 4,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# This student thinks that P("x") fills the first column only, and that the devices at y = 1 hold nothing.
topology_order__wrong_no_copies = {
    "the device in row 2, column 0": 6,
    "who holds block 2 of P('x')": [6],
    "the block of device 4 under P('x')": 3,
    "after device 2 along x": 6,
    "along x from device 0": [0, 2, 6, 4],
}

# ---------------------------------------------------------------- axis_type

axis_type__right_asked = {
    'jax.make_mesh((8,), ("x",))': jax.make_mesh((8,), ("x",)).axis_types[0].name,
    'Mesh(np.array(jax.devices()), ("x",))': Mesh(np.array(jax.devices()), ("x",)).axis_types[0].name,
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# This student believes that make_mesh still makes Auto axes, as in older tutorials (JAX here is 0.9 or newer).
axis_type__wrong_old_default = {
    'jax.make_mesh((8,), ("x",))': "Auto",
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# This student thinks that Mesh and make_mesh are two ways to write the same, with the same default.
axis_type__wrong_one_default = {
    'jax.make_mesh((8,), ("x",))': "Explicit",
    'Mesh(np.array(jax.devices()), ("x",))': "Explicit",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# This student thinks that inside shard_map the axes keep the type of the mesh that was handed over, which is Auto.
axis_type__wrong_type_of_mesh_given = {
    'jax.make_mesh((8,), ("x",))': "Explicit",
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Auto",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# This student takes "explicit" for "I write the sends explicitly", and "manual" for "I write the layout by hand".
axis_type__wrong_explicit_for_manual = {
    'jax.make_mesh((8,), ("x",))': "Explicit",
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Explicit",
    "the compiler decides": "Auto",
    "part of the array's type": "Manual",
    "sees its own block": "Explicit",
}

# ---------------------------------------------------------------- axis_groups


def axis_groups__right_dict(mesh, axis):
    """The ids of the devices, group by group, that a collective over `axis` brings together."""
    k = mesh.axis_names.index(axis)
    groups = {}
    for place, device in np.ndenumerate(mesh.devices):
        groups.setdefault(place[:k] + place[k + 1 :], []).append(device.id)
    return list(groups.values())


# This student thinks that the device at the n-th place of a mesh has the id n.
def axis_groups__wrong_arange(mesh, axis):
    ids = np.arange(mesh.devices.size).reshape(mesh.devices.shape)
    k = mesh.axis_names.index(axis)
    return np.moveaxis(ids, k, -1).reshape(-1, ids.shape[k]).tolist()


# This student groups the devices that have the same place along the axis.
def axis_groups__wrong_same_place(mesh, axis):
    ids = np.vectorize(lambda device: device.id)(mesh.devices)
    k = mesh.axis_names.index(axis)
    return [np.take(ids, place, axis=k).ravel().tolist() for place in range(ids.shape[k])]


# This student exchanged source and destination in moveaxis: with two axes it does the same, with three it does not.
def axis_groups__wrong_moved_back(mesh, axis):
    ids = np.array([device.id for device in mesh.devices.flat]).reshape(mesh.devices.shape)
    k = mesh.axis_names.index(axis)
    return np.moveaxis(ids, -1, k).reshape(-1, ids.shape[k]).tolist()


# This student gives only the group that the mesh's first device is in, and forgets that all groups work at once.
def axis_groups__wrong_first_group(mesh, axis):
    k = mesh.axis_names.index(axis)
    here = [0] * mesh.devices.ndim
    here[k] = slice(None)
    return [[device.id for device in mesh.devices[tuple(here)]]]
