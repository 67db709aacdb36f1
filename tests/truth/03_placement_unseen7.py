"""Answers to lesson 03, seventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


# --- will_it_run -------------------------------------------------------------

will_it_run__right_lists = {
    name: "error" if name in ("whole + alone", "whole + backwards", "front + jnp.ones_like(rear)") else "runs"
    for name in (
        "whole + v",
        "whole + copies",
        "whole + alone",
        "whole + backwards",
        "tall + wide",
        "front + jnp.ones_like(rear)",
    )
}

# "ones_like only takes the shape of rear; fresh ones are uncommitted, and follow front."
will_it_run__wrong_ones_are_free = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "runs",
}

# "A 4 × 2 mesh and a 2 × 4 mesh are two different meshes, so their arrays cannot meet."
will_it_run__wrong_other_mesh = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "error",
    "front + jnp.ones_like(rear)": "error",
}

# "Both are on the same eight devices, and as values they are even equal: the compiler sees to the order."
will_it_run__wrong_a_set_of_devices = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "runs",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# "v is on the host, which is no device of whole's, but device 0, where alone is, is one of them."
will_it_run__wrong_is_it_among_them = {
    "whole + v": "error",
    "whole + copies": "runs",
    "whole + alone": "runs",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}


# --- fix_the_placement -------------------------------------------------------


def fix_the_placement__right_compiled(y, z):
    """y + z, where y is, and sharded as y is."""
    here = y.sharding
    return jax.jit(jnp.add, out_shardings=here)(y, jax.device_put(z, here))


# "The two have to be in one place; so I bring y to z." (forgot where the sum is wanted)
def fix_the_placement__wrong_moved_y(y, z):
    return jax.device_put(y, z.sharding) + z


# "One compiled program does the transfer and the sum together."
def fix_the_placement__wrong_inside_jit(y, z):
    @jax.jit
    def add(a, b):
        return a + jax.device_put(b, y.sharding)

    return add(y, z)


# "What is NumPy's is committed to nothing, so it goes wherever y is."
def fix_the_placement__wrong_by_numpy(y, z):
    z = np.asarray(z)
    return y + z


# "Add where z is, and bring the sum home: in the end it is where y was, and sharded so." (two transfers)
def fix_the_placement__wrong_there_and_back(y, z):
    home = y.sharding
    visiting = jax.device_put(y, z.sharding)
    total = visiting + z
    return jax.device_put(total, home)


# --- how_it_travels ----------------------------------------------------------

how_it_travels__right_blocks = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# "All four blocks are on devices, and can be sent straight to each of the others."
how_it_travels__wrong_whole_goes_across = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "between devices",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# "Nobody has a quarter of alone yet, so the host has to cut it."
how_it_travels__wrong_host_cuts_alone = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "through the host",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# "To make copies out of quarters is an all_gather, and that is a program; in row five the function returns a itself, so nothing goes."
how_it_travels__wrong_gather_is_a_program = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "in a program",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "not at all",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# "device_put always makes a new array, so it copies; and asarray of an array that is on devices is a view of it."
how_it_travels__wrong_always_a_copy = {
    "jax.device_put(front, front.sharding)": "between devices",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "between devices",
}
