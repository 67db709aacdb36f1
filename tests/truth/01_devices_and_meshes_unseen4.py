"""Answers to lesson 01, fourth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- setup_cells

setup_cells__right_late_imports = {
    "config": ["A", "C", "B", "E", "D"],
    "flag": ["B", "A", "C", "E", "D"],
}

# This student thinks that only a computation starts JAX, and that asking for its devices does not.
setup_cells__wrong_asking_is_free = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "B", "D", "C", "E"],
}

# This student thinks that F is another spelling of the flag, and that one of the two variables is as good as the other.
setup_cells__wrong_other_variable = {
    "config": ["A", "B", "C", "E", "D"],
    "flag": ["A", "F", "B", "D", "E"],
}

# This student thinks that the guard belongs first, before anything is configured.
setup_cells__wrong_guard_first = {
    "config": ["A", "B", "E", "C", "D"],
    "flag": ["A", "B", "C", "D", "E"],
}

# This student thinks that one notebook may leave out what it does not need, and drops D (the sum) from "config" too.
setup_cells__wrong_left_out_in_both = {
    "config": ["A", "B", "C", "E"],
    "flag": ["A", "C", "B", "D", "E"],
}

# ---------------------------------------------------------------- put_on_mesh


def put_on_mesh__right_starred(value, spec, on=None):
    if on is None:
        on = mesh
    where = NamedSharding(on, P(*spec))
    return jax.make_array_from_callback(np.shape(value), where, lambda index: np.asarray(value)[index])


# This student thinks that a tuple of entries can be handed to P as it is.
def put_on_mesh__wrong_no_star(value, spec, on=None):
    chosen = mesh if on is None else on
    return jax.device_put(value, NamedSharding(chosen, P(spec)))


# This student tidies the spec: None cuts nothing, so it is dropped, and later names move to the front.
def put_on_mesh__wrong_none_dropped(value, spec, on=None):
    chosen = mesh if on is None else on
    names = [entry for entry in spec if entry is not None]
    return jax.device_put(value, NamedSharding(chosen, P(*names)))


# This student tried it on the lesson's mesh only, and forgot that another one may be given.
def put_on_mesh__wrong_always_the_lessons(value, spec, on=None):
    on = mesh
    return jax.device_put(value, NamedSharding(on, P(*spec)))


# This student thinks that the sharding is the answer, and forgets to put the value there.
def put_on_mesh__wrong_sharding_only(value, spec, on=None):
    if on is None:
        on = mesh
    return NamedSharding(on, P(*spec))


# ---------------------------------------------------------------- axis_groups


def axis_groups__right_by_other_places(mesh, axis):
    k = mesh.axis_names.index(axis)
    groups = {}
    for place, device in np.ndenumerate(mesh.devices):
        groups.setdefault(place[:k] + place[k + 1 :], []).append(device.id)
    return list(groups.values())


# This student takes "over x" for "at the same place along x".
def axis_groups__wrong_same_place(mesh, axis):
    ids = np.vectorize(lambda device: device.id)(mesh.devices)
    k = mesh.axis_names.index(axis)
    lines = np.moveaxis(ids, k, 0)
    return lines.reshape(lines.shape[0], -1).tolist()


# This student thinks that a place in the mesh is an id, and counts from 0.
def axis_groups__wrong_places_for_ids(mesh, axis):
    ids = np.arange(mesh.devices.size).reshape(mesh.devices.shape)
    k = mesh.axis_names.index(axis)
    return np.moveaxis(ids, k, -1).reshape(-1, mesh.shape[axis]).tolist()


# This student thinks that a mesh has two axes: rows are one, columns are the transposed.
def axis_groups__wrong_rows_or_columns(mesh, axis):
    ids = np.array([device.id for device in mesh.devices.flat]).reshape(mesh.devices.shape[0], -1)
    if axis == mesh.axis_names[0]:
        ids = ids.T
    return [list(map(int, row)) for row in ids]


# This student knows the length of a group, but thinks that neighbours in the flat list make it, whatever the axis.
def axis_groups__wrong_consecutive(mesh, axis):
    ids = [device.id for device in mesh.devices.flat]
    n = mesh.shape[axis]
    return [ids[start : start + n] for start in range(0, len(ids), n)]
