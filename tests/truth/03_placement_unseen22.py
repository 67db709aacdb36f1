"""Answers to lesson 03, twenty-second batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


# ---- commit_status

commit_status__right_table = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Whatever goes through device_put was put somewhere, and that is what commits.
commit_status__wrong_put_commits = {
    "jax.device_put(v)": True,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Device 0 is where JAX would have put it anyhow, so nothing has been said by it.
commit_status__wrong_default_device = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": False,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# What is computed from something committed is committed, and that goes for all that is made with the help of front.
commit_status__wrong_heirs_of_front = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": True,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": True,
}

# A result is committed only if all of its operands are; with one that is free it remains free.
commit_status__wrong_all_operands = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": False,
    "jnp.asarray(np.asarray(front))": False,
}


# ---- inside_jit

inside_jit__right_table = {
    "jax.device_put(jax.jit(jnp.sin)(front), there)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(front)": "error",
    "jax.jit(jnp.sin, out_shardings=there)(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "runs",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "runs",
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "error",
}

# out_shardings are about what comes out, when the program has ended: there the runtime moves it.
inside_jit__wrong_out_is_outside = inside_jit__right_table | {
    "jax.jit(jnp.sin, out_shardings=there)(front)": "runs",
}

# backwards is on the same eight devices as whole, so it is one program on one set of devices.
inside_jit__wrong_set_of_devices = inside_jit__right_table | {
    "jax.jit(lambda a: jax.device_put(a, backwards.sharding))(whole)": "runs",
}

# fresh is on device 0, and device 0 is not among 4 to 7.
inside_jit__wrong_fresh_is_on_0 = inside_jit__right_table | {
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "error",
}

# Moving is the runtime's work, so a device_put inside jit is always an error.
inside_jit__wrong_never_inside = inside_jit__right_table | {
    "jax.jit(lambda a: jax.device_put(a, NamedSharding(front.sharding.mesh, P())))(front)": "error",
    "jax.jit(lambda a: jax.device_put(a, there))(fresh)": "error",
}


# ---- how_it_travels

how_it_travels__right_table = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# alone has one block, the whole, and none of the new blocks is that: as with P(), the host has to cut it.
how_it_travels__wrong_blocks_differ = how_it_travels__right_table | {
    "jax.device_put(alone, there)": "through the host",
}

# To make it whole each of the four sends its block to each of the others' places: four blocks come together on each new device.
how_it_travels__wrong_gathers_across = how_it_travels__right_table | {
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "between devices",
}

# The function is the identity and the devices are the same eight, so nothing is to be done.
how_it_travels__wrong_identity = how_it_travels__right_table | {
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "not at all",
}

# device_put always returns a new array, so each block is copied, from its device to its device.
how_it_travels__wrong_always_new = how_it_travels__right_table | {
    "jax.device_put(front, front.sharding)": "between devices",
}
