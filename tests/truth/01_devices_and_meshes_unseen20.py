"""Answers to lesson 01, twentieth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- mesh_or_error

mesh_or_error__right_counted = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# Thinks that ("batch") without its comma is five one-letter names for one axis.
mesh_or_error__wrong_comma = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': "error",
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# Thinks that the number of places has to divide the number of devices, so that a mesh of six out of eight is refused.
mesh_or_error__wrong_divides = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': "error",
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# Thinks that a mesh has to begin with device 0 (it takes "the first" devices), so that the last four alone make none.
mesh_or_error__wrong_first = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': "error",
}

# Thinks that only the number of devices matters: an axis without a name stays nameless, a name without an axis has length 1.
mesh_or_error__wrong_nameless = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': 8,
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': 8,
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# ---------------------------------------------------------------- axis_groups


def axis_groups__right_places(mesh, axis):
    k = mesh.axis_names.index(axis)
    groups = {}
    for place, device in np.ndenumerate(mesh.devices):
        groups.setdefault(place[:k] + place[k + 1 :], []).append(device.id)
    return list(groups.values())


# Thinks that "over x" brings together the devices that have the same place along x.
def axis_groups__wrong_same_place(mesh, axis):
    k = mesh.axis_names.index(axis)
    groups = {}
    for place, device in np.ndenumerate(mesh.devices):
        groups.setdefault(place[k], []).append(device.id)
    return list(groups.values())


# Thinks that a place in the mesh is an id, and numbers the grid himself instead of asking the mesh who stands there.
def axis_groups__wrong_numbered(mesh, axis):
    k = mesh.axis_names.index(axis)
    ids = np.arange(mesh.devices.size).reshape(mesh.devices.shape)
    return np.moveaxis(ids, k, -1).reshape(-1, mesh.shape[axis]).tolist()


# Thinks that a reshape to lines of the axis' length is enough, without moving the axis to the end first.
def axis_groups__wrong_reshape(mesh, axis):
    ids = np.array([device.id for device in mesh.devices.flat])
    return ids.reshape(-1, mesh.shape[axis]).tolist()


# Thinks of meshes with two axes: the last axis is read as it is, for any other axis the grid is transposed.
def axis_groups__wrong_transpose(mesh, axis):
    ids = np.array([device.id for device in mesh.devices.flat]).reshape(mesh.devices.shape)
    if axis != mesh.axis_names[-1]:
        ids = ids.T
    return ids.reshape(-1, mesh.shape[axis]).tolist()


# ---------------------------------------------------------------- longest_hop


def longest_hop__right_backwards(coords, order):
    longest = 0
    for k in range(len(order)):
        (a, b), (c, d) = coords[order[k - 1]], coords[order[k]]  # at k = 0: the step that closes the ring
        longest = max(longest, abs(a - c) + abs(b - d))
    return longest


# Thinks that there is one step between each two neighbours of the list, and forgets the step from the last to the first.
def longest_hop__wrong_open(coords, order):
    places = [coords[k] for k in order]
    steps = [abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, places[1:])]
    return max(steps, default=0)


# Thinks that a message goes sideways and up at the same time, so that the larger of the two differences counts.
def longest_hop__wrong_larger(coords, order):
    places = [coords[k] for k in order]
    return max(max(abs(a - c), abs(b - d)) for (a, b), (c, d) in zip(places, places[1:] + places[:1]))


# Thinks that the grid is a torus, and takes the shorter way around in each direction.
def longest_hop__wrong_torus(coords, order):
    everywhere = list(coords.values()) if isinstance(coords, dict) else list(coords)
    columns = max(place[0] for place in everywhere) + 1
    rows = max(place[1] for place in everywhere) + 1
    longest = 0
    for here, there in zip(order, list(order[1:]) + list(order[:1])):
        across = abs(coords[here][0] - coords[there][0])
        along = abs(coords[here][1] - coords[there][1])
        longest = max(longest, min(across, columns - across) + min(along, rows - along))
    return longest


# Thinks that order[k] is the device that device k sends to.
def longest_hop__wrong_sends_to(coords, order):
    return max(abs(coords[k][0] - coords[to][0]) + abs(coords[k][1] - coords[to][1]) for k, to in enumerate(order))
