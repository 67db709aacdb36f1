"""Answers to lesson 20, eleventh batch, written by a reader of the notebook only."""

import jax
from jax.sharding import AxisType

mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
line = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))

# ---------------------------------------------------------------- rng_partitionable

rng_partitionable__right_tried = {
    "flag off: kinds of collectives": sorted({"collective_permute", "all_gather"}),
    "flag on: kinds of collectives": [],
    "the same numbers with the flag off and on": "no",
    "flag on: the same numbers on 1 and on 8 devices": "yes",
    "flag off: draws of 24 and of 25 begin alike": "no",
    "a later release of JAX: the same numbers for sure": "no",
}

# Bits come from one other device, so that can only be permutes; the student read the report's first line and stopped.
rng_partitionable__wrong_only_permutes = {
    "flag off: kinds of collectives": ["collective_permute"],
    "flag on: kinds of collectives": [],
    "the same numbers with the flag off and on": "no",
    "flag on: the same numbers on 1 and on 8 devices": "yes",
    "flag off: draws of 24 and of 25 begin alike": "no",
    "a later release of JAX: the same numbers for sure": "no",
}

# The numbers are made by the key alone; flag and release decide only how fast they are made.
rng_partitionable__wrong_key_decides_all = {
    "flag off: kinds of collectives": ["all_gather", "collective_permute"],
    "flag on: kinds of collectives": [],
    "the same numbers with the flag off and on": "yes",
    "flag on: the same numbers on 1 and on 8 devices": "yes",
    "flag off: draws of 24 and of 25 begin alike": "no",
    "a later release of JAX: the same numbers for sure": "yes",
}

# Entry k comes from the key and from k, whatever the length: true of the new way, and believed of the old one too.
rng_partitionable__wrong_prefix_stays = {
    "flag off: kinds of collectives": ["all_gather", "collective_permute"],
    "flag on: kinds of collectives": [],
    "the same numbers with the flag off and on": "no",
    "flag on: the same numbers on 1 and on 8 devices": "yes",
    "flag off: draws of 24 and of 25 begin alike": "yes",
    "a later release of JAX: the same numbers for sure": "no",
}

# Where nothing is sent each device counts its own entries from 0, as inside shard_map, so eight devices differ from one.
rng_partitionable__wrong_counts_from_zero = {
    "flag off: kinds of collectives": ["all_gather", "collective_permute"],
    "flag on: kinds of collectives": [],
    "the same numbers with the flag off and on": "no",
    "flag on: the same numbers on 1 and on 8 devices": "no",
    "flag off: draws of 24 and of 25 begin alike": "no",
    "a later release of JAX: the same numbers for sure": "no",
}

# ---------------------------------------------------------------- float_order

float_order__right_by_rounding = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# On the ring every device adds up the same eight parts, so they all have the same sum.
float_order__wrong_ring_alike = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# Devices arrive in another order each time, as threads on a GPU do, so one program gives two results.
float_order__wrong_never_twice = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "not equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# float32 is float32: another order rounds elsewhere, be the numbers whole or not, and even where the largest is picked.
float_order__wrong_floats_always_round = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "not equal",
    "pmax over 8 devices, and NumPy's max": "not equal",
    "psum over 8 devices, and over the same numbers shuffled": "not equal",
}

# The compiled program is the same and addition commutes, so the order in which the numbers are handed in cannot matter.
float_order__wrong_shuffle_same_program = {
    "psum over 8 devices, and a loop that adds one by one": "not equal",
    "psum over 8 devices, the same program twice": "equal",
    "a ring on 8 devices: the copies": "not equal",
    "psum and the loop, of whole numbers in float32": "equal",
    "pmax over 8 devices, and NumPy's max": "equal",
    "psum over 8 devices, and over the same numbers shuffled": "equal",
}

# ---------------------------------------------------------------- mesh_leak

mesh_leak__right_tried = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# This shard_map says by mesh= which mesh it wants, and big is on it: what else is in force cannot matter.
mesh_leak__wrong_named_mesh_wins = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "as before",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# Every use of an array of another mesh is refused, reading included.
mesh_leak__wrong_reading_refused = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "changed",
    "np.asarray(big).sum()": "error",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# A mesh is for arrays with a layout: one without is still made on device 0, and a bare P is still an error.
mesh_leak__wrong_new_arrays_untouched = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "as before",
    'jax.device_put(np.ones(8), P("x"))': "as before",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "as before",
}

# "Changed" is taken to need a line that went before: a device_put that goes at last is as it should be; and the mesh
# that `with` has set stays as the last one that was set.
mesh_leak__wrong_with_stays = {
    "big + 1": "error",
    'jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(big)': "error",
    "jnp.arange(8)": "changed",
    'jax.device_put(np.ones(8), P("x"))': "as before",
    "np.asarray(big).sum()": "as before",
    "big + 1, after `with jax.set_mesh(strict): ...`": "error",
}
