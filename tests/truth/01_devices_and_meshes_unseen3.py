"""Answers to lesson 01, third batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- setup_cells

setup_cells__right_late = {
    "config": ["B", "A", "C", "E", "D"],
    "flag": ["B", "A", "C", "E", "D"],
}

# Importing jax already starts it, so I set the flag before the import; in "config" I thought the ones are made on the host and start nothing.
setup_cells__wrong_ones = {
    "config": ["A", "B", "D", "C", "E"],
    "flag": ["A", "C", "B", "D", "E"],
}

# JAX_NUM_DEVICES must be JAX's own variable for it, so the flag of XLA is the useless one.
setup_cells__wrong_variable = {
    "config": ["A", "B", "C", "D", "E"],
    "flag": ["A", "F", "B", "D", "E"],
}

# Looking at device 0 is only a question, it computes nothing, so the flag may still be set after it.
setup_cells__wrong_asking = {
    "config": ["A", "C", "B", "D", "E"],
    "flag": ["A", "B", "D", "C", "E"],
}

# D in "flag" is what starts JAX too early, so that is the cell to leave out; F does no harm.
setup_cells__wrong_leftout = {
    "config": ["A", "C", "B", "E", "D"],
    "flag": ["A", "C", "F", "B", "E"],
}

# ---------------------------------------------------------------- array_facts

array_facts__right_asked = {
    "devices of x": 1,
    "type of y": "jax.Array",
    "devices of y": 8,
    "shape of y": (64, 64),
    "devices of x afterwards": 1,
    "devices of z": 8,
}

# An array that is cut has the shape of its block: the shape that each device printed.
array_facts__wrong_block = {**array_facts__right_asked, "shape of y": (16, 32)}

# device_put moves the array, so afterwards x itself is spread over the eight devices.
array_facts__wrong_moved = {**array_facts__right_asked, "devices of x afterwards": 8}

# P("x", "y") cuts the rows over the four devices of x; y then holds the pieces as a list, and sin brings them together on one device.
array_facts__wrong_pieces = {
    **array_facts__right_asked,
    "type of y": "a list of arrays",
    "devices of z": 1,
}

# device_put hands the data over: what has been moved is no longer on any device under the old name.
array_facts__wrong_gone = {**array_facts__right_asked, "devices of x afterwards": 0}

# ---------------------------------------------------------------- axis_type

axis_type__right_asked = {
    'jax.make_mesh((8,), ("x",))': jax.make_mesh((8,), ("x",)).axis_types[0].name,
    'Mesh(np.array(jax.devices()), ("x",))': "Auto",
    "inside jax.shard_map": "Manual",
    "the compiler decides": "Auto",
    "part of the array's type": "Explicit",
    "sees its own block": "Manual",
}

# What make_mesh chooses today, Mesh chooses too: they are two ways of writing the same thing.
axis_type__wrong_both = {
    **axis_type__right_asked,
    'jax.make_mesh((8,), ("x",))': "Explicit",
    'Mesh(np.array(jax.devices()), ("x",))': "Explicit",
}

# shard_map keeps the type of the mesh that it is given, and the lesson's mesh is Auto.
axis_type__wrong_kept = {**axis_type__right_asked, "inside jax.shard_map": "Auto"}

# With Explicit axes I write out the layout, so there each function works on its own block.
axis_type__wrong_explicit = {**axis_type__right_asked, "sees its own block": "Explicit"}

# A layout in the type is there for the compiler to read, so "the compiler decides" is Explicit, and Auto has the type, which comes by itself.
axis_type__wrong_swapped = {
    **axis_type__right_asked,
    "the compiler decides": "Explicit",
    "part of the array's type": "Auto",
}
