"""Answers to lesson 03, twenty-fourth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


# ---- commit_status ----

commit_status__right_table = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that device_put commits always, whether one says where or not.
commit_status__wrong_every_device_put = {
    "jax.device_put(v)": True,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that only what device_put itself returns is committed, not what is computed or made from it.
commit_status__wrong_only_device_put = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": False,
    "front + fresh": False,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that device 0, the default, is where JAX would put it anyway, so that naming it commits nothing.
commit_status__wrong_default_device = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": False,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that whatever is derived from front, its shape or its values through NumPy, inherits where front is.
commit_status__wrong_remembers_front = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": True,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": True,
}


# ---- will_it_run ----

will_it_run__right_table = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that the devices need only overlap: device 0 is one of whole's eight, so JAX can use it there.
will_it_run__wrong_subset = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "runs",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thought of a mesh's devices as a set: the same eight in any order, and the compiler does the exchange.
will_it_run__wrong_sets = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "runs",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that both operands must be on the very same mesh with the same layout, as communicators must agree in MPI.
will_it_run__wrong_same_mesh = {
    "whole + v": "runs",
    "whole + copies": "error",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "error",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that ones_like makes a new array, which nobody has put anywhere, and that only NumPy's v has no place at all and stops it.
will_it_run__wrong_like_is_free = {
    "whole + v": "error",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "runs",
}


# ---- how_it_travels ----

how_it_travels__right_table = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# Thought that the single device's block is none of the four blocks that are wanted, so that the host has to cut it.
how_it_travels__wrong_alone_by_host = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "through the host",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# Thought that device_put to P() becomes an all_gather, which is a program, as any change of layout is.
how_it_travels__wrong_gathers_itself = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "in a program",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# Thought that a function which returns its argument has nothing to do, whatever out_shardings says.
how_it_travels__wrong_identity_is_nothing = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "not at all",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# Thought that whatever has its origin and its end on devices goes directly, also the gathering and the view that NumPy takes on a CPU.
how_it_travels__wrong_gpu_direct = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "between devices",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "between devices",
}
