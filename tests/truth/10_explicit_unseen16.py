"""Answers to lesson 10, sixteenth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

# ---------------------------------------------------------------- typeof

typeof__right_spaced = {
    "jnp.sin(a).T": "float32[8@y, 16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x, 8@y]",
    "v[:, None] * w": "float32[16@x, 8@y]",
    "r @ s": "float32[32@x, 24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x, 8@y]",
}

# The axes belong to the places, first x and then y, and only the lengths change places in a transpose.
typeof__wrong_places = {
    "jnp.sin(a).T": "float32[8@x,16@y]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# A sum along a cut dimension is left as parts, unreduced over x, until somebody asks for it.
typeof__wrong_unreduced = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]{U:x}",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# Where a cut dimension meets one that is stretched, the stretched one is on all devices, and the result is whole there.
typeof__wrong_stretched = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8@y]",
    "a + v[:, None]": "float32[16@x,8]",
    "v[:, None] * w": "float32[16,8]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16@x,8@y]",
}

# A sum over devices ends in an all-reduce, after which everything is whole, and so is the gradient that flows back from it.
typeof__wrong_allwhole = {
    "jnp.sin(a).T": "float32[8@y,16@x]",
    "a.sum(0)": "float32[8]",
    "a + v[:, None]": "float32[16@x,8@y]",
    "v[:, None] * w": "float32[16@x,8@y]",
    "r @ s": "float32[32@x,24@y]",
    "jax.grad(lambda a: (a * a).sum())(a)": "float32[16,8]",
}


# ---------------------------------------------------------------- relaid


def relaid__right_movefirst(a, *, mesh):
    moved = reshard(a, NamedSharding(mesh, P("y", "x")))
    return moved + 1


# From P("x", "y") to P("y", "x"): that is what a transpose does to a type.
def relaid__wrong_transpose(a, *, mesh):
    return (a + 1).T


# The word stays the same as in the tutorial, only the mesh has to be named too.
def relaid__wrong_constraint(a, *, mesh):
    return jax.lax.with_sharding_constraint(a + 1, NamedSharding(mesh, P("y", "x")))


# reshard moves the array where it lies, as an MPI call with MPI_IN_PLACE; what it returns is only for printing.
def relaid__wrong_inplace(a, *, mesh):
    result = a + 1
    reshard(result, NamedSharding(mesh, P("y", "x")))
    return result


# One dimension at a time, so that no axis comes twice; None means "leave this dimension as it is".
def relaid__wrong_oneatatime(a, *, mesh):
    rows_free = reshard(a + 1, NamedSharding(mesh, P("y", None)))
    return reshard(rows_free, NamedSharding(mesh, P(None, "x")))


# ---------------------------------------------------------------- four_answers

four_answers__right_ascpu = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "all_reduce",  # as XLA on a CPU does it
    'P(unreduced={"x"})': "none",
}

# Every device has a part of the result, and a whole result is made of parts by gathering them.
four_answers__wrong_gatherparts = {
    "P()": "all_gather",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# The shares of a sum are handed out by rows; for whole columns a device needs all rows, so the left operand is gathered.
four_answers__wrong_columns = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "all_gather",
    'P(unreduced={"x"})': "none",
}

# Only a whole result needs the others; a result that stays cut over x as the operands are is computed where it lies.
four_answers__wrong_staycut = {
    "P()": "all_reduce",
    'P("x", None)': "none",
    'P(None, "x")': "none",
    'P(unreduced={"x"})': "none",
}

# Unreduced is an all_reduce that stopped half-way: the first half is done, each device has its share of the sum.
four_answers__wrong_halfway = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "reduce_scatter",
}
