"""Answers to lesson 04, twenty-fourth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


# ---- predict_out ----

predict_out__right_table = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(None),
    "v + v.T": P("d", None),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d", None),
}

# Thought that the one dimension which is left of v.sum(0) and of v[0] is the first, and so cut over d as the first was.
predict_out__wrong_sum_stays_cut = {
    "v.T": P(None, "d"),
    "v.sum(0)": P("d"),
    "v + v.T": P("d", None),
    "v.reshape(-1)": P("d"),
    "v[0]": P("d"),
    "v @ v": P("d", None),
}

# Thought that results are laid out as their argument is, so that the compiler turns v.T back to rows.
predict_out__wrong_transpose_keeps = {
    "v.T": P("d"),
    "v.sum(0)": P(None),
    "v + v.T": P("d", None),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d", None),
}

# Thought that where the operands are cut along different dimensions the result can only be whole.
predict_out__wrong_sum_of_unlike = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(None),
    "v + v.T": P(),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d", None),
}

# Thought that the cut dimension of the second v is the one summed over, so that d is free for the columns; and that a flat array has lost its rows and is whole.
predict_out__wrong_second_operand = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(None),
    "v + v.T": P("d", None),
    "v.reshape(-1)": P(),
    "v[0]": P(),
    "v @ v": P(None, "d"),
}


# ---- predict_moves ----

predict_moves__right_table = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# Thought that a transpose is the classical all-to-all of MPI, by itself as well.
predict_moves__wrong_transpose_like_mpi = {
    "v.T": "all_to_all",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# Thought that v @ v sums over a dimension that is cut, so that parts are added up.
predict_moves__wrong_product_adds_parts = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_reduce",
}

# Thought that an elementwise sum sends nothing, and that a roll moves all rows and so needs everybody's.
predict_moves__wrong_elementwise = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "nothing",
    "jnp.roll(v, 1, axis=0)": "all_to_all",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# Thought that a running sum is a sum, whose parts an all_reduce adds up.
predict_moves__wrong_prefix_is_a_sum = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_reduce",
    "v @ v": "all_gather",
}


# ---- constraint_moves ----

constraint_moves__right_table = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# Thought that the order in a tuple is a way of writing it: the same axes cut the same rows.
constraint_moves__wrong_axes_renamed = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "nothing",
}

# Thought that whoever has the data has to deal them out, as in a scatter, though all have them already.
constraint_moves__wrong_cutting_sends = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "all_to_all",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "all_to_all",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# Thought that rows to columns keeps the size of the blocks, so that devices swap whole blocks with each other.
constraint_moves__wrong_one_swap = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "collective_permute",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# Thought that another tiling of the rows means that every device gets pieces of several blocks, for both changes with a tuple.
constraint_moves__wrong_finer_rows = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "all_to_all",
    'P(("x", "y")) → P(("y", "x"))': "all_to_all",
}
