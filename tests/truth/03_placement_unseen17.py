"""Answers to lesson 03, seventeenth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine

# ---- will_it_run

will_it_run__right_lists = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that device 0 is one of whole's eight devices, so that alone is already where it is needed.
will_it_run__wrong_among_the_eight = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "runs",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that committed arrays have to be on the same mesh, and that 4 x 2 and 2 x 4 are two meshes.
will_it_run__wrong_two_meshes = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "error",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that operands need the same spec: entries that are cut do not meet entries that are copied.
will_it_run__wrong_same_spec = {
    "whole + v": "runs",
    "whole + copies": "error",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that a NumPy array is bound to the host, on no list at all, and that whatever jnp makes is free to follow.
will_it_run__wrong_host_is_bound = {
    "whole + v": "error",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "runs",
}

# ---- no_move_in_jit


def no_move_in_jit__right_move_first(x, target):
    """2 * x, laid out over the mesh `target`, cut over x."""
    moved = jax.device_put(x, NamedSharding(target, x.sharding.spec))
    return jax.jit(lambda a: a + a)(moved)


# Thought that "over the mesh" is said by the mesh, and that P() means "as it was".
def no_move_in_jit__wrong_empty_spec(x, target):
    doubled = jax.jit(lambda a: 2 * a)(x)
    return jax.device_put(doubled, NamedSharding(target, P()))


# Thought that an array has to be taken off its devices, by NumPy, before it can be put on others.
def no_move_in_jit__wrong_by_numpy(x, target):
    doubled = np.asarray(jax.jit(lambda a: 2 * a)(x))
    return jax.device_put(doubled, NamedSharding(target, P("x")))


# Thought that only device_put is of no use inside jit, and that out_shardings may name other devices.
def no_move_in_jit__wrong_out_shardings(x, target):
    there = NamedSharding(target, P("x"))
    return jax.jit(lambda a: 2 * a, out_shardings=there)(x)


# Took `doubled_there` at its word: the result goes to the lesson's second half, whatever target is given.
def no_move_in_jit__wrong_always_second(x, target):
    double = jax.jit(lambda a: 2 * a)
    return jax.device_put(double(x), NamedSharding(second, P("x")))


# ---- who_holds_it

who_holds_it__right_devices = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": list(range(8)),
    "front": [0, 1, 2, 3],
    "whole[0]": list(range(8)),
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# Thought that the host's memory is that of device 0 (it is the CPU, after all).
who_holds_it__wrong_host_is_zero = {
    "v": [0],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# Thought that entry 0 stays on the device that holds it, and that indexing only picks it there.
who_holds_it__wrong_entry_stays = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}

# Thought that device_put adds devices: front stays where it is, so the result is on both halves.
who_holds_it__wrong_both_halves = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [0, 1, 2, 3, 4, 5, 6, 7],
}

# Thought that JAX deals out eight entries over eight devices by itself, where nobody says where.
who_holds_it__wrong_spread_by_itself = {
    "v": [],
    "jnp.arange(8)": [0, 1, 2, 3, 4, 5, 6, 7],
    "copies": [0, 1, 2, 3, 4, 5, 6, 7],
    "front": [0, 1, 2, 3],
    "whole[0]": [0, 1, 2, 3, 4, 5, 6, 7],
    "jax.device_put(front, there)": [4, 5, 6, 7],
}
