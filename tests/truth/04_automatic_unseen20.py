"""Answers to lesson 04, twentieth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


def layer(x, weights, bias):
    return jax.nn.sigmoid(x @ weights + bias)


# ---------------------------------------------------------------- divide_layer


def divide_layer__right_together(x, weights, bias, *, mesh):
    x, weights = jax.lax.with_sharding_constraint((x, weights), NamedSharding(mesh, P("x")))
    total = jax.lax.with_sharding_constraint(x @ weights, NamedSharding(mesh, P()))
    return jax.nn.sigmoid(total + bias)


# Thinks that the sum may be divided over everything there is, and cuts it over all axes of the mesh.
def divide_layer__wrong_all_axes(x, weights, bias, *, mesh):
    cut = NamedSharding(mesh, P(mesh.axis_names))
    x = jax.lax.with_sharding_constraint(x, cut)
    weights = jax.lax.with_sharding_constraint(weights, cut)
    return layer(x, weights, bias)


# Thinks that to divide the layer is to divide the columns of its weights, and puts the result together at the end.
def divide_layer__wrong_columns(x, weights, bias, *, mesh):
    weights = jax.lax.with_sharding_constraint(weights, NamedSharding(mesh, P(None, "x")))
    bias = jax.lax.with_sharding_constraint(bias, NamedSharding(mesh, P("x")))
    return jax.lax.with_sharding_constraint(layer(x, weights, bias), NamedSharding(mesh, P()))


# Thinks that device_put lays an array out inside jit as it does outside.
def divide_layer__wrong_device_put(x, weights, bias, *, mesh):
    cut = NamedSharding(mesh, P("x"))
    return layer(jax.device_put(x, cut), jax.device_put(weights, cut), bias)


# Thinks that a constraint works in place, like a method of PyTorch that ends in an underscore, and drops what it returns.
def divide_layer__wrong_in_place(x, weights, bias, *, mesh):
    cut = NamedSharding(mesh, P("x"))
    jax.lax.with_sharding_constraint(x, cut)
    jax.lax.with_sharding_constraint(weights, cut)
    return layer(x, weights, bias)


# ---------------------------------------------------------------- who_decides

who_decides__right_tried = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# Thinks that a program is compiled once for shapes and types, and the layout is looked up when it runs.
who_decides__wrong_one_program = {
    "jit compiles one program for all layouts": True,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# Thinks that a product always sums over something that is elsewhere.
who_decides__wrong_matmul = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": True,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# Takes lesson 03's error (other devices) for a rule about layouts on the same devices.
who_decides__wrong_error = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": True,
    "a constraint can divide work before it": True,
}

# Thinks that a constraint is a step of the program: what stands before it has been computed already.
who_decides__wrong_forward = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": False,
}

# ---------------------------------------------------------------- predict_moves

predict_moves__right_needs = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# Thinks that to transpose, everybody has to give a piece to everybody, as the result is to be cut by rows again.
predict_moves__wrong_transpose = {
    "v.T": "all_to_all",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# Thinks: v.T sends nothing and an addition is elementwise, so the sum of the two sends nothing.
predict_moves__wrong_elementwise = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "nothing",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_gather",
}

# Thinks that a running sum along the cut dimension is a sum along it, and takes what a sum takes.
predict_moves__wrong_running = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_reduce",
    "v @ v": "all_gather",
}

# Sees that the second v is cut along the dimension that is summed over, and forgets that the first is not: parts of sums.
predict_moves__wrong_parts = {
    "v.T": "nothing",
    "v.sum(0)": "all_reduce",
    "v + v.T": "all_to_all",
    "jnp.roll(v, 1, axis=0)": "collective_permute",
    "v.cumsum(0)": "all_gather",
    "v @ v": "all_reduce",
}
