"""Answers to lesson 03, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


# ---------------------------------------------------------------- fix_the_placement


def fix_the_placement__right_jit_add(y, z):
    """y + z, where y is, and sharded as y is."""
    here = y.sharding
    visiting = jax.device_put(z, here)
    add = jax.jit(jnp.add, out_shardings=here)
    return add(y, visiting)


# Thought: the two have to meet at one place, and it is all the same at which of the two.
def fix_the_placement__wrong_at_z(y, z):
    visiting = jax.device_put(y, z.sharding)
    return visiting + z


# Thought: out_shardings say where a compiled program works, so that jit brings both operands there.
def fix_the_placement__wrong_out_shardings(y, z):
    add = jax.jit(jnp.add, out_shardings=y.sharding)
    return add(y, z)


# Thought: only the mesh must be the same, so z keeps its own spec and gets y's mesh.
def fix_the_placement__wrong_own_spec(y, z):
    there = NamedSharding(y.sharding.mesh, z.sharding.spec)
    return y + jax.device_put(z, there)


# Thought: arrays of different meshes meet on one device, and the sum is then laid out as y was.
def fix_the_placement__wrong_meet_on_one_device(y, z):
    meeting_place = jax.devices()[0]
    total = jax.device_put(y, meeting_place) + jax.device_put(z, meeting_place)
    return jax.device_put(total, y.sharding)


# ---------------------------------------------------------------- who_holds_it

_lower, _upper = list(range(4)), list(range(4, 8))

who_holds_it__right_halves = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": _lower + _upper,
    "front": _lower,
    "whole[0]": _lower + _upper,
    "jax.device_put(front, there)": _upper,
}

# Thought: entry 0 of whole is in the block of device 0, so taking it gives something on device 0.
who_holds_it__wrong_entry_where_it_was = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# Thought: device_put leaves the old one where it is, so that the array is on the old and on the new devices.
who_holds_it__wrong_old_and_new = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [0, 1, 2, 3, 4, 5, 6, 7],
}

# Thought: the devices here are the CPU, so what is on the host is on the default device, 0.
who_holds_it__wrong_host_is_device_0 = {
    "v": [0],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# Thought: what nobody has put anywhere is on no device before it is used.
who_holds_it__wrong_nowhere_yet = {
    "v": [],
    "jnp.arange(8)": [],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}


# ---------------------------------------------------------------- how_it_travels

how_it_travels__right_by_blocks = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# Thought: device_put is called in Python, and Python runs on the host: what it moves to another device comes by there.
how_it_travels__wrong_always_host = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "through the host",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "through the host",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# Thought: each new device fetches the four blocks from the four old ones, straight, and puts them together itself.
how_it_travels__wrong_each_collects = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "between devices",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# Thought: the function gives back its argument, so the program does nothing; out_shardings only say what it is called.
how_it_travels__wrong_identity_does_nothing = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "not at all",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# Thought: where the layout changes, device_put compiles a collective for it: a gather for P(), a scatter from one device.
how_it_travels__wrong_collectives_for_layouts = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "in a program",
    "jax.device_put(alone, there)": "in a program",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}
