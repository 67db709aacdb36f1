"""Answers to lesson 04, second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
MESH = mesh
constrained = jax.lax.with_sharding_constraint


def constrain_whole__right_nones(v, *, mesh):
    w = v + 1
    return jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P(None, None)))


def constrain_whole__wrong_thrown_away(v, *, mesh):
    """A constraint returns the constrained value."""
    w = v + 1
    jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P()))
    return w


def constrain_whole__wrong_without_one(v, *, mesh):
    """v, not v + 1."""
    return jax.lax.with_sharding_constraint(v, NamedSharding(mesh, P()))


def constrain_whole__wrong_as_you_like(v, *, mesh):
    """UNCONSTRAINED leaves it to the compiler; whole is None."""
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(P.UNCONSTRAINED, P.UNCONSTRAINED)))


def constrain_whole__wrong_rows_only(v, *, mesh):
    """Whole rows only over x; the columns stay cut over y."""
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(None, "y")))


def steer__right_both(x, w1, w2, *, mesh):
    """The hidden layer over both axes, and the result said as well."""
    hidden = jax.nn.relu(jnp.einsum("bd,dh->bh", x, w1))
    hidden = constrained(hidden, NamedSharding(mesh, P("data", "model")))
    return constrained(hidden @ w2, NamedSharding(mesh, P("data", None)))


def steer__wrong_rows(x, w1, w2, *, mesh):
    """None is "whole": along model all compute the same."""
    hidden = constrained(jax.nn.relu(x @ w1), NamedSharding(mesh, P("data", None)))
    return hidden @ w2


def steer__wrong_columns(x, w1, w2, *, mesh):
    """The division of the batch is undone."""
    hidden = constrained(jax.nn.relu(x @ w1), NamedSharding(mesh, P(None, "model")))
    return constrained(hidden @ w2, NamedSharding(mesh, P("data")))


def steer__wrong_result(x, w1, w2, *, mesh):
    """Constrains the result, and its columns too: not laid out as P("data")."""
    return constrained(jax.nn.relu(x @ w1) @ w2, NamedSharding(mesh, P("data", "model")))


def steer__wrong_relu(x, w1, w2, *, mesh):
    """relu at the end, none in the middle."""
    hidden = constrained(x @ w1, NamedSharding(mesh, P("data", "model")))
    return jax.nn.relu(hidden @ w2)


predict_out__right_tried = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d"),
}

# the transpose keeps the spec; the sum over rows keeps it too
predict_out__wrong_spec_stays = {
    "v.T": P("d"),
    "v.sum(0)": P("d"),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P("d"),
    "v @ v": P("d"),
}

# where something is sent, the result is whole
predict_out__wrong_sent_is_whole = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P(),
    "v.reshape(-1)": P(),
    "v[0]": P(),
    "v @ v": P(),
}

# sum, row and product each in both dimensions: v.T's cut in v + v.T, both cuts in v @ v
predict_out__wrong_second_operand = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P(None, "d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P(None, "d"),
}

# v.sum(0) taken for a sum along each row: one entry for each row
predict_out__wrong_axis = {
    "v.T": P(None, "d"),
    "v.sum(0)": P("d"),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d"),
}

follow_the_mesh__right_grid = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# the devices in the order of their numbers
follow_the_mesh__wrong_numbers = {
    "who holds x[8, 0]": [2],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [2, 3],
}

# over b taken for down a column of the grid
follow_the_mesh__wrong_column = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [0, 2, 6],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# no copies: one device for every entry
follow_the_mesh__wrong_one_holder = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1],
    "layout of relu(x @ y)": P("a", "b"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4],
}

# rows of y counted as cut over a
follow_the_mesh__wrong_y_over_a = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [2, 3],
    "layout of relu(x @ y)": P("a", None),
    "over": "a",
    "adds up with device 4": [0, 2, 6],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}
