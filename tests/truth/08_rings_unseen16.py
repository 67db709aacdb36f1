"""Answers to lesson 08, sixteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


# ---------------------------------------------------------------- halo


def halo__right_roll_and_mend(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        before = jnp.roll(block, 1).at[0].set(jax.lax.ppermute(block[-1], "x", up))
        after = jnp.roll(block, -1).at[-1].set(jax.lax.ppermute(block[0], "x", down))
        return before + 2 * block + 4 * after

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# The first entry belongs to the device before and the last to the device after, so what stands on my right I send from my left end.
def halo__wrong_other_ends(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        left = jax.lax.ppermute(block[:1], "x", up)
        right = jax.lax.ppermute(block[-1:], "x", down)
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# The first device has nobody before it and the last nobody after it; the zeros that arrive there are what is needed.
def halo__wrong_open_ends(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        left = jax.lax.ppermute(block[-1:], "x", [(d, d + 1) for d in range(n - 1)])
        right = jax.lax.ppermute(block[:1], "x", [(d + 1, d) for d in range(n - 1)])
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# What is sent to the next device stands on the side of the next device, so it is joined on the right.
def halo__wrong_joined_crosswise(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        to_next = jax.lax.ppermute(block[-1:], "x", up)
        to_previous = jax.lax.ppermute(block[:1], "x", down)
        wide = jnp.concatenate([to_previous, block, to_next])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Get the neighbours' blocks, and take from each the one entry that is needed.
def halo__wrong_whole_blocks(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        previous = jax.lax.ppermute(block, "x", up)
        following = jax.lax.ppermute(block, "x", down)
        wide = jnp.concatenate([previous[-1:], block, following[:1]])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# ---------------------------------------------------------------- ring_after

ring_after__right_formula = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 3,
}

# The numbers that a device sees go down, so also with -1 it is the block of the device before.
ring_after__wrong_always_down = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 2,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 3,
}

# Two steps are two devices back: how far a step goes plays no part.
ring_after__wrong_steps_only = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 7,
}

# A number below zero counts without its sign: 2 - 5 is three away from device 0, which is device 3.
ring_after__wrong_without_sign = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 3,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 5,
}

# Where a step is longer or there are more of them, the question is where the block of this device has gone to.
ring_after__wrong_where_it_went = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 0,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 7,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 7,
}


# ---------------------------------------------------------------- ring_all_gather


def ring_all_gather__right_down_and_roll(x, *, mesh):
    n = mesh.shape["x"]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        seen = [block]  # the block of me, me + 1, me + 2, …
        while len(seen) < n:
            seen.append(jax.lax.ppermute(seen[-1], "x", to_previous))
        whole = jnp.roll(jnp.stack(seen), jax.lax.axis_index("x"), axis=0)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# The blocks go up the ring, so the place where they are written goes up too.
def ring_all_gather__wrong_place_goes_up(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n):
            block = jax.lax.ppermute(block, "x", pairs)
            whole = whole.at[(me + k) % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# The turns are numbered from 0, and in turn k the block of me - k arrives.
def ring_all_gather__wrong_one_place_late(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(n - 1):
            block = jax.lax.ppermute(block, "x", pairs)
            whole = whole.at[(me - k) % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# The ring of the notebook, TO_NEXT with its three steps, is the ring.
def ring_all_gather__wrong_four_devices(x, *, mesh):
    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((4, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, 4):
            block = jax.lax.ppermute(block, "x", TO_NEXT)
            whole = whole.at[(me - k) % 4].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Each device writes its block into an empty whole array and sends this round; the places then need no thought, and all is added.
def ring_all_gather__wrong_whole_array_travels(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def on_device(block):
        me = jax.lax.axis_index("x")
        travels = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        whole = travels
        for _ in range(n - 1):
            travels = jax.lax.ppermute(travels, "x", pairs)
            whole = whole + travels
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)
