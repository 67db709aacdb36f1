"""Answers to lesson 01, seventh batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- axis_type ---------------------------------------------------------------

axis_type__right_asked = {
    'jax.make_mesh((8,), ("x",))': jax.make_mesh((8,), ("x",)).axis_types[0].name,
    'Mesh(np.array(jax.devices()), ("x",))': Mesh(np.array(jax.devices()), ("x",)).axis_types[0].name,
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# "make_mesh makes Auto axes, as all the tutorials say, unless you ask for something else."
axis_type__wrong_old_default = {
    'jax.make_mesh((8,), ("x",))': "Auto",
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# "The default has changed to Explicit, and Mesh and make_mesh make the same thing, so it has changed for both."
axis_type__wrong_mesh_too = {
    'jax.make_mesh((8,), ("x",))': "Explicit",
    'Mesh(np.array(jax.devices()), ("x",))': "Explicit",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# "The mesh that I hand to shard_map has Auto axes, and a mesh keeps its types, also inside."
axis_type__wrong_mesh_keeps_types = {
    'jax.make_mesh((8,), ("x",))': "Explicit",
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Auto",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# "A contraction cut alike on both sides is explicit enough to run; and typeof works on every array, so that is the usual kind, Auto."
axis_type__wrong_turned_round = {
    'jax.make_mesh((8,), ("x",))': "Explicit",
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Explicit",
    "part of the array's type": "Auto",
    "sees its own block": "Manual",
}


# --- device_grid -------------------------------------------------------------


def device_grid__right_ravelled(shape, names):
    """The ids of a mesh of this shape, with these axis names, over devices 0, 1, 2 …"""
    places = tuple(np.indices(shape))
    return np.ravel_multi_index(places, shape)


# "There are eight devices, so there are eight ids."
def device_grid__wrong_always_eight(shape, names):
    return np.arange(8).reshape(shape)


# "x is the first axis, so x is the one along which the ids go up by one."
def device_grid__wrong_x_fastest(shape, names):
    n = 1
    for length in shape:
        n *= length
    grid = np.arange(n).reshape(shape, order="F")
    return grid


# "A mesh has the grid inside already: take it out (they are Device objects, each shows its id when printed)."
def device_grid__wrong_device_objects(shape, names):
    n = int(np.prod(shape))
    return np.array(jax.devices()[:n]).reshape(shape)


# "A grid has rows and columns: give the number of rows, NumPy finds out the rest."
def device_grid__wrong_rows_and_rest(shape, names):
    ids = np.arange(np.prod(shape))
    return ids.reshape(shape[0], -1)


# --- setup_cells -------------------------------------------------------------

setup_cells__right_count_first = {
    "config": list("BACED"),
    "flag": ["B", "A", "C", "E", "D"],
}

# "jnp.ones needs no particular device yet; only asking for the devices makes JAX start."
setup_cells__wrong_ones_is_harmless = {
    "config": ["A", "B", "D", "C", "E"],
    "flag": ["A", "C", "B", "D", "E"],
}

# "JAX_NUM_DEVICES says in plain words what is wanted, and the XLA flag is the old way: that is the one to leave out."
setup_cells__wrong_other_variable = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "F", "B", "D", "E"],
}

# "It must be set before JAX is there at all, so the setting comes first of all cells."
setup_cells__wrong_before_imports = {
    "config": ["C", "A", "B", "D", "E"],
    "flag": ["C", "A", "B", "D", "E"],
}

# "The cell of no use is D, for nobody uses `first`; the two variables surely belong together."
setup_cells__wrong_left_out_d = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "C", "F", "B", "E"],
}
