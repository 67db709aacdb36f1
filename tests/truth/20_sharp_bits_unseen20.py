"""Answers to lesson 20, twentieth batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---------------------------------------------------------------- recompiles

recompiles__right_table = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student thought that a program belongs to the spec as it is written.
recompiles__wrong_as_written = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 2,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student thought that only shape and dtype matter: the layout is moved to fit the program that is there.
recompiles__wrong_no_layout = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 1,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student thought that a Python number is a constant of the program, whether static or not.
recompiles__wrong_constants = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 3,
    "1 and 1.0": 2,
    "1, 2 and 3, with static_argnums=0": 3,
}

# This student thought that 1 and 1.0 are equal and so one program, and that "static" means: compiled once for all values.
recompiles__wrong_static_once = {
    'P("x", None), P(None, "x"), P("x", "y"), P()': 4,
    'P("x") and P("x", None)': 1,
    "shapes (8, 8) and (4, 8)": 2,
    "1, 2 and 3": 1,
    "1 and 1.0": 1,
    "1, 2 and 3, with static_argnums=0": 1,
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

# This student thought that a mesh which is given by name wins over the one in force.
mesh_leak__wrong_named_wins = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "as before",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# This student thought that a mesh in force matters only for arrays that are on a mesh already: new ones are born on device 0.
mesh_leak__wrong_born_alone = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "as before",
    'jax.device_put(np.ones(8), P("x"))': "error",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# This student thought that nothing at all can be done with an array of another mesh, not even read it.
mesh_leak__wrong_not_even_read = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "error",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# This student thought that the mesh in force moves what is computed onto itself.
mesh_leak__wrong_moves_over = {
    "big + 1": "changed",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "changed",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# ---------------------------------------------------------------- unchecked

unchecked__right_table = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "unsafe", "F": "unsafe"}

# This student thought that a sum is a sum, and that the order on the ring makes no difference that counts.
unchecked__wrong_sum_is_sum = {"A": "safe", "B": "unsafe", "C": "safe", "D": "safe", "E": "safe", "F": "unsafe"}

# This student thought that a ring adds in another order on each device, and so is never safe, whole numbers or not.
unchecked__wrong_no_ring = {"A": "safe", "B": "unsafe", "C": "safe", "D": "unsafe", "E": "unsafe", "F": "unsafe"}

# This student thought that after a psum, over whichever axis, all devices hold the same.
unchecked__wrong_any_psum = {"A": "safe", "B": "safe", "C": "safe", "D": "safe", "E": "unsafe", "F": "safe"}

# This student thought that the copies along y differ as long as no collective of the body names y.
unchecked__wrong_y_not_named = {
    "A": "unsafe",
    "B": "unsafe",
    "C": "unsafe",
    "D": "unsafe",
    "E": "unsafe",
    "F": "unsafe",
}
