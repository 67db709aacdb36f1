"""Answers to lesson 08, fifth batch, written by a reader of the notebook only."""

import itertools

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


# ---- who_waits


def who_waits__right_zip_longest(calls):
    for now in itertools.zip_longest(*calls):
        if len(set(now)) > 1:
            return {device: name for device, name in enumerate(now) if name is not None}
    return {}


# Thought that it is over when the first device has finished.
def who_waits__wrong_shortest(calls):
    for now in zip(*calls):
        if len(set(now)) > 1:
            return dict(enumerate(now))
    return {}


# Thought that a device that has finished keeps nobody waiting: the others go on among themselves.
def who_waits__wrong_finished(calls):
    for step in range(max(map(len, calls), default=0)):
        now = {device: own[step] for device, own in enumerate(calls) if step < len(own)}
        if len(set(now.values())) > 1:
            return now
    return {}


# Thought that those wait who call something else than the most do: the others have met.
def who_waits__wrong_minority(calls):
    for step in range(max(map(len, calls), default=0)):
        now = {device: own[step] for device, own in enumerate(calls) if step < len(own)}
        names = list(now.values())
        if len(now) < len(calls) or len(set(names)) > 1:
            most = max(sorted(set(names)), key=names.count)
            return {device: name for device, name in now.items() if name != most or len(set(names)) == 1}
    return {}


# Thought that everybody has to call the same ones, in any order: a collective meets its like wherever it stands.
def who_waits__wrong_anyorder(calls):
    waiting = {}
    for device, own in enumerate(calls):
        for name in own:
            if any(other.count(name) < own.count(name) for other in calls):
                waiting[device] = name
                break
    return waiting


# ---- halo


def halo__right_two_shifts(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(to, source) for source, to in up]

    def on_device(block):
        before = jnp.concatenate([jax.lax.ppermute(block[-1:], "x", up), block[:-1]])
        after = jnp.concatenate([block[1:], jax.lax.ppermute(block[:1], "x", down)])
        return before + 2 * block + 4 * after

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Mixed up the ends: hands its own first entry to the next device and its last one to the previous.
def halo__wrong_ends(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        left = jax.lax.ppermute(block[:1], "x", up)
        right = jax.lax.ppermute(block[-1:], "x", down)
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Thought of a line with two ends: nobody sends from the last device to the first, or back.
def halo__wrong_open(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        left = jax.lax.ppermute(block[-1:], "x", [(d, d + 1) for d in range(n - 1)])
        right = jax.lax.ppermute(block[:1], "x", [(d + 1, d) for d in range(n - 1)])
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Used the lesson's ring of four devices, whatever the mesh.
def halo__wrong_four(x, *, mesh):
    to_previous = [(destination, source) for source, destination in TO_NEXT]

    def on_device(block):
        left = jax.lax.ppermute(block[-1:], "x", TO_NEXT)
        right = jax.lax.ppermute(block[:1], "x", to_previous)
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Passed on whole blocks, and then used one entry of each: right numbers, too many bytes.
def halo__wrong_blocks(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        previous = jax.lax.ppermute(block, "x", [(d, (d + 1) % n) for d in range(n)])
        following = jax.lax.ppermute(block, "x", [(d, (d - 1) % n) for d in range(n)])
        wide = jnp.concatenate([previous[-1:], block, following[:1]])
        return wide[:-2] + 2 * wide[1:-1] + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# ---- ring_after

ring_after__right_formula = {
    "4 devices, +1, 1 step: device 2": (2 - 1) % 4,
    "4 devices, +1, 3 steps: device 1": (1 - 3) % 4,
    "4 devices, -1, 1 step: device 3": (3 + 1) % 4,
    "8 devices, +1, 5 steps: device 2": (2 - 5) % 8,
    "8 devices, -1, 4 steps: device 6": (6 + 4) % 8,
    "8 devices, +3, 2 steps: device 1": (1 - 6) % 8,
}

# Had the first row right, and then followed the stream: said to whom the block goes, in the long rows of +1 and +3.
ring_after__wrong_goes = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 0,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 7,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 7,
}

# Thought that -1 is how numbers go down: the block of the previous device, as for +1.
ring_after__wrong_minus = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 2,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 3,
}

# Added shift and steps, instead of multiplying: 3 and 2 make 5.
ring_after__wrong_added = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 4,
}

# Counted round a ring of eight as if the devices were 1 to 8, where the count passes the seam.
ring_after__wrong_seam = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 6,
    "8 devices, -1, 4 steps: device 6": 3,
    "8 devices, +3, 2 steps: device 1": 4,
}
