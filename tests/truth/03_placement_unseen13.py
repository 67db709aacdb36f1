"""Answers to lesson 03, thirteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- will_it_run

will_it_run__right_lists = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# This student thinks that it is enough that both are on the same set of devices, whatever the order.
will_it_run__wrong_same_set = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "runs",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# This student thinks that two operands must have the same mesh and be cut alike.
will_it_run__wrong_same_layout = {
    "whole + v": "runs",
    "whole + copies": "error",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "error",
    "front + jnp.ones_like(rear)": "error",
}

# This student thinks that ones_like takes over shape and dtype only, and is free to follow.
will_it_run__wrong_like_is_free = {
    "whole + v": "runs",
    "whole + copies": "runs",
    "whole + alone": "error",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "runs",
}

# This student thinks that device 0 belongs to whole's devices, so alone is there already; but NumPy's v is nowhere.
will_it_run__wrong_subset = {
    "whole + v": "error",
    "whole + copies": "runs",
    "whole + alone": "runs",
    "whole + backwards": "error",
    "tall + wide": "runs",
    "front + jnp.ones_like(rear)": "error",
}

# ---------------------------------------------------------------- placement_claims

placement_claims__right_rules = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put",
}

# This student thinks that where JAX is not sure it computes on the default device.
placement_claims__wrong_default = {
    "policy": "on the default device",
    "same_devices": "their order",
    "other_devices": "device_put",
}

# This student thinks that eight devices are eight devices, and a mesh is a set.
placement_claims__wrong_a_set = {
    "policy": "on the committed one's devices",
    "same_devices": "nothing",
    "other_devices": "device_put",
}

# This student thinks that what made whole + backwards fail was that the two are cut differently.
placement_claims__wrong_specs = {
    "policy": "on the committed one's devices",
    "same_devices": "their specs",
    "other_devices": "device_put",
}

# This student saw reshard run inside jit without an error, and concludes that it moved the array.
placement_claims__wrong_reshard_ran = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put and reshard",
}

# ---------------------------------------------------------------- halves_pipeline


def halves_pipeline__right_reduce(batches, weights):
    """Every batch through all stages, stage k on the mesh of weights[k]."""
    import functools

    def through(x, w):
        return stage(w, jax.device_put(x, NamedSharding(w.sharding.mesh, P("x"))))

    return [functools.reduce(through, weights, batch) for batch in batches]


# This student sends the batch to the sharding of the weights, and so it is whole on every device of the mesh.
def halves_pipeline__wrong_like_weights(batches, weights):
    results = []
    for h in batches:
        for w in weights:
            h = stage(w, jax.device_put(h, w.sharding))
        results.append(h)
    return results


# This student hands the original batch to every stage, instead of what the stage before it made.
def halves_pipeline__wrong_not_carried(batches, weights):
    results = []
    for batch in batches:
        for w in weights:
            x = jax.device_put(batch, NamedSharding(w.sharding.mesh, P("x")))
            h = stage(w, x)
        results.append(h)
    return results


# This student writes it for the two halves of this notebook, with its meshes first and second.
def halves_pipeline__wrong_two_halves(batches, weights):
    results = []
    for batch in batches:
        h = stage(weights[0], jax.device_put(batch, NamedSharding(first, P("x"))))
        results.append(stage(weights[1], jax.device_put(h, NamedSharding(second, P("x")))))
    return results


# This student brings the activations to another mesh by way of the host, and waits for each of them.
def halves_pipeline__wrong_through_numpy(batches, weights):
    results = []
    for h in batches:
        for w in weights:
            h = stage(w, jax.device_put(np.asarray(h), NamedSharding(w.sharding.mesh, P("x"))))
        results.append(h)
    return results
