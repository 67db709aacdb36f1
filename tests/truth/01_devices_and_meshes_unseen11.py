"""Answers to lesson 01, eleventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# part 3 of the notebook
x = jax.random.normal(jax.random.key(0), (64, 64))
sharding = NamedSharding(mesh, P("x", "y"))
y = jax.device_put(x, sharding)
z = jax.jit(jnp.sin)(y)

# ---------------------------------------------------------------- array_facts

array_facts__right_asked = {
    "devices of x": len(x.devices()),
    "type of y": "jax.Array" if isinstance(y, jax.Array) else "np.ndarray",
    "devices of y": len({shard.device for shard in y.addressable_shards}),
    "shape of y": y.shape,
    "devices of x afterwards": len(x.sharding.device_set),
    "devices of z": len(z.devices()),
}

# thought that the shape of a cut array is the shape of one device's block
array_facts__wrong_block = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64 // 4, 64 // 2),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# thought that device_put moves x itself, so that x is spread afterwards just as y is
array_facts__wrong_moved = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 8,
    "devices of z": 8,
}

# thought that jit brings its result back to the default device, device 0
array_facts__wrong_home = dict(
    [
        ("devices of x", 1),
        ("type of y", "jax.Array"),
        ("devices of y", 8),
        ("shape of y", (64, 64)),
        ("devices of x afterwards", 1),
        ("devices of z", 1),
    ]
)

# thought that y is the list of its eight pieces, because one can loop over its shards
array_facts__wrong_list = {
    "devices of x": 1,
    "type of y": "a list of arrays",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# -------------------------------------------------------------- mesh_or_error


def size_or_error(make):
    try:
        return int(make().size)
    except Exception:
        return "error"


mesh_or_error__right_tried = {
    'jax.make_mesh((4, 4), ("x", "y"))': size_or_error(lambda: jax.make_mesh((4, 4), ("x", "y"))),
    'jax.make_mesh((4, 2), ("data",))': size_or_error(lambda: jax.make_mesh((4, 2), ("data",))),
    'jax.make_mesh((8,), ("batch"))': size_or_error(lambda: jax.make_mesh((8,), ("batch"))),
    'jax.make_mesh((3, 2), ("rows", "columns"))': size_or_error(lambda: jax.make_mesh((3, 2), ("rows", "columns"))),
    'Mesh(np.array(jax.devices()), ("x", "y"))': size_or_error(lambda: Mesh(np.array(jax.devices()), ("x", "y"))),
    'Mesh(np.array(jax.devices()[4:]), ("x",))': size_or_error(lambda: Mesh(np.array(jax.devices()[4:]), ("x",))),
}

# thought that ("batch") without a comma is five names, b, a, t, c, h, for one axis
mesh_or_error__wrong_letters = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': "error",
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# thought that a mesh has to use every device that there is
mesh_or_error__wrong_all = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': "error",
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': "error",
}

# thought that a grid that is too large is filled as far as the devices go
mesh_or_error__wrong_capped = {
    'jax.make_mesh((4, 4), ("x", "y"))': min(4 * 4, 8),
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': min(3 * 2, 8),
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# thought that Mesh arranges a plain list of devices by itself, into as many axes as there are names
mesh_or_error__wrong_arranged = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': 8,
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# ----------------------------------------------------------- local_and_global

_owner = {0: 0, 1: 0, 2: 0, 3: 0, 2048: 1, 2049: 1, 2050: 1, 2051: 1}  # id: process_index, as process 0 printed it

local_and_global__right_counted = {
    "len(jax.devices()) in process 1": len(_owner),
    "len(jax.local_devices()) in process 1": sum(p == 1 for p in _owner.values()),
    "jax.devices()[4].id": sorted(_owner)[4],
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": sum(p == 1 for p in _owner.values()),
    "processes that must call jit(f)(y)": len(set(_owner.values())),
}

# thought that the id of a device is its place in the list
local_and_global__wrong_place = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 4,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}

# thought that in each process y has the shape of the part which that process holds
local_and_global__wrong_half = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (32, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 2,
}

# thought that a global array can be read globally, and all the more since both processes are on one machine
local_and_global__wrong_reads = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 8,
    "processes that must call jit(f)(y)": 2,
}

# thought that process 0 is in charge and starts the computation for everybody
local_and_global__wrong_leader = {
    "len(jax.devices()) in process 1": 8,
    "len(jax.local_devices()) in process 1": 4,
    "jax.devices()[4].id": 2048,
    "shape of y in process 1": (64, 64),
    "shards of y that process 1 can read": 4,
    "processes that must call jit(f)(y)": 1,
}
