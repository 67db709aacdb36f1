"""Answers to lesson 04, fourth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- who_decides

who_decides__right_compiler = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# This student thinks that compiling depends on shapes and types only.
who_decides__wrong_one_program = {
    "jit compiles one program for all layouts": True,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# This student thinks that layouts travel forward only: a constraint moves what has been computed.
who_decides__wrong_forward_only = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": False,
}

# This student takes the rule about lists of devices for one about layouts, and thinks that a product of cut matrices always has sums to share.
who_decides__wrong_layouts_must_agree = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": True,
    "operands laid out differently are an error": True,
    "a constraint can divide work before it": True,
}

# This student thinks that each device computes with what it holds, so that another cut gives other numbers.
who_decides__wrong_values_by_block = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": True,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# ---------------------------------------------------------------- error_or_not

error_or_not__right_one_list = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# This student thinks that a constraint must stay on the mesh of its array, axes and names and all.
error_or_not__wrong_same_mesh = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "an error",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# This student thinks that the same eight devices will do in any order, since the compiler can send blocks.
error_or_not__wrong_any_order = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "runs",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# This student thinks that out_shardings are a constraint at the end, and as quiet about ten rows.
error_or_not__wrong_as_quiet = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "runs",
    "in_shardings unlike a committed argument's": "an error",
    "in_shardings for a NumPy argument": "runs",
}

# This student thinks that in_shardings bring what is on devices into the layout, and that what is on the host cannot have one.
error_or_not__wrong_host_has_no_layout = {
    "a constraint with a bare P, no mesh set": "an error",
    "a constraint over the devices in reverse": "an error",
    "a constraint over the devices as a mesh of 8": "runs",
    "out_shardings that cut 10 rows over x": "an error",
    "in_shardings unlike a committed argument's": "runs",
    "in_shardings for a NumPy argument": "an error",
}

# ---------------------------------------------------------------- steer


def steer__right_cut_the_weights(x, w1, w2, *, mesh):
    def laid(value, *entries):
        return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*entries)))

    hidden = jax.nn.relu(x @ laid(w1, None, "model"))
    return laid(laid(hidden, "data", "model") @ laid(w2, "model", None), "data", None)


# This student constrains the hidden columns and leaves the rows to None, thinking that None means "as it was".
def steer__wrong_none_keeps(x, w1, w2, *, mesh):
    hidden = jax.nn.relu(x @ w1)
    hidden = jax.lax.with_sharding_constraint(hidden, NamedSharding(mesh, P(None, "model")))
    return jax.lax.with_sharding_constraint(hidden @ w2, NamedSharding(mesh, P("data")))


# This student cuts the batch over both axes: the work is divided, but the rows have to be gathered at the end, and nothing is added up.
def steer__wrong_batch_over_both(x, w1, w2, *, mesh):
    hidden = jax.nn.relu(x @ w1)
    hidden = jax.lax.with_sharding_constraint(hidden, NamedSharding(mesh, P(("data", "model"), None)))
    return jax.lax.with_sharding_constraint(hidden @ w2, NamedSharding(mesh, P("data")))


# This student asks for the wanted layout of the result, and thinks that the compiler then divides the rest as well as it can.
def steer__wrong_result_only(x, w1, w2, *, mesh):
    hidden = jax.nn.relu(x @ w1)
    return jax.lax.with_sharding_constraint(hidden @ w2, NamedSharding(mesh, P("data")))


# This student cuts the columns of the result over model, so that the second product is divided, but not the first.
def steer__wrong_result_cut(x, w1, w2, *, mesh):
    hidden = jax.nn.relu(x @ w1)
    result = jax.lax.with_sharding_constraint(hidden @ w2, NamedSharding(mesh, P("data", "model")))
    return jax.lax.with_sharding_constraint(result, NamedSharding(mesh, P("data")))
