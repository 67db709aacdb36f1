"""Answers to lesson 04, ninth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

# ---------------------------------------------------------------- constrain


def constrain__right_out_shardings(v, *, mesh):
    wanted = NamedSharding(mesh, P("y", "x"))
    return jax.jit(lambda u: 1 + u, out_shardings=wanted)(v)


# From ("x", "y") to ("y", "x") the axes change places, so the array has to be transposed and the layout comes with it.
def constrain__wrong_transposes(v, *, mesh):
    turned = (v + 1).T
    return jax.lax.with_sharding_constraint(turned, NamedSharding(mesh, P("y", "x")))


# The constraint marks w as laid out that way; I do not need what it returns (like tensor.requires_grad_()).
def constrain__wrong_not_kept(v, *, mesh):
    w = v + 1
    jax.lax.with_sharding_constraint(w, NamedSharding(mesh, P("y", "x")))
    return w


# I turn the mesh instead: the same devices in a grid of y rows and x columns, by a reshape.
def constrain__wrong_reshaped_mesh(v, *, mesh):
    rows, columns = mesh.devices.shape
    turned = Mesh(mesh.devices.reshape(columns, rows), ("y", "x"), axis_types=(AxisType.Auto,) * 2)
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(turned, P("y", "x")))


# To get from one cut to another, undo the first cut (everybody whole), then cut again: slicing is free.
def constrain__wrong_gathers_first(v, *, mesh):
    everywhere = jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P()))
    return jax.lax.with_sharding_constraint(everywhere, NamedSharding(mesh, P("y", "x")))


# ---------------------------------------------------------------- constraint_moves

constraint_moves__right_held_or_not = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# To deal something out is dist.scatter, and of the five words the one that sends everybody another piece is all_to_all.
constraint_moves__wrong_scatter = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "all_to_all",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "all_to_all",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# The blocks keep their size, so pieces are exchanged: everybody with everybody, as between rows and columns.
constraint_moves__wrong_same_size_exchange = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "all_to_all",
}

# As with v[:, :1] * v: the compiler spells "one tells all" as an all_reduce in which the others add zeros.
constraint_moves__wrong_adds_zeros = {
    'P("x", "y") → P("x", None)': "all_reduce",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# With a tuple the blocks are numbered anew over all eight devices, so they have to be sent to their new owners.
constraint_moves__wrong_renumbered = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "collective_permute",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# ---------------------------------------------------------------- steer


def steer__right_cut_the_weights(x, w1, w2, *, mesh):
    def cut(value, *spec):
        return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

    w1 = cut(w1, None, "model")  # slicing what is whole is free
    w2 = cut(w2, "model", None)
    hidden = cut(jax.nn.relu(x @ w1), "data", "model")
    return cut(hidden @ w2, "data", None)


# Layouts travel backward: if the result is cut over both axes, the work before it is divided; afterwards put it together.
def steer__wrong_cut_the_result(x, w1, w2, *, mesh):
    product = jax.nn.relu(x @ w1) @ w2
    product = jax.lax.with_sharding_constraint(product, NamedSharding(mesh, P("data", "model")))
    return jax.lax.with_sharding_constraint(product, NamedSharding(mesh, P("data")))


# Tensor parallel means: every weight is column parallel.
def steer__wrong_columns_both(x, w1, w2, *, mesh):
    by_columns = NamedSharding(mesh, P(None, "model"))
    w1 = jax.lax.with_sharding_constraint(w1, by_columns)
    w2 = jax.lax.with_sharding_constraint(w2, by_columns)
    h = jax.nn.relu(x @ w1)
    return jax.lax.with_sharding_constraint(h @ w2, NamedSharding(mesh, P("data")))


# The all_reduce adds up what the devices along model have, so I divide by their number, as after dist.all_reduce.
def steer__wrong_averages(x, w1, w2, *, mesh):
    h = jax.lax.with_sharding_constraint(jax.nn.relu(x @ w1), NamedSharding(mesh, P("data", "model")))
    y = (h @ w2) / mesh.shape["model"]
    return jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))


# All eight devices share the batch: cut its rows over both axes, and everybody has an eighth of the work.
def steer__wrong_batch_over_both(x, w1, w2, *, mesh):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(("data", "model"))))
    y = jax.nn.relu(x @ w1) @ w2
    return jax.lax.with_sharding_constraint(y, NamedSharding(mesh, P("data")))
