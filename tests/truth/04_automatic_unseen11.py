"""Answers to lesson 04, eleventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# --------------------------------------------------------- read_the_benchmark

recorded = {"sin, 1 core": 25.2, "sin, 8 cores": 2.4, "matmul, 1 core": 49.7, "matmul, 8 cores": 7.47}

read_the_benchmark__right_computed = {
    "speed-up of sin": recorded["sin, 1 core"] / recorded["sin, 8 cores"],
    "efficiency of matmul": recorded["matmul, 1 core"] / (8 * recorded["matmul, 8 cores"]),
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "25.2 ± 30.9 is noise",
    "the first call is slowest, because (it is compiled / the devices warm up)": "it is compiled",
    "without block_until_ready one times (the dispatch / the whole work)": "the dispatch",
    "simulated devices gain nothing, because (they share a processor / they communicate)": "they share a processor",
}

# took the speed-up for the efficiency, and forgot to divide by the cores
read_the_benchmark__wrong_undivided = {
    "speed-up of sin": 10.5,
    "efficiency of matmul": 49.7 / 7.47,
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "25.2 ± 30.9 is noise",
    "the first call is slowest, because (it is compiled / the devices warm up)": "it is compiled",
    "without block_until_ready one times (the dispatch / the whole work)": "the dispatch",
    "simulated devices gain nothing, because (they share a processor / they communicate)": "they share a processor",
}

# took for the speed-up how much is gained: the time saved, over the time after
read_the_benchmark__wrong_saved = {
    "speed-up of sin": (25.2 - 2.4) / 2.4,
    "efficiency of matmul": (49.7 - 7.47) / 7.47 / 8,
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "25.2 ± 30.9 is noise",
    "the first call is slowest, because (it is compiled / the devices warm up)": "it is compiled",
    "without block_until_ready one times (the dispatch / the whole work)": "the dispatch",
    "simulated devices gain nothing, because (they share a processor / they communicate)": "they share a processor",
}

# thought that a call returns when its result is there, and that block_until_ready only makes sure
read_the_benchmark__wrong_waits = {
    "speed-up of sin": 10.5,
    "efficiency of matmul": 0.832,
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "25.2 ± 30.9 is noise",
    "the first call is slowest, because (it is compiled / the devices warm up)": "it is compiled",
    "without block_until_ready one times (the dispatch / the whole work)": "the whole work",
    "simulated devices gain nothing, because (they share a processor / they communicate)": "they share a processor",
}

# thought that what sends nothing can be more than eight times as fast on eight cores
read_the_benchmark__wrong_superlinear = {
    "speed-up of sin": 10.5,
    "efficiency of matmul": 0.83,
    "sin gains more than 8, because (25.2 ± 30.9 is noise / sin sends nothing)": "sin sends nothing",
    "the first call is slowest, because (it is compiled / the devices warm up)": "it is compiled",
    "without block_until_ready one times (the dispatch / the whole work)": "the dispatch",
    "simulated devices gain nothing, because (they share a processor / they communicate)": "they share a processor",
}

# ---------------------------------------------------------------- predict_out

predict_out__right_long = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(None),
    "v + v.T": P("d", None),
    "v.reshape(-1)": P(("d",)),
    "v[0]": P(None),
    "v @ v": P("d", None),
}

# thought that a transpose keeps the layout of its argument: sharded as v is
predict_out__wrong_transpose = {
    "v.T": P("d"),
    "v.sum(0)": P(),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d"),
}

# thought that when the first dimension goes away its entry of the spec passes to the one that is left
predict_out__wrong_inherits = {
    "v.T": P(None, "d"),
    "v.sum(0)": P("d"),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P("d"),
    "v @ v": P("d"),
}

# thought that v @ v sums over a cut dimension, so that an all_reduce leaves it whole on every device
predict_out__wrong_product = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P(),
}

# thought that where two operands disagree the compiler makes both of them whole, and the sum as well
predict_out__wrong_disagree = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P(),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d"),
}

# ----------------------------------------------------------- constraint_moves

_rows = [
    'P("x", "y") → P("x", None)',
    'P("x", None) → P("x", "y")',
    'P("x", None) → P(None, "x")',
    'P() → P("y", "x")',
    'P("x") → P(("x", "y"))',
    'P(("x", "y")) → P(("y", "x"))',
]

constraint_moves__right_default = {
    **dict.fromkeys(_rows, "nothing"),  # to cut finer is free
    _rows[0]: "all_gather",
    _rows[2]: "all_to_all",
    _rows[5]: "collective_permute",
}

# thought that to cut along one more axis, the devices of that axis have to deal out what they hold
constraint_moves__wrong_dealt = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "all_to_all",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "all_to_all",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# thought that the order in a tuple changes nothing: both cut the rows into eight
constraint_moves__wrong_order = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "nothing",
}

# thought that a device which is to hold whole columns needs the blocks of all others, so gathers them and cuts
constraint_moves__wrong_columns = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_gather",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# thought that halves are put together by an all_reduce over y, as parts of a sum are
constraint_moves__wrong_reduced = {
    'P("x", "y") → P("x", None)': "all_reduce",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}
