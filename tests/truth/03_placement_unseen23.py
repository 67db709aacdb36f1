"""Answers to lesson 03, twenty-third batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine

# ---------------------------------------------------------------- placement_claims

placement_claims__right_examples = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put",
}

# Two arrays that meet entry by entry must be cut alike, or JAX cannot add block to block.
placement_claims__wrong_specs = {
    "policy": "on the committed one's devices",
    "same_devices": "their specs",
    "other_devices": "device_put",
}

# The second reshard, inside jit, ran without an error, so it did its work: both bring arrays to other devices.
placement_claims__wrong_reshard_too = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put and reshard",
}

# A set of devices is a set: the compiler sorts out orders as it sorts out layouts.
placement_claims__wrong_set_of_devices = {
    "policy": "on the committed one's devices",
    "same_devices": "nothing",
    "other_devices": "device_put",
}

# The free array has no place, so the sum falls back to the default device; and device_put is for the host only.
placement_claims__wrong_default_and_reshard = {
    "policy": "on the default device",
    "same_devices": "their order",
    "other_devices": "reshard",
}

# ---------------------------------------------------------------- alias

alias__right_is = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# jnp.asarray makes a jax.Array of its own, whatever comes in.
alias__wrong_asarray_copies = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "alive",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# device_put returns a new array (so part 4), with or without may_alias.
alias__wrong_device_put_is_new = {
    "jax.device_put(a, a.sharding)": "alive",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# What changes no value is no work: the compiler drops + 0, and device_put to the same place does nothing whatever its options.
alias__wrong_no_work = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "deleted",
    "a + 0": "deleted",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# Donating lets the result use the memory, so that a lives on in it, with new values.
alias__wrong_donated_lives = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "alive",
}

# ---------------------------------------------------------------- device_order

_ring = [0, 2, 4, 6, 7, 5, 3, 1]

device_order__right_places = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 10 * _ring.index(4),
    "winding on device 1": 10 * _ring.index(1),
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Looks up the ring at the device's number (what stands at place 4?) in place of looking for the device in it.
device_order__wrong_inverse = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 70,
    "winding on device 1": 20,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# The array itself is reversed: it reads 70 first, and stays so when it is put elsewhere.
device_order__wrong_reversed_values = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 70,
    "jax.device_put(backwards, whole.sharding) on device 0": 70,
}

# Counts the places of the ring from one: device 4 is the third and holds 30; the last, device 1, goes round to 0.
device_order__wrong_from_one = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 30,
    "winding on device 1": 0,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# The same devices, all eight: device_put to the sharding of whole has nothing to move; and from the end, device 5 is the third: 30.
device_order__wrong_nothing_to_move = {
    "backwards on device 0": 70,
    "backwards on device 5": 30,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 70,
}
