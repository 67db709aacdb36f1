"""Answers to lesson 04, seventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# --- steer -------------------------------------------------------------------


def steer__right_cut_the_weights(x, w1, w2, *, mesh):
    """relu(x @ w1) @ w2, the work divided over both axes of the mesh, "data" and "model"."""

    def laid(value, *spec):
        return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

    w1 = laid(w1, None, "model")
    w2 = laid(w2, "model", None)
    h = laid(jax.nn.relu(x @ w1), "data", "model")
    return laid(h @ w2, "data", None)


# "A constraint is a statement about a value: say it, and go on." (what it returns is thrown away)
def steer__wrong_not_taken(x, w1, w2, *, mesh):
    h = jax.nn.relu(x @ w1)
    jax.lax.with_sharding_constraint(h, NamedSharding(mesh, P("data", "model")))
    return h @ w2


# "To share a product, cut the dimension that it sums over: that of the first product, the columns of x and the rows of w1."
def steer__wrong_first_contraction(x, w1, w2, *, mesh):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", "model")))
    w1 = jax.lax.with_sharding_constraint(w1, NamedSharding(mesh, P("model", None)))
    y = jax.nn.relu(x @ w1) @ w2
    return jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))


# "The rows are cut over data anyway; of the hidden layer I only say what is new, its columns."
def steer__wrong_rows_whole(x, w1, w2, *, mesh):
    over_model = NamedSharding(mesh, P(None, "model"))
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), over_model)
    return jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P("data")))


# "Work divided over both axes means that the result is cut over both: layouts travel backward, the rest follows."
def steer__wrong_cut_the_result(x, w1, w2, *, mesh):
    return jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1) @ w2, NamedSharding(mesh, P("data", "model")))


# --- contract ----------------------------------------------------------------

contract__right_reckoned = {
    "layout": P("y"),
    "device 0": [120 + 6 * j for j in (0, 1)],
    "device 4": [120 + 6 * j for j in (0, 1)],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 2 * (2 - 1) * (2 * 4) // 2,
}

# "What is left of the array is cut over y, so it is over y, four devices, that the sums are put together: 2 · 3/4 · 8."
contract__wrong_over_what_is_left = {
    "layout": P("y"),
    "device 0": [120, 126],
    "device 4": [120, 126],
    "collective": "all_reduce",
    "over": "y",
    "bytes sent": 12,
}

# "A device adds up its own three rows: that is what it holds."
contract__wrong_own_rows_only = {
    "layout": P("y"),
    "device 0": [24, 27],
    "device 4": [96, 99],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 8,
}

# "There are eight sums, b = 32 bytes; n = 2: 2 · 1/2 · 32." (the whole result in place of a device's part)
contract__wrong_bytes_of_all_sums = {
    "layout": P("y"),
    "device 0": [120, 126],
    "device 4": [120, 126],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 32,
}

# "x has gone from the layout, y stays in second place; and every device sends half of what it has to the other one."
contract__wrong_second_place = {
    "layout": P(None, "y"),
    "device 0": [120, 126],
    "device 4": [120, 126],
    "collective": "all_reduce",
    "over": "x",
    "bytes sent": 4,
}


# --- constrain ---------------------------------------------------------------


def constrain__right_out_shardings(v, *, mesh):
    """v + 1, from P("x", "y") to P("y", "x")."""
    return jax.jit(lambda u: u + 1, out_shardings=NamedSharding(mesh, P("y", "x")))(v)


# "Our mesh is 4 × 2." (a mesh of its own in place of the one that is given)
def constrain__wrong_own_mesh(v, *, mesh):
    grid = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(grid, P("y", "x")))


# "device_put brings an array into a layout: it has done so since lesson 02."
def constrain__wrong_device_put(v, *, mesh):
    there = NamedSharding(mesh, P("y", "x"))
    return jax.device_put(v + 1, there)


# "Both names, y first, in one entry." (rows cut over both axes)
def constrain__wrong_tuple(v, *, mesh):
    target = P(("y", "x"))
    w = v + 1
    w = jax.lax.with_sharding_constraint(w, NamedSharding(mesh, target))
    return w


# "From (x, y) to (y, x) is a transposition."
def constrain__wrong_transposed(v, *, mesh):
    return jax.lax.with_sharding_constraint((v + 1).T, NamedSharding(mesh, P("y", "x")))
