"""Answers to lesson 03, twentieth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


# ---------------------------------------------------------------- device_order

device_order__right_places = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Reads the ring the wrong way round: "device 4" is what stands at place 4 of the list (7), so 70, and at place 1 stands 2.
device_order__wrong_inverse = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 70,
    "winding on device 1": 20,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Thinks that NumPy puts the blocks together in the order of the devices' numbers.
device_order__wrong_numpy = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 70,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Thinks that device_put has nothing to move where the array is on the same eight devices already, so each keeps its block.
device_order__wrong_stays = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 70,
}

# Counts the places from one in the middle of a list (third place: 30), though not at its ends.
device_order__wrong_from_one = {
    "backwards on device 0": 70,
    "backwards on device 5": 30,
    "winding on device 4": 30,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# ---------------------------------------------------------------- who_holds_it

who_holds_it__right_mesh = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": list(range(8)),
    "front": list(range(4)),
    "whole[0]": list(range(8)),
    "jax.device_put(front, there)": list(range(4, 8)),
}

# Thinks that entry 0 is on device 0 in whole, and so whole[0] is there, and nowhere else.
who_holds_it__wrong_entry = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# Thinks that NumPy's arrays are in the memory of device 0, as the devices are the CPU here.
who_holds_it__wrong_host = {
    "v": [0],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# Thinks that the new array is in both places, because the old one stays where it is.
who_holds_it__wrong_both = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [0, 1, 2, 3, 4, 5, 6, 7],
}

# Thinks that an array of eight entries, which nobody placed, is dealt out over the eight devices.
who_holds_it__wrong_dealt = {
    "v": [],
    "jnp.arange(8)": [0, 1, 2, 3, 4, 5, 6, 7],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# ---------------------------------------------------------------- will_it_run

will_it_run__right_lists = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thinks that it is the set of devices that counts, not their order.
will_it_run__wrong_set = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "runs",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thinks that two different meshes never meet, even where they have the same devices.
will_it_run__wrong_meshes = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "error",
    "front + jnp.ones_like(rear)": "error",
}

# Thinks that ones_like takes nothing but the shape, and is uncommitted, as jnp.ones is.
will_it_run__wrong_ones = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "runs",
}

# Thinks that device 0 is one of the eight devices of whole, so that alone is already where the program runs.
will_it_run__wrong_among = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "runs",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}
