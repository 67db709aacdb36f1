"""Answers to lesson 01, eighth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

x = jax.random.normal(jax.random.key(0), (64, 64))
y = jax.device_put(x, NamedSharding(mesh, P("x", "y")))
z = jax.jit(jnp.sin)(y)


# ---------------------------------------------------------------- put_on_mesh
def put_on_mesh__right_callback(value, spec, on=None):
    whole = np.asarray(jnp.asarray(value))
    where = NamedSharding(mesh if on is None else on, P(*spec))
    return jax.make_array_from_callback(whole.shape, where, lambda index: whole[index])


# thought: None cuts nothing, so the Nones can be left out before the spec is made (not only those at the end)
def put_on_mesh__wrong_no_nones(value, spec, on=None):
    if on is None:
        on = mesh
    names = [entry for entry in spec if entry is not None]
    return jax.device_put(value, NamedSharding(on, P(*names)))


# thought: all I need of the other mesh is its shape and its names, make_mesh then finds the devices itself
def put_on_mesh__wrong_made_anew(value, spec, on=None):
    m = mesh
    if on is not None:
        m = jax.make_mesh(on.devices.shape, on.axis_names, axis_types=(AxisType.Auto,) * len(on.axis_names))
    return jax.device_put(value, NamedSharding(m, P(*spec)))


# thought: the spec is written with the lesson's names x and y; another mesh calls its axes otherwise, so translate by place
def put_on_mesh__wrong_translated(value, spec, on=None):
    if on is None:
        return jax.device_put(value, NamedSharding(mesh, P(*spec)))
    entries = []
    for place, entry in enumerate(spec):
        entries.append(None if entry is None else on.axis_names[place % len(on.axis_names)])
    return jax.device_put(value, NamedSharding(on, P(*entries)))


# thought: a mesh given with `on` is a mesh to fall back on; the lesson's is the one to use wherever it has all the names
def put_on_mesh__wrong_lessons_first(value, spec, on=None):
    named = {name for entry in spec if entry for name in ((entry,) if isinstance(entry, str) else entry)}
    chosen = mesh if named <= set(mesh.axis_names) else on
    return jax.device_put(value, NamedSharding(chosen, P(*spec)))


# ---------------------------------------------------------------- axis_groups
def axis_groups__right_by_coordinates(mesh, axis):
    k = mesh.axis_names.index(axis)
    groups = {}
    for place, device in np.ndenumerate(mesh.devices):
        groups.setdefault(place[:k] + place[k + 1 :], []).append(device.id)
    return list(groups.values())


# thought: a strided slice of the ids gives the groups along x, and the ids come in the order of the mesh anyway
def axis_groups__wrong_strides(mesh, axis):
    names, sizes = list(mesh.axis_names), list(mesh.devices.shape)
    k = names.index(axis)
    stride = int(np.prod(sizes[k + 1 :]))
    n = sizes[k]
    out = []
    for start in range(mesh.devices.size):
        if start // stride % n == 0:
            out.append([start + stride * i for i in range(n)])
    return out


# thought: transposing reverses the order of the axes, and so it brings the axis to the end (as it does with two)
def axis_groups__wrong_transpose(mesh, axis):
    ids = np.vectorize(lambda d: d.id)(mesh.devices)
    if axis != mesh.axis_names[-1]:
        ids = ids.T
    return ids.reshape(-1, mesh.shape[axis]).tolist()


# thought: a group over the axis is everything that stands at one place of it: walk along the axis and take each slice
def axis_groups__wrong_slice_of_axis(mesh, axis):
    k = mesh.axis_names.index(axis)
    return [[d.id for d in np.take(mesh.devices, i, axis=k).flat] for i in range(mesh.shape[axis])]


# thought: swapaxes with the last, then the lines; the number of lines is the axis' length
def axis_groups__wrong_number_of_lines(mesh, axis):
    ids = np.array([d.id for d in mesh.devices.flat]).reshape(mesh.devices.shape)
    ids = np.swapaxes(ids, mesh.axis_names.index(axis), -1)
    return [[int(i) for i in line] for line in ids.reshape(mesh.shape[axis], -1)]


# ---------------------------------------------------------------- array_facts
array_facts__right_asked = {
    "devices of x": len(x.devices()),
    "type of y": "jax.Array" if isinstance(y, jax.Array) else "np.ndarray",
    "devices of y": len(y.devices()),
    "shape of y": y.shape,
    "devices of x afterwards": len(x.devices()),
    "devices of z": len({shard.device for shard in z.addressable_shards}),
}

# thought: device_put really puts x itself on the mesh, y is only a second name for it
array_facts__wrong_x_went_along = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 8,
    "devices of z": 8,
}

# thought: the printed shards say (16, 32), so this is the shape of y
array_facts__wrong_shape_of_a_shard = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (16, 32),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# thought: "devices of" wants the two lengths of the mesh where an array is on a mesh, of which rows only count: 4
array_facts__wrong_four_for_rows = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 4,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 4,
}

# thought: x was sent away, so that device 0 holds nothing of it any more; and a result of jit comes back to one device
array_facts__wrong_sent_away = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 0,
    "devices of z": 1,
}
