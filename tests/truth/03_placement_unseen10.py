"""Answers to lesson 03, tenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


# ---------------------------------------------------------------- who_holds_it

_all = list(range(8))

who_holds_it__right_ranges = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": _all,
    "front": list(range(4)),
    "whole[0]": _all,
    "jax.device_put(front, there)": list(range(4, 8)),
}

# Thought that entry 0 of `whole` is on device 0, so that whole[0] is there as well.
who_holds_it__wrong_its_owner = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# Thought that the host's memory is that of device 0, since the devices are simulated by the CPU.
who_holds_it__wrong_host_is_zero = {
    "v": [0],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# Thought that the result of a device_put is in both places, as the old array stays where it is.
who_holds_it__wrong_both_places = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [0, 1, 2, 3, 4, 5, 6, 7],
}

# Thought that an empty spec spreads nothing, so that the array stays on the first device; and so does a single number.
who_holds_it__wrong_empty_spec = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0],
    "front": [0, 1, 2, 3],
    "whole[0]": [0],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}


# ---------------------------------------------------------------- device_order

_ring = [0, 2, 4, 6, 7, 5, 3, 1]
_turned = [7, 6, 5, 4, 3, 2, 1, 0]

device_order__right_index = {
    "backwards on device 0": 10 * _turned.index(0),
    "backwards on device 5": 10 * _turned.index(5),
    "winding on device 4": 10 * _ring.index(4),
    "winding on device 1": 10 * _ring.index(1),
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Read the ring the other way: took which device stands at place 4 and at place 1 for the block of device 4 and of device 1.
device_order__wrong_inverse = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 70,
    "winding on device 1": 20,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Thought that NumPy collects the blocks in the order of the device numbers, beginning with what device 0 holds.
device_order__wrong_collected = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 70,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}

# Thought that a device_put to the same eight devices has nothing to move, so that each keeps its block.
device_order__wrong_nothing_moves = {
    "backwards on device 0": 70,
    "backwards on device 5": 20,
    "winding on device 4": 20,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 70,
}

# Counted places from 1 in the middle of the list (device 5 is the third of the turned mesh, device 4 the third of the ring).
device_order__wrong_third = {
    "backwards on device 0": 70,
    "backwards on device 5": 30,
    "winding on device 4": 30,
    "winding on device 1": 70,
    "np.asarray(backwards)[0]": 0,
    "jax.device_put(backwards, whole.sharding) on device 0": 0,
}


# ---------------------------------------------------------------- alias

_same = dict.fromkeys(["jax.device_put(a, a.sharding)", "jnp.asarray(a)"], "deleted")
_new = dict.fromkeys(["jnp.copy(a)", "jax.device_put(a, a.sharding, may_alias=False)", "a + 0"], "alive")

alias__right_two_kinds = {**_same, **_new, "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted"}

# Thought that every function of jnp returns a new array, asarray too.
alias__wrong_asarray = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "alive",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# Thought that JAX sees that adding 0 changes nothing, and gives back the same array.
alias__wrong_plus_zero = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "deleted",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}

# Thought that donating is a permission only, and as nobody calls delete and the result goes to a new name, `a` is still there.
alias__wrong_permission = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "alive",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "alive",
}

# Thought that device_put to the sharding that it has does nothing, whatever else it is told.
alias__wrong_nothing_to_do = {
    "jax.device_put(a, a.sharding)": "deleted",
    "jnp.asarray(a)": "deleted",
    "jnp.copy(a)": "alive",
    "jax.device_put(a, a.sharding, may_alias=False)": "deleted",
    "a + 0": "alive",
    "a itself, after jax.jit(jnp.sin, donate_argnums=0)(a)": "deleted",
}
