"""Answers to lesson 03, ninth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from grader import put


def line(*numbers):
    """A mesh with one axis, x, over the devices of these numbers, in this order."""
    return Mesh(np.array([jax.devices()[k] for k in numbers]), ("x",), axis_types=(AxisType.Auto,))


first, second = line(0, 1, 2, 3), line(4, 5, 6, 7)  # two halves of the machine

v = 10 * np.arange(8, dtype=np.float32)  # NumPy's, on the host
everyone = line(0, 1, 2, 3, 4, 5, 6, 7)

fresh = jnp.arange(8.0)  # nobody says where
alone = jax.device_put(v, jax.devices()[0])  # on device 0, and you said so
whole, copies = put(v, P("x"), everyone), put(v, P(), everyone)
front, rear = put(v, P("x"), first), put(v, P("x"), second)
there = rear.sharding

# ---------------------------------------------------------------- placement_claims

placement_claims__right_rerun = dict(
    policy="on the committed one's devices", same_devices="their order", other_devices="device_put"
)

# The uncommitted array sits on the default device, and what mixes two places goes to where JAX puts things by itself.
placement_claims__wrong_default_device = {
    "policy": "on the default device",
    "same_devices": "their order",
    "other_devices": "device_put",
}

# .devices() is a set, sets have no order, and specs are the compiler's business: the same set is enough.
placement_claims__wrong_a_set = {
    "policy": "on the committed one's devices",
    "same_devices": "nothing",
    "other_devices": "device_put",
}

# Inside jit the reshard to the other four ran without any complaint, so both bring it there.
placement_claims__wrong_it_ran = {
    "policy": "on the committed one's devices",
    "same_devices": "their order",
    "other_devices": "device_put and reshard",
}

# As with DTensor: operands need the same placements, and redistribute (here: reshard) is what moves them; device_put is for first use.
placement_claims__wrong_redistribute = {
    "policy": "on the committed one's devices",
    "same_devices": "their specs",
    "other_devices": "reshard",
}

# ---------------------------------------------------------------- no_move_in_jit


def no_move_in_jit__right_move_first(x, target):
    arrived = jax.device_put(x, NamedSharding(target, P("x")))
    return jax.jit(lambda a: a + a)(arrived)


# device_put is what fails inside jit; out_shardings say for the *result* where it goes, and the runtime delivers it.
def no_move_in_jit__wrong_out_shardings(x, target):
    doubled = jax.jit(lambda a: 2 * a, out_shardings=NamedSharding(target, P("x")))
    return doubled(x)


# `there` is the sharding of the other half, which is what doubled_there has to reach.
def no_move_in_jit__wrong_always_there(x, target):
    doubled = jax.jit(lambda a: 2 * a)(x)
    return jax.device_put(doubled, there)


# First broadcast the whole to the new devices, then each takes its own part in a program, as the text has it: layouts change in programs.
def no_move_in_jit__wrong_whole_then_cut(x, target):
    doubled = jax.jit(lambda a: 2 * a)(x)
    everywhere = jax.device_put(doubled, NamedSharding(target, P()))
    take_part = jax.jit(lambda a: a, out_shardings=NamedSharding(target, P("x")))
    return take_part(everywhere)


# I send block k to the k-th new device myself, going through the devices in the order of their numbers.
def no_move_in_jit__wrong_by_rank(x, target):
    double = jax.jit(lambda a: 2 * a)
    ranks = sorted(target.devices.flat, key=lambda device: device.id)
    shards = sorted(x.addressable_shards, key=lambda shard: shard.device.id)
    blocks = []
    for shard, device in zip(shards, ranks):
        blocks.append(jax.device_put(double(shard.data), device))
    return jax.make_array_from_single_device_arrays(x.shape, NamedSharding(target, P("x")), blocks)


# ---------------------------------------------------------------- how_it_travels

how_it_travels__right_by_blocks = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# `alone` is in one piece and the new layout wants four blocks that nobody has, so the host has to cut it.
how_it_travels__wrong_host_cuts = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "through the host",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# To make copies of a cut array is an all_gather, and collectives are run by programs, whoever calls them.
how_it_travels__wrong_put_gathers = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "in a program",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# The jitted function is the identity and both arrays are on the same eight devices, so nothing has to go anywhere.
how_it_travels__wrong_identity = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "through the host",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "not at all",
    "jax.device_put(np.asarray(front), there)": "through the host",
}

# device_put is the tool that goes from devices to devices; asarray of an array on CPU devices is only a view of it.
how_it_travels__wrong_put_is_direct = {
    "jax.device_put(front, front.sharding)": "not at all",
    "jax.device_put(front, there)": "between devices",
    "jax.device_put(front, NamedSharding(there.mesh, P()))": "between devices",
    "jax.device_put(alone, there)": "between devices",
    "jax.jit(lambda a: a, out_shardings=copies.sharding)(whole)": "in a program",
    "jax.device_put(np.asarray(front), there)": "between devices",
}
