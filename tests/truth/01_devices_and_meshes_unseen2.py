"""Answers to lesson 01, second batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh


def device_grid__right_place_by_place(shape, names):
    """Each place gets the next number."""
    grid = np.empty(shape, dtype=int)
    for k, place in enumerate(np.ndindex(*shape)):
        grid[place] = k
    return grid


def device_grid__wrong_down_the_columns(shape, names):
    """Counts along the first axis first."""
    return np.arange(np.prod(shape)).reshape(shape, order="F")


def device_grid__wrong_from_one(shape, names):
    """Ids begin with 1."""
    return np.arange(1, np.prod(shape) + 1).reshape(shape)


def device_grid__wrong_flat(shape, names):
    """Not laid out as a grid."""
    return np.arange(np.prod(shape))


def device_grid__wrong_two_axes(shape, names):
    """Always two axes: (8,) becomes (8, 1), and (2, 2, 2) becomes (2, 4)."""
    return np.arange(np.prod(shape)).reshape(shape[0], -1)


def axis_groups__right_dict(mesh, axis):
    """Devices that agree in all the other axes."""
    k = mesh.axis_names.index(axis)
    groups = {}
    for place, device in np.ndenumerate(mesh.devices):
        groups.setdefault(place[:k] + place[k + 1 :], []).append(device.id)
    return list(groups.values())


def axis_groups__wrong_rows(mesh, axis):
    """Cuts the ids in lines of the axis' length, whichever axis it is."""
    ids = np.array([d.id for d in mesh.devices.flat])
    return ids.reshape(-1, mesh.shape[axis]).tolist()


def axis_groups__wrong_places(mesh, axis):
    """Places in the mesh for ids: the devices may stand in any order."""
    places = np.arange(mesh.devices.size).reshape(mesh.devices.shape)
    k = mesh.axis_names.index(axis)
    return np.moveaxis(places, k, -1).reshape(-1, mesh.shape[axis]).tolist()


def axis_groups__wrong_same_place(mesh, axis):
    """The devices that have the same place along the axis."""
    ids = np.vectorize(lambda d: d.id)(mesh.devices)
    k = mesh.axis_names.index(axis)
    return np.moveaxis(ids, k, 0).reshape(mesh.shape[axis], -1).tolist()


def axis_groups__wrong_first_group(mesh, axis):
    """One of the groups only."""
    ids = np.vectorize(lambda d: d.id)(mesh.devices)
    k = mesh.axis_names.index(axis)
    return [np.moveaxis(ids, k, -1).reshape(-1, mesh.shape[axis])[0].tolist()]


def put_on_mesh__right_where(value, spec, on=None):
    where = MESH if on is None else on
    sharding = NamedSharding(where, P(*spec))
    return jax.device_put(value, sharding)


def put_on_mesh__wrong_no_star(value, spec, on=None):
    """The whole tuple is the first entry."""
    if on is None:
        on = MESH
    return jax.device_put(value, NamedSharding(on, P(spec)))


def put_on_mesh__wrong_lessons_mesh(value, spec, on=None):
    """Never looks at `on`."""
    return jax.device_put(value, NamedSharding(MESH, P(*spec)))


def put_on_mesh__wrong_no_default(value, spec, on=None):
    """Without a mesh there is no default."""
    return jax.device_put(value, NamedSharding(on, P(*spec)))


def put_on_mesh__wrong_sharding(value, spec, on=None):
    """Returns the sharding, not the array."""
    if on is None:
        on = MESH
    return NamedSharding(on, P(*spec))


mesh_or_error__right_counted = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# the forgotten comma is taken for an error (five names for one axis)
mesh_or_error__wrong_comma = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': "error",
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# a mesh has to use all eight devices
mesh_or_error__wrong_all_eight = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': "error",
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': "error",
}

# Mesh arranges the devices by itself, as make_mesh does
mesh_or_error__wrong_mesh_arranges = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': 8,
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# counts places and never compares with the devices there are
mesh_or_error__wrong_places = {
    'jax.make_mesh((4, 4), ("x", "y"))': 16,
    'jax.make_mesh((4, 2), ("data",))': 8,
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}
