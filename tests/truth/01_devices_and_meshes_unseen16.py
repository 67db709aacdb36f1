"""Answers to lesson 01, sixteenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---------------------------------------------------------------- longest_hop


def longest_hop__right_roll(coords, order):
    ring = np.array([coords[k] for k in order])
    return int(np.abs(ring - np.roll(ring, -1, axis=0)).sum(axis=1).max())


# This student closes the grid as well as the ring: on a torus the way round the back may be the shorter one.
def longest_hop__wrong_torus(coords, order):
    width = 1 + max(coords[k][0] for k in order)
    height = 1 + max(coords[k][1] for k in order)
    places = [coords[k] for k in order]
    hops = []
    for (a, b), (c, d) in zip(places, places[1:] + places[:1]):
        dc, dr = abs(a - c), abs(b - d)
        hops.append(min(dc, width - dc) + min(dr, height - dr))
    return max(hops)


# This student reads `order` as a permutation: device k sends to device order[k].
def longest_hop__wrong_permutation(coords, order):
    return max(abs(coords[k][0] - coords[j][0]) + abs(coords[k][1] - coords[j][1]) for k, j in enumerate(order))


# This student takes the largest step in columns and the largest step in rows, and adds them, though they may be two different steps.
def longest_hop__wrong_two_maxima(coords, order):
    ring = np.array([coords[k] for k in order])
    steps = np.abs(ring - np.roll(ring, 1, axis=0))
    return int(steps.max(axis=0).sum())


# This student measures with the squared Euclidean distance, which on the board of the lesson gives 1 and 2 as it should.
def longest_hop__wrong_square(coords, order):
    ring = [coords[k] for k in order]
    return max((a - c) ** 2 + (b - d) ** 2 for (a, b), (c, d) in zip(ring, ring[1:] + ring[:1]))


# ---------------------------------------------------------------- axis_type

version = tuple(int(part) for part in jax.__version__.split(".")[:2])
make_mesh_gives = "Explicit" if version >= (0, 9) else "Auto"

axis_type__right_version = {
    'jax.make_mesh((8,), ("x",))': make_mesh_gives,
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# This student thinks that the new default of make_mesh is the default of every mesh, so of the constructor, too.
axis_type__wrong_constructor = {
    'jax.make_mesh((8,), ("x",))': make_mesh_gives,
    'Mesh(np.array(jax.devices()), ("x",))': "Explicit",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# This student thinks that shard_map leaves the mesh that it is given as it is, and that mesh has Auto axes.
axis_type__wrong_keeps_auto = {
    'jax.make_mesh((8,), ("x",))': make_mesh_gives,
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Auto",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# This student thinks that the compiler can decide only where the types tell it the layouts, and that with Auto JAX writes the layout into the type by itself.
axis_type__wrong_swapped = {
    'jax.make_mesh((8,), ("x",))': make_mesh_gives,
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Explicit",
    "part of the array's type": "Auto",
    "sees its own block": "Manual",
}

# This student thinks that a function whose arguments' types name the cuts is given the pieces, with their shapes.
axis_type__wrong_explicit_block = {
    'jax.make_mesh((8,), ("x",))': make_mesh_gives,
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Explicit",
}


# ---------------------------------------------------------------- mesh_or_error

mesh_or_error__right_products = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 3 * 2,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 8 - 4,
}

# This student thinks that a text without its comma is a tuple of five letters: five names for one axis.
mesh_or_error__wrong_letters = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': "error",
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# This student thinks that a mesh has to begin with device 0 and to divide the devices evenly, as (2, 2) did.
mesh_or_error__wrong_divides = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': "error",
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': "error",
}

# This student thinks that an axis without a name is left out, so that the mesh is over the named axis only.
mesh_or_error__wrong_nameless = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': 4,
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': "error",
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}

# This student thinks that Mesh, like make_mesh, arranges the devices itself to fit the two names.
mesh_or_error__wrong_arranges = {
    'jax.make_mesh((4, 4), ("x", "y"))': "error",
    'jax.make_mesh((4, 2), ("data",))': "error",
    'jax.make_mesh((8,), ("batch"))': 8,
    'jax.make_mesh((3, 2), ("rows", "columns"))': 6,
    'Mesh(np.array(jax.devices()), ("x", "y"))': 8,
    'Mesh(np.array(jax.devices()[4:]), ("x",))': 4,
}
