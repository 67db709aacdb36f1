"""Answers to lesson 04, sixteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- predict_moves

predict_moves__right_two_questions = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# This student thinks that the result is cut by rows again, so that in a transpose everybody needs a piece from everybody.
predict_moves__wrong_rows_again = {
    "v.T": "all_to_all",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# This student thinks: the transpose sends nothing and an elementwise sum sends nothing, so both after one another send nothing.
predict_moves__wrong_elementwise = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "nothing",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# This student thinks that every sum over something cut is made of parts and ends in an all_reduce, the product's and the running one's, too.
predict_moves__wrong_sums_reduce = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_reduce",
    "v @ v": "all_reduce",
}

# This student thinks that in a roll all rows move and every device both sends and receives, which is what all_to_all means.
predict_moves__wrong_all_send = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "all_to_all",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}


# ---------------------------------------------------------------- error_or_not

error_or_not__right_one_list = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# This student thinks that the compiler is there to move things, so that over the same devices any layout asked for is brought about.
error_or_not__wrong_compiler_moves = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "runs",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "runs",
    "in_shardings for a NumPy argument": "runs",
}

# This student thinks that a program has one mesh, with its names and its shape, and that a second mesh in it is an error.
error_or_not__wrong_one_mesh = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "an error",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# This student thinks that in_shardings have to agree with the layout of the argument, and an array on the host has none to agree with.
error_or_not__wrong_host_has_none = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "an error",
}

# This student thinks that out_shardings, like the constraint with ten rows, silently give back something whole.
error_or_not__wrong_ten_rows = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "runs",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}


# ---------------------------------------------------------------- constraint_moves

constraint_moves__right_grow_or_keep = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# This student thinks that what is to be cut further has to be dealt out first, a piece to each.
constraint_moves__wrong_deal_out = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "all_to_all",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "all_to_all",
    'P("x") → P(("x", "y"))': "all_to_all",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# This student takes the two for each other: rows to columns gives each device one other block, and mixing the axes of a tuple mixes everybody's rows.
constraint_moves__wrong_kinds_swapped = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "collective_permute",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "all_to_all",
}

# This student takes a tuple in a spec for a set of axes: the same axes cut the same rows, so nothing changes.
constraint_moves__wrong_tuple_is_set = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "nothing",
}

# This student thinks that taking a cut away puts parts together, and parts that are put together are reduced.
constraint_moves__wrong_parts_reduced = {
    'P("x", "y") → P("x", None)': "all_reduce",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}
