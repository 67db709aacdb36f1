"""Answers to lesson 05, eleventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---------------------------------------------------------------- price_of_no_check

price_of_no_check__right_BYBODY = {
    f"{body}, check {state}": verdict
    for body, verdicts in {
        "A": ("right", "right"),
        "B": ("error", "wrong"),
        "C": ("error", "right"),
    }.items()
    for state, verdict in zip(("on", "off"), verdicts)
}

# C's out_specs name x, so there is no promise to break and the check has nothing to refuse (forgot the carry's type).
price_of_no_check__wrong_CARRY = {
    "A, check on": "right",
    "A, check off": "right",
    "B, check on": "error",
    "B, check off": "wrong",
    "C, check on": "right",
    "C, check off": "right",
}

# An error with the check on means that the program is faulty, so with it off the same program must come out wrong.
price_of_no_check__wrong_FAULTYANYWAY = {
    "A, check on": "right",
    "A, check off": "right",
    "B, check on": "error",
    "B, check off": "wrong",
    "C, check on": "error",
    "C, check off": "wrong",
}

# B returns a scalar with out_specs P(): I read P() as "bring to one value", so the eight numbers get added on the way out once nobody objects.
price_of_no_check__wrong_OUTSPECSADD = {
    "A, check on": "right",
    "A, check off": "right",
    "B, check on": "error",
    "B, check off": "right",
    "C, check on": "error",
    "C, check off": "right",
}

# block.sum() inside A varies over x and P() does not name x, so the check stops A too; and off, the psum of the unchecked parts cannot be trusted.
price_of_no_check__wrong_PSUMVARIES = {
    "A, check on": "error",
    "A, check off": "wrong",
    "B, check on": "error",
    "B, check off": "wrong",
    "C, check on": "error",
    "C, check off": "right",
}

# ---------------------------------------------------------------- before_it_begins

before_it_begins__right_BYLISTS = {
    **dict.fromkeys(
        [
            "laid out as P('x', None), in_specs P('x', None)",
            "laid out as P(), in_specs P('x', None)",
            "laid out as P('x', None), in_specs P('x', 'y')",
        ],
        "nothing moves",
    ),
    **dict.fromkeys(
        [
            "laid out as P('x', None), in_specs P()",
            "laid out as P('x', 'y'), in_specs P('x', None)",
            "laid out as P('x', None), in_specs P(None, 'x')",
        ],
        "data move",
    ),
}

# If the two specs are not equal, JAX has to reshard, and resharding is moving.
before_it_begins__wrong_ANYMISMATCH = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P('x', 'y')": "data move",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# in_specs P() names no axis, so it asks for nothing: every device just takes what it has.
before_it_begins__wrong_EMPTYASKSNOTHING = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "nothing moves",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# I compared sizes: a quarter of the array before and a quarter after, so it is only another view (like a transpose in NumPy).
before_it_begins__wrong_SAMESIZE = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "nothing moves",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "data move",
    "laid out as P('x', None), in_specs P(None, 'x')": "nothing moves",
}

# The cheap direction the wrong way round for y: dropping y from the spec is free (it just is not used any more), adding y deals blocks out to the new devices.
before_it_begins__wrong_BACKWARDS = {
    "laid out as P('x', None), in_specs P('x', None)": "nothing moves",
    "laid out as P(), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P('x', 'y')": "data move",
    "laid out as P('x', None), in_specs P()": "data move",
    "laid out as P('x', 'y'), in_specs P('x', None)": "nothing moves",
    "laid out as P('x', None), in_specs P(None, 'x')": "data move",
}

# ---------------------------------------------------------------- four_ways

four_ways__right_ONEUNLESSREFUSED = dict.fromkeys(
    [
        "Auto mesh: sigmoid(x @ w + b)",
        "Auto mesh: the same, constrained to P('y', None)",
        "Auto mesh: shard_map, with one psum",
        "Explicit mesh: sigmoid(x @ w + b)",
        "Explicit mesh: jnp.dot(x, w, out_sharding=…)",
        "Explicit mesh: constrained to P('y', None)",
    ],
    1,
) | {
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: constrained to P('y', None)": "an error",
}

# The constraint tells JAX the layout of the product, and that is all that it was missing on the Explicit mesh.
four_ways__wrong_CONSTRAINTHELPS = {
    "Auto mesh: sigmoid(x @ w + b)": 1,
    "Auto mesh: the same, constrained to P('y', None)": 1,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": 1,
    "Explicit mesh: constrained to P('y', None)": 1,
}

# The compiler sums once for x @ w and a constraint is one more step that brings the copies into line, so one all-reduce more.
four_ways__wrong_CONSTRAINTSUMS = {
    "Auto mesh: sigmoid(x @ w + b)": 1,
    "Auto mesh: the same, constrained to P('y', None)": 2,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": 1,
    "Explicit mesh: constrained to P('y', None)": "an error",
}

# Left alone the compiler gathers the features instead of adding (no all-reduce), and out_sharding only says where the result lies, it does not add.
four_ways__wrong_GATHERSINSTEAD = {
    "Auto mesh: sigmoid(x @ w + b)": 0,
    "Auto mesh: the same, constrained to P('y', None)": 1,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": 0,
    "Explicit mesh: constrained to P('y', None)": "an error",
}

# out_sharding is checked against the layout that the product has, like a constraint; x @ w has none on an Explicit mesh, so all three are refused.
four_ways__wrong_ALLREFUSED = {
    "Auto mesh: sigmoid(x @ w + b)": 1,
    "Auto mesh: the same, constrained to P('y', None)": 1,
    "Auto mesh: shard_map, with one psum": 1,
    "Explicit mesh: sigmoid(x @ w + b)": "an error",
    "Explicit mesh: jnp.dot(x, w, out_sharding=…)": "an error",
    "Explicit mesh: constrained to P('y', None)": "an error",
}
