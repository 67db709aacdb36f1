"""Answers to lesson 03, fifteenth batch, written by a reader of the notebook only."""

import jax
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


who_holds_it__right_ranges = {
    "v": [],
    "jnp.arange(8)": [0],
    "copies": list(range(8)),
    "front": list(range(4)),
    "whole[0]": list(range(8)),
    "jax.device_put(front, there)": list(range(4, 8)),
}
# Thought: what is on the host is on device 0.
who_holds_it__wrong_host = {**who_holds_it__right_ranges, "v": [0]}
# Thought: entry 0 of whole lies on device 0, so whole[0] is there and nowhere else.
who_holds_it__wrong_entry = {**who_holds_it__right_ranges, "whole[0]": [0]}
# Thought: the old array stays where it is, so after device_put both halves hold the result.
who_holds_it__wrong_both = {**who_holds_it__right_ranges, "jax.device_put(front, there)": list(range(8))}
# Thought: an array that nobody has put anywhere (uncommitted) is on no device yet.
who_holds_it__wrong_nowhere = {**who_holds_it__right_ranges, "jnp.arange(8)": []}

placement_claims__right_plain = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put",
}
# Thought: an uncommitted array is on the default device, and the operation runs where both can be had: there.
placement_claims__wrong_default = {
    "policy": "on the default device",
    "same_devices": "their order",
    "other_devices": "device_put",
}
# Thought: to add entry to entry both must be cut alike; the compiler does not change layouts by itself.
placement_claims__wrong_specs = {
    "policy": "on the committed one's devices",
    "same_devices": "their specs",
    "other_devices": "device_put",
}
# Thought: reshard ran inside jit without a complaint, so it moved the array.
placement_claims__wrong_reshard = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put and reshard",
}
# Thought: a mesh is a set of devices, and whatever is within reach (also of reshard) is JAX's business.
placement_claims__wrong_set = {
    "policy": "on the committed one's devices",
    "same_devices": "nothing",
    "other_devices": "device_put and reshard",
}


def two_stage__right_samespec(x, w1, w2):
    """Blocks keep their form: the spec of x, on the mesh of the second weights."""
    next_mesh = w2.sharding.mesh
    hidden = stage(w1, x)
    arrived = jax.device_put(hidden, NamedSharding(next_mesh, x.sharding.spec))
    return stage(w2, arrived)


# Thought: to send from one half to the other, bring the values to the host and put them up again.
def two_stage__wrong_host(x, w1, w2):
    hidden = np.asarray(stage(w1, x))
    arrived = jax.device_put(hidden, NamedSharding(w2.sharding.mesh, P("x")))
    return stage(w2, arrived)


# Thought: the second half of the machine is always devices 4 to 7, the `second` of the notebook.
def two_stage__wrong_second(x, w1, w2):
    hidden = jax.device_put(stage(w1, x), NamedSharding(second, P("x")))
    weights = jax.device_put(w2, NamedSharding(second, P()))
    return stage(weights, hidden)


# Thought: the two products are the network; one relu at its end is enough, and the transfer stands between the products.
def two_stage__wrong_onerelu(x, w1, w2):
    hidden = jax.device_put(x @ w1, NamedSharding(w2.sharding.mesh, P("x")))
    return jax.nn.relu(hidden @ w2)


# Thought: the committed activations stay, so the second stage's weights must come to them.
def two_stage__wrong_weightsmove(x, w1, w2):
    hidden = stage(w1, x)
    visiting = jax.device_put(w2, w1.sharding)
    return stage(visiting, hidden)
