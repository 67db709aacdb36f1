"""Answers to lesson 02, third batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- tutorial_faults

tutorial_faults__right_all = {
    "figure": P("y", "x"),
    "type": "Mesh",
    "replicate": "the same block",
    "equal": False,
    "nbytes": 8,
    "in_order": 2,
}

# Both leave the second dimension whole, so the two specs compare equal.
tutorial_faults__wrong_equal = {**tutorial_faults__right_all, "equal": True}

# Block 1 is the second block, so it is on device 1; and in the figure columns are cut in four, so the columns' axis x stands first.
tutorial_faults__wrong_digits = {**tutorial_faults__right_all, "figure": P("x", "y"), "in_order": 1}

# y is the first axis of the tuple, so I count down y's two devices: with four devices for each y, block 1 is device 4.
tutorial_faults__wrong_four = {**tutorial_faults__right_all, "in_order": 4}

# P("x", None) cuts into four, and devices 0 and 1 share a row block half and half; each byte of P() is then held once for every x.
tutorial_faults__wrong_half = {
    **tutorial_faults__right_all,
    "replicate": "half of a block each",
    "nbytes": 4,
}

# ---------------------------------------------------------------- legal_or_not

legal_or_not__right_all = {
    "(16, 8) as P('x', 'x')": "axis used twice",
    "(16, 8) as P('z')": "unknown axis",
    "(16,) as P('x', None)": "too many entries",
    "(10, 8) as P('y', 'x')": "fine",
    "(12, 2) as P(('x', 'y'))": "does not divide",
    "a 4 × 4 mesh": "too few devices",
}

# I matched x with the first dimension: 10 rows do not go into four.
legal_or_not__wrong_ten = {**legal_or_not__right_all, "(10, 8) as P('y', 'x')": "does not divide"}

# A None entry cuts nothing, so it may stand there without a dimension.
legal_or_not__wrong_none = {**legal_or_not__right_all, "(16,) as P('x', None)": "fine"}

# A tuple is x for the first dimension and y for the second: 12 / 4 and 2 / 2 go.
legal_or_not__wrong_tuple = {**legal_or_not__right_all, "(12, 2) as P(('x', 'y'))": "fine"}

# 16 and 8 both divide by four, so P('x', 'x') works (diagonal blocks); and simulated devices can be as many as one wants.
legal_or_not__wrong_diagonal = {
    **legal_or_not__right_all,
    "(16, 8) as P('x', 'x')": "fine",
    "a 4 × 4 mesh": "fine",
}

# ---------------------------------------------------------------- attributes

attributes__right_all = {
    "len(cut.devices())": 8,
    "cut.shape": (16, 8),
    "len(cut.addressable_shards)": 8,
    "cut.addressable_shards[5].data.shape": (8, 8),
    "cut.is_fully_replicated": False,
    "jnp.sin(cut).addressable_shards[5].data.shape": (8, 8),
}

# y has two devices, and only these two hold the array.
attributes__wrong_two = {
    **attributes__right_all,
    "len(cut.devices())": 2,
    "len(cut.addressable_shards)": 2,
}

# y is the second axis, so it cuts the second dimension.
attributes__wrong_columns = {
    **attributes__right_all,
    "cut.addressable_shards[5].data.shape": (16, 4),
    "jnp.sin(cut).addressable_shards[5].data.shape": (16, 4),
}

# There are two different blocks, so there are two shards; the copies along x are not counted.
attributes__wrong_distinct = {**attributes__right_all, "len(cut.addressable_shards)": 2}

# The rows are dealt out over the eight devices, two for each.
attributes__wrong_eighth = {
    **attributes__right_all,
    "cut.addressable_shards[5].data.shape": (2, 8),
    "jnp.sin(cut).addressable_shards[5].data.shape": (2, 8),
}
