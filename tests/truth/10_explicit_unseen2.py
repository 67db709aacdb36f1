"""Answers to lesson 10, second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, reshard
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
MESH = mesh


def relaid__right_moved_first(a, *, mesh):
    moved = reshard(a, NamedSharding(mesh, P("y", "x")))
    return moved + 1


def relaid__wrong_constraint(a, *, mesh):
    """A constraint, which only asserts on Explicit axes."""
    return jax.lax.with_sharding_constraint(a + 1, NamedSharding(mesh, P("y", "x")))


def relaid__wrong_transposed(a, *, mesh):
    """The transpose has that layout, and other values."""
    return (a + 1).T


def relaid__wrong_without_one(a, *, mesh):
    """a for a + 1."""
    return reshard(a, NamedSharding(mesh, P("y", "x")))


def relaid__wrong_thrown_away(a, *, mesh):
    """reshard returns the array in the new layout."""
    b = a + 1
    reshard(b, NamedSharding(mesh, P("y", "x")))
    return b


def fix_types__right_einsum(x, W1, b1, W2, b2, W3, b3, *, mesh):
    for W, b in ((W1, b1), (W2, b2)):
        x = jax.nn.relu(x @ W + b)
    out = NamedSharding(mesh, P("batch", None))
    return jnp.einsum("bh,ho->bo", x, W3, out_sharding=out) + b3


def fix_types__wrong_whole(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Whole on every device: the rows are gathered."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P())) + b3


def fix_types__wrong_cut_both_ways(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """The columns are cut over model, where they should be whole."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", "model"))) + b3


def fix_types__wrong_relu_at_the_end(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """A relu that the tutorial's third layer does not have."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    return jax.nn.relu(jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", None))) + b3)


def fix_types__wrong_put_off(x, W1, b1, W2, b2, W3, b3, *, mesh):
    """Leaves the sum unreduced, and adds the bias to the parts."""
    hidden = jax.nn.relu(jnp.dot(x, W1) + b1)
    hidden = jax.nn.relu(jnp.dot(hidden, W2) + b2)
    parts = jnp.dot(hidden, W3, out_sharding=NamedSharding(mesh, P("batch", None, unreduced={"model"})))
    return reshard(parts + b3, NamedSharding(mesh, P("batch", None)))


will_it_type__right_rules = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# R and C are laid out differently, so they do not agree
will_it_type__wrong_disagree = {
    "R + N": "ok",
    "R + C": "rule 2",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# case 3 fits together: every device can multiply, so it has a type
will_it_type__wrong_case_3_fits = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "ok",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "own rule",
}

# whole does not agree with cut
will_it_type__wrong_whole_disagrees = {
    "R + N": "rule 2",
    "R + C": "rule 2",
    "C @ R": "rule 2",
    "R @ C": "rule 3",
    "C @ N": "rule 2",
    "R[0]": "own rule",
}

# x twice among the operands of C @ R is taken for rule 3; a row is just on one device
will_it_type__wrong_twice = {
    "R + N": "ok",
    "R + C": "rule 3",
    "C @ R": "rule 3",
    "R @ C": "rule 3",
    "C @ N": "ok",
    "R[0]": "ok",
}

four_answers__right_case_3 = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# parts are gathered, not added
four_answers__wrong_gather = {
    "P()": "all_gather",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "none",
}

# what stays cut over x needs nothing
four_answers__wrong_stays_cut = {
    "P()": "all_reduce",
    'P("x", None)': "none",
    'P(None, "x")': "none",
    'P(unreduced={"x"})': "none",
}

# rows scattered, but columns gathered
four_answers__wrong_columns = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "all_gather",
    'P(unreduced={"x"})': "none",
}

# unreduced still has to be summed
four_answers__wrong_unreduced = {
    "P()": "all_reduce",
    'P("x", None)': "reduce_scatter",
    'P(None, "x")': "reduce_scatter",
    'P(unreduced={"x"})': "all_reduce",
}
