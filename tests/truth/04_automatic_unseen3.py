"""Answers to lesson 04, third batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- read_the_benchmark

read_the_benchmark__right_all = {
    "speed-up of sin": 25.2 / 2.4,
    "efficiency of matmul": 49.7 / (8 * 7.47),
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "25.2 ± 30.9 is noise",
    "the first call is slowest, because (it is compiled / the devices warm up)": "it is compiled",
    "without block_until_ready one times (the dispatch / the whole work)": "the dispatch",
    "simulated devices gain nothing, because (they share a processor / they communicate)": "they share a processor",
}

# The efficiency is how many times faster it got.
read_the_benchmark__wrong_efficiency = {
    **read_the_benchmark__right_all,
    "efficiency of matmul": 49.7 / 7.47,
}

# sin needs nothing from others, and that is why it beats eight.
read_the_benchmark__wrong_nothing = {
    **read_the_benchmark__right_all,
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "sin sends nothing",
}

# Python waits for the result of a function, so the time is that of all the work; and eight simulated devices are slow because of what they send.
read_the_benchmark__wrong_waits = {
    **read_the_benchmark__right_all,
    "without block_until_ready one times (the dispatch / the whole work)": "the whole work",
    "simulated devices gain nothing, because (they share a processor / they communicate)": "they communicate",
}

# "Speed-up" as the part of the time that is saved; and the efficiency from the part that eight devices should have saved.
read_the_benchmark__wrong_saved = {
    **read_the_benchmark__right_all,
    "speed-up of sin": (25.2 - 2.4) / 25.2,
    "efficiency of matmul": (49.7 - 7.47) / 49.7,
}

# ---------------------------------------------------------------- predict_moves

predict_moves__right_all = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# A transpose sends rows to columns: everybody gives a piece to everybody.
predict_moves__wrong_transpose = {**predict_moves__right_all, "v.T": "all_to_all"}

# Products add over the cut dimension, so v @ v ends with a sum over the devices.
predict_moves__wrong_product = {**predict_moves__right_all, "v @ v": "all_reduce"}

# A running sum is a sum, so parts are added; and rolling by one shifts every row, so every device deals out its rows.
predict_moves__wrong_running = {
    **predict_moves__right_all,
    "v.cumsum(0)": "all_reduce",
    "jnp.roll(v, 1, axis=0)": "all_to_all",
}

# For v + v.T a device needs columns from all rows: it gathers. And in a running sum each hands its total to the next one.
predict_moves__wrong_neighbour = {
    **predict_moves__right_all,
    "v + v.T": "all_gather",
    "v.cumsum(0)": "collective_permute",
}

# ---------------------------------------------------------------- constraint_moves

constraint_moves__right_all = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# From one layout to a finer one the pieces have to be dealt out.
constraint_moves__wrong_dealt = {
    **constraint_moves__right_all,
    'P("x", None) → P("x", "y")': "all_to_all",
    'P("x") → P(("x", "y"))': "all_to_all",
}

# The order within a tuple is only spelling: both cut the rows into eight.
constraint_moves__wrong_order = {
    **constraint_moves__right_all,
    'P(("x", "y")) → P(("y", "x"))': "nothing",
}

# From rows to columns a device needs something of every row: all rows are gathered and the columns cut out.
constraint_moves__wrong_gather = {
    **constraint_moves__right_all,
    'P("x", None) → P(None, "x")': "all_gather",
    'P(("x", "y")) → P(("y", "x"))': "all_to_all",
}

# The axes of the spec say who sends: y is dropped, so y's devices add up; from P() somebody has to send it out first.
constraint_moves__wrong_reduce = {
    **constraint_moves__right_all,
    'P("x", "y") → P("x", None)': "all_reduce",
    'P() → P("y", "x")': "collective_permute",
}
