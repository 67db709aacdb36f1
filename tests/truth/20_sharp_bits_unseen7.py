"""Answers to lesson 20, seventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- recompiles

recompiles__right_counted = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# A program is made for shape and dtype; layouts are the data's own affair.
recompiles__wrong_layouts_do_not_matter = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 1,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# Another spec is another key of the cache, and so another program.
recompiles__wrong_spelling = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 2,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# Python numbers are compiled into the program as constants, whether they are static or not.
recompiles__wrong_numbers_are_constants = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 3,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# 1 and 1.0 are equal, so the second call finds the first one's program; and "static" means compiled once and for all.
recompiles__wrong_equal_is_equal = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 1,
    "1, 2 and 3, with static_argnums=0": 1,
}


# ---------------------------------------------------------------- unchecked

unchecked__right_table = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# A full turn makes the same sum on every device: the same eight numbers, whatever they are.
unchecked__wrong_ring_is_a_sum = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "safe", "F": "unsafe"}

# Each device adds in another order, so no ring is safe, not of whole numbers either.
unchecked__wrong_no_ring = {"A": "safe", "B": "unsafe", "C": "safe", "D": "unsafe", "E": "unsafe", "F": "unsafe"}

# Whatever has a psum in it is the same everywhere, over which axis does not matter; and so B and F keep their promise.
unchecked__wrong_any_psum = dict(A="safe", B="safe", C="safe", D="safe", E="unsafe", F="safe")

# In C the spec names x only, and nobody has made the copies along y equal; in F the noise does not depend on x, so P() is kept.
unchecked__wrong_axes_mixed = {
    "A": "safe",
    "B": "unsafe",
    "C": "unsafe",
    "D": "safe",
    "E": "unsafe",
    "F": "safe",
}


# ---------------------------------------------------------------- mesh_leak

mesh_leak__right_table = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# A shard_map that is told its mesh does not look at the one in force.
mesh_leak__wrong_mesh_was_named = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "as before",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# arange has nothing to do with a mesh: it makes an array on the first device, as ever.
mesh_leak__wrong_arange_stays = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "as before",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# Every line in which `big` stands fails, reading it included, since it lives on a mesh that is not in force.
mesh_leak__wrong_big_is_lost = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "error",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# device_put wants a Sharding, a bare spec is an error with any mesh; and a mesh that was set stays after its block.
mesh_leak__wrong_bare_spec = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "error",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "error",
}
