"""Answers to lesson 03, nineteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine


def stage(w, x):
    """One stage of a network."""
    return jax.nn.relu(x @ w)


# ---------------------------------------------------------------- placement_claims
placement_claims__right_run = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put",
}

# Thought: the uncommitted array is on device 0, the default, and an operation with it runs there.
placement_claims__wrong_default = {
    "policy": "on the default device",
    "same_devices": "their order",
    "other_devices": "device_put",
}

# Thought: whole + copies runs, so the same set of devices is enough.
placement_claims__wrong_set = {
    "policy": "on the committed one's devices",
    "same_devices": "nothing",
    "other_devices": "device_put",
}

# Thought: to be added block by block, two arrays have to be cut alike.
placement_claims__wrong_specs = {
    "policy": "on the committed one's devices",
    "same_devices": "their specs",
    "other_devices": "device_put",
}

# Thought: reshard ran inside jit without any complaint, so it moves too.
placement_claims__wrong_quiet_reshard = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put and reshard",
}


# ---------------------------------------------------------------- fix_the_placement
def fix_the_placement__right_named(y, z):
    """y + z, where y is, and sharded as y is."""
    home = y.sharding
    guest = jax.device_put(z, home)
    return jnp.add(guest, y)


# Thought: one of them has to move to the other, and it does not matter which.
def fix_the_placement__wrong_moved_y(y, z):
    return jax.device_put(y, z.sharding) + z


# Thought: NumPy arrays commit nothing, so z as a NumPy array follows y (and goes down to the host and up again).
def fix_the_placement__wrong_numpy(y, z):
    free = np.asarray(z)
    return y + free


# Thought: only the devices differ, so z goes to the mesh of y and keeps its own spec (an array on a single device has neither).
def fix_the_placement__wrong_own_spec(y, z):
    where = NamedSharding(y.sharding.mesh, z.sharding.spec)
    return y + jax.device_put(z, where)


# Thought: .devices() says where y is, so a line over these devices, cut over x, is y's place (right for lines in order, cut over x).
def fix_the_placement__wrong_sorted_line(y, z):
    ids = sorted(device.id for device in y.devices())
    return y + jax.device_put(z, NamedSharding(line(*ids), P("x")))


# ---------------------------------------------------------------- two_stage
def two_stage__right_axis_of_w2(x, w1, w2):
    """Both stages, each on the mesh of its weights."""
    there = w2.sharding.mesh
    (axis,) = there.axis_names
    h = stage(w1, x)
    return stage(w2, jax.device_put(h, NamedSharding(there, P(axis, None))))


# Thought: the activations have to be where w2 is, so they get the sharding of w2 (and with it are whole on every device).
def two_stage__wrong_sharding_of_w2(x, w1, w2):
    h = stage(w1, x)
    h = jax.device_put(h, w2.sharding)
    return stage(w2, h)


# Thought: what is missing beside the activations is w2, so w2 is fetched (and the result stays on the first mesh).
def two_stage__wrong_weights_travel(x, w1, w2):
    h = stage(w1, x)
    w2_here = jax.device_put(w2, w1.sharding)
    return stage(w2_here, h)


# Thought: the second stage is on devices 4 to 7, and that mesh has a name in this notebook.
def two_stage__wrong_second(x, w1, w2):
    h = jax.device_put(stage(w1, x), NamedSharding(second, P("x")))
    return stage(w2, h)


# Thought: the product sums over the columns of h, so these are what has to be cut over x for the next stage.
def two_stage__wrong_features_cut(x, w1, w2):
    h = stage(w1, x)
    target = NamedSharding(w2.sharding.mesh, P(None, "x"))
    return stage(w2, jax.device_put(h, target))
