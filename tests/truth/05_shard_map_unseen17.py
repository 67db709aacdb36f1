"""Answers to lesson 05, seventeenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---- before_it_begins

before_it_begins__right_WANTED_IS_HELD = {
    f"laid out as {have}, in_specs {want}": "nothing moves" if held else "data move"
    for have, want, held in [
        ("P('x', None)", "P('x', None)", True),  # the same block
        ("P()", "P('x', None)", True),  # everything is held
        ("P('x', None)", "P('x', 'y')", True),  # half of the own rows
        ("P('x', None)", "P()", False),  # six rows are missing
        ("P('x', 'y')", "P('x', None)", False),  # half of each row is missing
        ("P('x', None)", "P(None, 'x')", False),  # six of eight entries of each column are missing
    ]
}

# Thinks: nothing moves only if the two specs are equal; any other pair is a reshard, and a reshard sends.
before_it_begins__wrong_EQUAL_SPECS = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P('x', 'y')": "data move",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# Thinks: in_specs P() ask for no layout, so every device takes the block as it lies there.
before_it_begins__wrong_EMPTY_SPEC_IS_NO_WISH = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "nothing moves",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# Thinks: the spec looks the same in x, the rows are already at the right place along x, so leaving y out costs nothing.
before_it_begins__wrong_ROWS_ARE_THERE_ALREADY = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# Thinks: P() is one array on device 0 which has to be dealt out first; and P(None, 'x') gives blocks of as many entries on the same four places, so it is only read differently.
before_it_begins__wrong_ONE_COPY_AND_COUNTING_ENTRIES = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "nothing moves",
}


# ---- flat_index

flat_index__right_DIVMOD = {
    "axis_index('x')": [divmod(d, 4)[0] for d in range(8)],
    "axis_index('y')": [divmod(d, 4)[1] for d in range(8)],
    "axis_index(('x', 'y'))": list(range(8)),
    "axis_index(('y', 'x'))": [2 * (d % 4) + d // 4 for d in range(8)],
}

# Thinks of the 4 x 2 mesh of the lesson, as its cell printed it, not of 2 x 4.
flat_index__wrong_MESH_OF_THE_LESSON = {
    "axis_index('x')": [0, 0, 1, 1, 2, 2, 3, 3],
    "axis_index('y')": [0, 1, 0, 1, 0, 1, 0, 1],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}

# Thinks: x is horizontal, so it counts the columns, and y the rows; the tuples were taken from the hint's formula.
flat_index__wrong_X_IS_HORIZONTAL = {
    "axis_index('x')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index('y')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 2, 4, 6, 1, 3, 5, 7],
}

# Writes for ('y', 'x') which device has the index 0, 1, 2, ...: the devices in the order of the index, not the index of each device.
flat_index__wrong_INVERSE_PERMUTATION = {
    "axis_index('x')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index('y')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}

# Thinks: the first axis of the tuple counts fastest, as in Fortran and as in many MPI rank maps.
flat_index__wrong_FIRST_AXIS_FASTEST = {
    "axis_index('x')": [0, 0, 0, 0, 1, 1, 1, 1],
    "axis_index('y')": [0, 1, 2, 3, 0, 1, 2, 3],
    "axis_index(('x', 'y'))": [0, 2, 4, 6, 1, 3, 5, 7],
    "axis_index(('y', 'x'))": [0, 1, 2, 3, 4, 5, 6, 7],
}


# ---- partial_view

partial_view__right_CUT_WHAT_IS_MANUAL = {
    "in_specs=P('data', 'model'), no axis_names": (16 // 4, 8 // 2),
    "in_specs=P('data'), axis_names={'data'}": (16 // 4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 8 // 2),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# Thinks: an axis in in_specs that is not manual is left to the compiler and simply does not cut.
partial_view__wrong_AUTO_AXIS_IS_IGNORED = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": (4, 8),
}

# Thinks: an axis that is made manual cuts in any case (the first dimension, as data does); in_specs only say it again.
partial_view__wrong_MANUAL_ALWAYS_CUTS = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 8),
    "in_specs=P(None, 'model'), axis_names={'model'}": (16, 4),
    "in_specs=P(), axis_names={'data'}": (4, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# Thinks: the compiler cuts along the other axis as well, and .shape inside shows the block that really lies on the device.
partial_view__wrong_COMPILER_CUTS_TOO = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": (4, 4),
    "in_specs=P(None, 'model'), axis_names={'model'}": (4, 4),
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}

# Reads axis_names as the older auto=: as the axes that are left to the compiler, which the specs then may not name.
partial_view__wrong_AXIS_NAMES_ARE_AUTO = {
    "in_specs=P('data', 'model'), no axis_names": (4, 4),
    "in_specs=P('data'), axis_names={'data'}": "an error",
    "in_specs=P(None, 'model'), axis_names={'model'}": "an error",
    "in_specs=P(), axis_names={'data'}": (16, 8),
    "in_specs=P('data', 'model'), axis_names={'data'}": "an error",
}
