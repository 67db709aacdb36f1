"""Answers to lesson 05, third batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---------------------------------------------------------------- before_it_begins

before_it_begins__right_all = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# Whenever the layout is not the one that in_specs ask for, JAX has to reshard.
before_it_begins__wrong_different = {
    **before_it_begins__right_all,
    "laid out as P(), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P('x', 'y')": "data move",
}

# P() asks for nothing: the function gets the rows that are there already.
before_it_begins__wrong_wishless = {
    **before_it_begins__right_all,
    "laid out as P('x', None), in_specs P()": "nothing moves",
}

# Where the rows stay cut over x, every device keeps its rows, and nothing moves.
before_it_begins__wrong_rows = {
    **before_it_begins__right_all,
    "laid out as P('x', 'y'), in_specs P('x', None)": "nothing moves",
}

# It's about how many pieces there are: from one to four, from four to eight and from eight to four somebody sends; four stay four, whichever dimension.
before_it_begins__wrong_count = {
    **before_it_begins__right_all,
    "laid out as P(), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P('x', 'y')": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "nothing moves",
}

# ---------------------------------------------------------------- flat_index

flat_index__right_formula = {
    "axis_index('x')": [k // 4 for k in range(8)],
    "axis_index('y')": [k % 4 for k in range(8)],
    "axis_index(('x', 'y'))": [(k // 4) * 4 + k % 4 for k in range(8)],
    "axis_index(('y', 'x'))": [(k % 4) * 2 + k // 4 for k in range(8)],
}

# Under ('y', 'x') I multiplied by y's length instead of x's.
flat_index__wrong_length = {
    **flat_index__right_formula,
    "axis_index(('y', 'x'))": [(k % 4) * 4 + k // 4 for k in range(8)],
}

# I gave the numbers for the 4 x 2 mesh that the lesson uses.
flat_index__wrong_mesh = {
    "axis_index('x')": [0, 0, 1, 1, 2, 2, 3, 3],
    "axis_index('y')": [0, 1, 0, 1, 0, 1, 0, 1],
    "axis_index(('x', 'y'))": [0, 1, 2, 3, 4, 5, 6, 7],
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}

# Read the other way: at place k the device with that index, instead of the index on device k.
flat_index__wrong_inverse = {
    **flat_index__right_formula,
    "axis_index(('y', 'x'))": [0, 4, 1, 5, 2, 6, 3, 7],
}

# The first axis of a tuple counts fastest.
flat_index__wrong_fastest = {
    **flat_index__right_formula,
    "axis_index(('x', 'y'))": [0, 2, 4, 6, 1, 3, 5, 7],
    "axis_index(('y', 'x'))": [0, 1, 2, 3, 4, 5, 6, 7],
}

# ---------------------------------------------------------------- price_of_no_check

price_of_no_check__right_all = {
    "A, check on": "right",
    "A, check off": "right",
    "B, check on": "error",
    "B, check off": "wrong",
    "C, check on": "error",
    "C, check off": "right",
}

# Without the check the psum does not know over what to add, so A goes wrong as well.
price_of_no_check__wrong_psum = {**price_of_no_check__right_all, "A, check off": "wrong"}

# What the check refuses is wrong, so without it it gives wrong numbers: C too.
price_of_no_check__wrong_refused = {**price_of_no_check__right_all, "C, check off": "wrong"}

# out_specs P() adds up what the devices hold, so B gives the sum of all once nobody stops it.
price_of_no_check__wrong_adds = {**price_of_no_check__right_all, "B, check off": "right"}

# C's out_specs name x, so the check has nothing against it; B is stopped either way, as the shapes of a sum and P() do not fit.
price_of_no_check__wrong_named = {
    **price_of_no_check__right_all,
    "B, check off": "error",
    "C, check on": "right",
}
