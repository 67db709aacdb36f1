"""Answers to lesson 01, eighteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# the arrays of part 3
x = jax.random.normal(jax.random.key(0), (64, 64))
sharding = NamedSharding(mesh, P("x", "y"))
y = jax.device_put(x, sharding)
z = jax.jit(jnp.sin)(y)

# ---------------------------------------------------------------- array_facts

# asked of the arrays themselves
array_facts__right_asked = {
    "devices of x": len(x.devices()),
    "type of y": "jax.Array",
    "devices of y": len(y.addressable_shards),
    "shape of y": y.shape,
    "devices of x afterwards": len(x.sharding.device_set),
    "devices of z": mesh.size,
}

# device_put deals x itself out, y is only another name for it, so that x is on eight devices afterwards.
array_facts__wrong_moved = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 8,
    "devices of z": 8,
}

# As in MPI, y is what I hold: after the distribution its shape is that of the local block, 64/4 by 64/2.
array_facts__wrong_local = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (16, 32),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# Moving means that x has left its device: once y holds the data, x is on none.
array_facts__wrong_gone = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 0,
    "devices of z": 8,
}

# The shards each are arrays, so y is a list of them; and jit puts its result on the default device, so z is on one.
array_facts__wrong_pieces = {
    "devices of x": 1,
    "type of y": "a list of arrays",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 1,
}

# ---------------------------------------------------------------- setup_cells

# the guard directly after asking; the second import later
setup_cells__right_guard_early = {
    "config": ["A", "C", "E", "B", "D"],
    "flag": ["B", "A", "C", "E", "D"],
}

# JAX is asynchronous: jnp.ones(4).sum() is only queued and starts nothing, it is E that first looks at devices.
setup_cells__wrong_lazy = {
    "config": ["A", "B", "D", "C", "E"],
    "flag": ["A", "C", "B", "D", "E"],
}

# JAX reads variables that begin with JAX_; XLA_FLAGS is for the compiler and is the one that nobody reads here.
setup_cells__wrong_jax_variable = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "F", "B", "D", "E"],
}

# A variable that nobody reads does no harm, so both are set, to be on the safe side.
setup_cells__wrong_both_variables = {
    "config": ["A", "B", "C", "E", "D"],
    "flag": ["A", "C", "F", "B", "D", "E"],
}

# D would start JAX with one device, so it is the cell to leave out in "config", as F is in "flag".
setup_cells__wrong_left_out = {
    "config": ["A", "B", "C", "E"],
    "flag": ["A", "B", "C", "E", "D"],
}

# ---------------------------------------------------------------- put_on_mesh


def put_on_mesh__right_conditional(value, spec, on=None):
    entries = list(spec)
    target = NamedSharding(mesh=mesh if on is None else on, spec=P(*entries))
    return jax.device_put(value, target)


# The spec is a tuple already and P takes it as it is.
def put_on_mesh__wrong_starless(value, spec, on=None):
    if on is None:
        on = mesh
    return jax.device_put(value, NamedSharding(on, P(spec)))


# None cuts nothing, so the entries that are None can be left out.
def put_on_mesh__wrong_no_nones(value, spec, on=None):
    if on is None:
        on = mesh
    names = [entry for entry in spec if entry is not None]
    return jax.device_put(value, NamedSharding(on, P(*names)))


# A mesh is a shape and names, so one with the same shape and names (and Auto axes, as the lesson's) does as well.
def put_on_mesh__wrong_rebuilt(value, spec, on=None):
    sizes = dict((mesh if on is None else on).shape)
    again = jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))
    return jax.device_put(value, NamedSharding(again, P(*spec)))


# P wants names one by one, so an entry that is a tuple has to be unpacked, too.
def put_on_mesh__wrong_unpacked(value, spec, on=None):
    if on is None:
        on = mesh
    names = []
    for entry in spec:
        if isinstance(entry, tuple):
            names.extend(entry)
        else:
            names.append(entry)
    return jax.device_put(value, NamedSharding(on, P(*names)))
