"""Answers to lesson 04, twenty-second batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


# ---- who_decides

who_decides__right_table = {
    "jit compiles one program for all layouts": False,
    "values depend on the layout": False,
    "an elementwise operation on one array sends nothing": True,
    "every matmul sends something": False,
    "operands laid out differently are an error": False,
    "a constraint can divide work before it": True,
}

# jit compiles anew for another shape or dtype, and the layout is neither of them.
who_decides__wrong_shape_and_dtype = who_decides__right_table | {
    "jit compiles one program for all layouts": True,
}

# v + v.T is an elementwise operation on the one array v, and it sends.
who_decides__wrong_v_plus_v_T = who_decides__right_table | {
    "an elementwise operation on one array sends nothing": False,
}

# A sum over k needs all k, and on a mesh no device has all of them.
who_decides__wrong_needs_all_k = who_decides__right_table | {
    "every matmul sends something": True,
}

# A constraint says how the finished value is laid out: what made it has been computed by then.
who_decides__wrong_too_late = who_decides__right_table | {
    "a constraint can divide work before it": False,
}


# ---- constraint_moves

constraint_moves__right_table = {
    'P("x", "y") → P("x", None)': "all_gather",
    'P("x", None) → P("x", "y")': "nothing",
    'P("x", None) → P(None, "x")': "all_to_all",
    'P() → P("y", "x")': "nothing",
    'P("x") → P(("x", "y"))': "nothing",
    'P(("x", "y")) → P(("y", "x"))': "collective_permute",
}

# An axis that comes in new divides the blocks anew: those along it deal out their pieces to each other.
constraint_moves__wrong_new_axis_deals = constraint_moves__right_table | {
    'P("x", None) → P("x", "y")': "all_to_all",
    'P("x") → P(("x", "y"))': "all_to_all",
}

# None leaves a dimension as it was, so the columns may stay cut.
constraint_moves__wrong_none_as_it_was = constraint_moves__right_table | {
    'P("x", "y") → P("x", None)': "nothing",
}

# A column goes through all rows, so each device needs the rows of all the others: gather them, then cut.
constraint_moves__wrong_columns_need_all_rows = constraint_moves__right_table | {
    'P("x", None) → P(None, "x")': "all_gather",
}

# The same dimension is cut over the same two axes into the same eight blocks: the order in a tuple is a matter of notation.
constraint_moves__wrong_tuple_as_set = constraint_moves__right_table | {
    'P(("x", "y")) → P(("y", "x"))': "nothing",
}


# ---- constrain


def constrain__right_out_shardings(v, *, mesh):
    add_one = jax.jit(lambda a: a + 1, out_shardings=NamedSharding(mesh, P("y", "x")))
    return add_one(v)


# The axes y and x are a pair, and a pair is written in parentheses: but that cuts the rows over both (the same on a 1 x 8 mesh only).
def constrain__wrong_one_entry(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P(("y", "x"))))


# v.T comes out as P("y", "x") and sends nothing, which is what was asked for.
def constrain__wrong_transposed(v, *, mesh):
    return (v + 1).T


# Instead of the names in the spec one may as well exchange the lengths of the mesh (right on 8 x 1 and 1 x 8, where there is but one axis).
def constrain__wrong_turned_mesh(v, *, mesh):
    turned = Mesh(mesh.devices.reshape(mesh.devices.shape[::-1]), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(turned, P("x", "y")))


# If y cuts the rows, x is left over, and the compiler will use it for the columns: only what is new need be said.
def constrain__wrong_x_by_itself(v, *, mesh):
    return jax.lax.with_sharding_constraint(v + 1, NamedSharding(mesh, P("y")))
