"""Answers to lesson 20, second batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# wrote them down and ran them
unchecked__right_shards = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# takes the ring of tenths for equal, as it is in mathematics
unchecked__wrong_mathematics = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "safe", "F": "unsafe"}

# takes any ring for rounding, whole numbers too
unchecked__wrong_every_ring = {"A": "safe", "B": "unsafe", "C": "safe", "D": "unsafe", "E": "unsafe", "F": "unsafe"}

# thinks that a psum is a psum, along whatever axis
unchecked__wrong_psum_over_y = {"A": "safe", "B": "safe", "C": "safe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# thinks that the psum makes all of F equal
unchecked__wrong_noise = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "unsafe", "F": "safe"}

# counted with grader.compilations
recompiles__right_counted = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# thinks that two ways to write a spec are two programs
recompiles__wrong_spelling = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 2,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# thinks that layouts do not matter
recompiles__wrong_layouts_do_not_count = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 1,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# thinks that each number is a program, static or not
recompiles__wrong_every_number = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 3,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# thinks that 1 and 1.0 are the same, and that static numbers share a program
recompiles__wrong_numbers_alike = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 1,
    "1, 2 and 3, with static_argnums=0": 1,
}

# the sum in the dtype that is there, divided afterwards
int_pmean__right_sum_first = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# thinks that a mean is done in floats from the beginning
int_pmean__wrong_mean_is_safe = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (100.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# thinks that a sum of int8 becomes an int32
int_pmean__wrong_wider = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (800, "int32"),
    "pmean of int8": (100.0, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# thinks that int8 stops at its largest number
int_pmean__wrong_saturates = {
    "pmean of int32": (4.75, "float32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (127, "int8"),
    "pmean of int8": (15.875, "float32"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (4, "int32"),
}

# thinks that a mean of whole numbers is a whole number, and that bools are or-ed
int_pmean__wrong_stays_whole = {
    "pmean of int32": (4, "int32"),
    "psum of int32, // 8": (4, "int32"),
    "psum of int8": (32, "int8"),
    "pmean of int8": (4, "int8"),
    "pmean of int8, made float32 first": (100.0, "float32"),
    "psum of bool": (True, "bool"),
}

# a program on eight devices has its result on eight
first_of__right_programs = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# thinks that x[0] stays where the row is
first_of__wrong_where_the_row_is = {
    "x[0], x cut by rows": (0, 1),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# thinks that any index sends
first_of__wrong_every_index = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (1, 8),
    "x[:, 0], x cut by rows": (1, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# takes a sum over rows for one inside a device
first_of__wrong_sum_stays = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (0, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (0, 1),
}

# takes the shard for an index that sends
first_of__wrong_shard_is_sent = {
    "x[0], x cut by rows": (1, 8),
    "x[0], x cut by columns": (0, 8),
    "x[:, 0], x cut by rows": (0, 8),
    "x.sum(0), x cut by rows": (1, 8),
    "2 * x, x cut by rows": (0, 8),
    "x.addressable_shards[0].data, x cut by rows": (1, 8),
}
