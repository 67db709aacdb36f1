"""Answers to lesson 03, fifth batch, written by a reader of the notebook only."""

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


# ---- commit_status

commit_status__right_who = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that device_put always commits, with a place or without.
commit_status__wrong_put = {
    "jax.device_put(v)": True,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that a result is committed only if all of its operands are.
commit_status__wrong_all = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": True,
    "front + fresh": False,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that ones_like takes over a shape and a dtype, and nothing else.
commit_status__wrong_like = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": False,
    "jnp.ones_like(front)": False,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": False,
}

# Thought that whatever is made from front is committed as front is, by way of its shape or of the host.
commit_status__wrong_from = {
    "jax.device_put(v)": False,
    "jax.device_put(v, jax.devices()[0])": True,
    "jnp.zeros(front.shape)": True,
    "jnp.ones_like(front)": True,
    "front + fresh": True,
    "jnp.asarray(np.asarray(front))": True,
}


# ---- two_stage


def two_stage__right_spec(x, w1, w2):
    onward = NamedSharding(w2.sharding.mesh, x.sharding.spec)
    return stage(w2, jax.device_put(stage(w1, x), onward))


# Thought that the activations go to where the weights are, so to the weights' sharding.
def two_stage__wrong_weights(x, w1, w2):
    h = stage(w1, x)
    h = jax.device_put(h, w2.sharding)
    return stage(w2, h)


# Thought that the second mesh is always the one of the lesson.
def two_stage__wrong_fixed(x, w1, w2):
    h = stage(w1, x)
    h = jax.device_put(h, NamedSharding(second, P("x")))
    return stage(w2, h)


# Thought that it does not matter who travels, and brought the small weights to the activations.
def two_stage__wrong_moves(x, w1, w2):
    h = stage(w1, x)
    return stage(jax.device_put(w2, w1.sharding), h)


# Thought that another mesh can be reached only by way of the host.
def two_stage__wrong_host(x, w1, w2):
    h = np.asarray(stage(w1, x))
    h = jax.device_put(h, NamedSharding(w2.sharding.mesh, P("x")))
    return stage(w2, h)


# ---- will_it_run

will_it_run__right_lists = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that operands have to be laid out alike.
will_it_run__wrong_layouts = {
    "whole + v": "runs",
    "whole + copies": "error",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "error",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that it is enough if one operand's devices are among the other's.
will_it_run__wrong_subset = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "runs",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thought of the devices as a set, whose order does not count.
will_it_run__wrong_set = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "runs",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# Thought that the host is a place of its own, which v is committed to, and that a new array of ones is free.
will_it_run__wrong_host = {
    "whole + v": "error",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "runs",
}
