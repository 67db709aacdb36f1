"""Answers to lesson 20, third batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def noisy(key, x):
    return x + jax.random.uniform(key, x.shape)


# ---------------------------------------------------------------- rng_partitionable


rng_partitionable__right_asked = {
    "flag off: kinds of collectives": ["all_gather", "collective_permute"],
    "flag on: kinds of collectives": [],
    "the same numbers with the flag off and on": "no",
    "flag on: the same numbers on 1 and on 8 devices": "yes",
    "flag off: draws of 24 and of 25 begin alike": "no",
    "a later release of JAX: the same numbers for sure": "no",
}

# The flag only says how the work is divided, so the numbers are those of the key, with it or without.
rng_partitionable__wrong_same = {**rng_partitionable__right_asked, "the same numbers with the flag off and on": "yes"}

# A key is a promise: the same key gives the same numbers for ever.
rng_partitionable__wrong_for_ever = {
    **rng_partitionable__right_asked,
    "a later release of JAX: the same numbers for sure": "yes",
}

# A generator is a stream: a longer draw begins with the shorter one. And other devices, other streams.
rng_partitionable__wrong_stream = {
    **rng_partitionable__right_asked,
    "flag off: draws of 24 and of 25 begin alike": "yes",
    "flag on: the same numbers on 1 and on 8 devices": "no",
}

# With the flag off one device draws everything, and all others get it by an all_reduce of zeros and numbers; on: the key is gathered.
rng_partitionable__wrong_kinds = {
    **rng_partitionable__right_asked,
    "flag off: kinds of collectives": ["all_reduce"],
    "flag on: kinds of collectives": ["all_gather"],
}

# ---------------------------------------------------------------- mesh_leak

mesh_leak__right_all = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# shard_map is given its mesh in so many words, so no other mesh matters.
mesh_leak__wrong_shard_map = {
    **mesh_leak__right_all,
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "as before",
}

# A new array is on device 0, whatever mesh is in force.
mesh_leak__wrong_born = {**mesh_leak__right_all, "jnp.arange(8)": "as before"}

# Reading big needs its devices, which are of another mesh; and a `with` sets the mesh like the other call, so it stays too.
mesh_leak__wrong_reading = {
    **mesh_leak__right_all,
    "np.asarray(big).sum()": "error",
    "big + 1, after `with jax.set_mesh(strict): ...`": "error",
}

# big + 1 moves big to the mesh in force; and a bare P needs a mesh of its own, so it remains an error as it was.
mesh_leak__wrong_moves = {
    **mesh_leak__right_all,
    "big + 1": "changed",
    'jax.device_put(np.ones(8), P("x"))': "as before",
}

# ---------------------------------------------------------------- float_order

float_order__right_all = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# The eight copies are of one sum, so they agree.
float_order__wrong_copies = {**float_order__right_all, "a ring on 8 devices: the copies": "equal"}

# float32 is float32: whole numbers are rounded like any others as soon as the order differs.
float_order__wrong_whole = {
    **float_order__right_all,
    "psum and the loop, of whole numbers in float32": "not equal",
}

# The same numbers have the same sum, shuffled or not.
float_order__wrong_shuffled = {
    **float_order__right_all,
    "psum over 8 devices, and over the same numbers shuffled": "equal",
}

# Which device comes first differs from run to run, so nothing over eight devices is reproducible, the largest neither.
float_order__wrong_arrival = {
    **float_order__right_all,
    "psum over 8 devices, the same program twice": "not equal",
    "pmax over 8 devices, and NumPy's max": "not equal",
}
