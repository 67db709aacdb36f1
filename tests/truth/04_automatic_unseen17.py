"""Answers to lesson 04, seventeenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def layer(x, weights, bias):
    return jax.nn.sigmoid(x @ weights + bias)


# ---- predict_out

predict_out__right_nones = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(None),
    "v + v.T": P("d", None),
    "v.reshape(-1)": P("d"),
    "v[0]": P(None),
    "v @ v": P("d", None),
}

# Thought that where the cut dimension goes away, the one that is left takes its place and its cut.
predict_out__wrong_next_one_inherits = {
    "v.T": P(None, "d"),
    "v.sum(0)": P("d"),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P("d"),
    "v @ v": P("d"),
}

# Thought that a transpose is another view of the same array, and keeps its spec.
predict_out__wrong_transpose_keeps_spec = {
    "v.T": P("d"),
    "v.sum(0)": P(),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P("d"),
}

# Thought that the product sums over the cut rows of the second v, so an all_reduce gives everybody the whole of it.
predict_out__wrong_product_is_whole = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P("d"),
    "v.reshape(-1)": P("d"),
    "v[0]": P(),
    "v @ v": P(),
}

# Thought that a dimension of the result which comes from a cut and an uncut one is whole, to be safe.
predict_out__wrong_mixed_is_whole = {
    "v.T": P(None, "d"),
    "v.sum(0)": P(),
    "v + v.T": P(),
    "v.reshape(-1)": P(),
    "v[0]": P(),
    "v @ v": P("d"),
}

# ---- follow_the_mesh: the places are [[0, 1], [4, 5], [2, 3], [6, 7]]

follow_the_mesh__right_places = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [7, 3, 5, 1],
    "layout of relu(x @ y)": P("a", None),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [5, 4],
}

# Thought that row 1 of a 4 x 2 mesh is devices 2 and 3, as on the lesson's mesh.
follow_the_mesh__wrong_ids_are_places = {
    "who holds x[8, 0]": [2],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [2, 3],
}

# Thought that rows go over the rows of the mesh for y as for x, so that y[8] is where x[8] is, in row 1.
follow_the_mesh__wrong_rows_over_rows = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [4, 5],
    "layout of relu(x @ y)": P("a"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# Thought that the result is laid out as the first operand is, over both axes, so that one device has the entry.
follow_the_mesh__wrong_like_first_operand = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a", "b"),
    "over": "b",
    "adds up with device 4": [5],
    "who holds relu(x @ y)[8, 0]": [4],
}

# Thought that the sum runs over the axis that y does not name, and so goes down a column of the mesh.
follow_the_mesh__wrong_over_unnamed = {
    "who holds x[8, 0]": [4],
    "who holds y[8, 0]": [1, 3, 5, 7],
    "layout of relu(x @ y)": P("a"),
    "over": "a",
    "adds up with device 4": [0, 2, 6],
    "who holds relu(x @ y)[8, 0]": [4, 5],
}

# ---- divide_layer


def divide_layer__right_einsum(x, weights, bias, *, mesh):
    """sigmoid(x @ weights + bias), the contraction divided over mesh axis "x"."""
    cut, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    x, weights = jax.lax.with_sharding_constraint((x, weights), (cut, cut))
    sums = jax.lax.with_sharding_constraint(jnp.einsum("k,kj->j", x, weights), whole)
    return jax.nn.sigmoid(sums + bias)


# Divided the outputs instead of the sum: thought that the last dimension of the weights is to be cut, and gathered at the end.
def divide_layer__wrong_outputs_cut(x, weights, bias, *, mesh):
    weights = jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P(None, "x")))
    bias = jax.lax.with_sharding_constraint(bias, NamedSharding(mesh, P("x")))
    out = layer(x, weights, bias)
    return jax.lax.with_sharding_constraint(out, NamedSharding(mesh, P()))


# Did as the example above does, "over all eight devices": cut the contraction over every axis of the mesh.
def divide_layer__wrong_all_axes(x, weights, bias, *, mesh):
    everyone = NamedSharding(mesh, P(tuple(mesh.axis_names)))
    x = jax.lax.with_sharding_constraint(x, everyone)
    weights = jax.lax.with_sharding_constraint(weights, everyone)
    return layer(x, weights, bias)


# Divided the sum rightly, and then laid the result out over x as well, since "x is the axis of this function".
def divide_layer__wrong_result_cut(x, weights, bias, *, mesh):
    cut = NamedSharding(mesh, P("x"))
    x = jax.lax.with_sharding_constraint(x, cut)
    weights = jax.lax.with_sharding_constraint(weights, cut)
    return jax.lax.with_sharding_constraint(layer(x, weights, bias), cut)


# Thought that a constraint changes the array that it is given, and did not use what it returns.
def divide_layer__wrong_returns_unused(x, weights, bias, *, mesh):
    cut = NamedSharding(mesh, P("x"))
    jax.lax.with_sharding_constraint(x, cut)
    jax.lax.with_sharding_constraint(weights, cut)
    return layer(x, weights, bias)
