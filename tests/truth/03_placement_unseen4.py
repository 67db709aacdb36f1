"""Answers to lesson 03, fourth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine

# ---------------------------------------------------------------- who_holds_it

who_holds_it__right_host_and_devices = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# This student thinks that the first entry of a cut array stays on the device that holds it.
who_holds_it__wrong_entry_stays = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# This student thinks that NumPy's arrays lie on the default device, because the host is the CPU that plays device 0.
who_holds_it__wrong_host_is_device_0 = {
    "v": [0],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# This student thinks that an array spreads by itself where eight devices are, and that P() keeps it on one of them.
who_holds_it__wrong_spreads_by_itself = {
    "v": [],
    "jnp.arange(8)": [0, 1, 2, 3, 4, 5, 6, 7],
    "copies": [0],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# This student thinks that device_put adds a copy, so that its result lies on the old devices and on the new ones.
who_holds_it__wrong_old_and_new = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [0, 1, 2, 3, 4, 5, 6, 7],
}

# ---------------------------------------------------------------- placement_claims

placement_claims__right_lists = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put",
}

# This student thinks that the set of the devices is all that counts.
placement_claims__wrong_set_is_enough = {
    "policy": "on the committed one's devices",
    "same_devices": "nothing",
    "other_devices": "device_put",
}

# This student thinks that operands which are added have to be cut alike, as on Explicit meshes.
placement_claims__wrong_cut_alike = {
    "policy": "on the committed one's devices",
    "same_devices": "their specs",
    "other_devices": "device_put",
}

# This student thinks that reshard is the newer device_put and does the same: inside jit nobody complained, after all.
placement_claims__wrong_both_move = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put and reshard",
}

# This student thinks that JAX falls back to the default device in doubt, and that reshard has taken device_put's place.
placement_claims__wrong_default_in_doubt = {
    "policy": "on the default device",
    "same_devices": "their order",
    "other_devices": "reshard",
}

# ---------------------------------------------------------------- how_it_travels

how_it_travels__right_block_by_block = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# This student thinks that four devices which want the whole array get it by a gather between the devices.
how_it_travels__wrong_gathered_across = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "between devices",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# This student thinks that what is whole on one device has none of the blocks that are needed, so that the host has to cut it.
how_it_travels__wrong_host_cuts = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "through the host",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# This student thinks that NumPy sees the devices' memory here, so that asarray is no trip and the blocks go straight across.
how_it_travels__wrong_numpy_is_a_view = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "between devices",
}

# This student thinks that device_put with another layout compiles a program, and that jit with out_shardings merely moves blocks.
how_it_travels__wrong_put_compiles = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "in a program",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "between devices",
    "jax.device_put(np.asarray(front), there)": "through the host",
}
