"""Answers to lesson 08, thirteenth batch, written by a reader of the notebook only."""

from collections import Counter
from itertools import zip_longest

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]

# ---------------------------------------------------------------- shift


def shift__right_receiver(x, *, k, mesh):
    """Every device's row, on the device k places further."""
    n = mesh.shape["x"]
    pairs = [((d - k) % n, d) for d in range(n)]  # d receives from k places before it
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# Read the pairs as (destination, source), so every row goes k places back.
def shift__wrong_direction(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [((d + k) % n, d) for d in range(n)]

    def on_device(row):
        return jax.lax.ppermute(row, "x", pairs)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Wrote the pairs for the four devices of the notebook: on a longer ring the others neither send nor receive.
def shift__wrong_four_devices(x, *, k, mesh):
    pairs = [(d, (d + k) % 4) for d in range(4)]

    def on_device(row):
        return jax.lax.ppermute(row, "x", pairs)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Thought that a permutation reaches only the neighbour, and so passed the rows on one place at a time: k % n ppermutes.
def shift__wrong_step_by_step(x, *, k, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        for _ in range(k % n):
            row = jax.lax.ppermute(row, "x", to_next)
        return row

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Let rows that run over an end drop out, as in MPI with a null neighbour: a line, not a ring.
def shift__wrong_open_ends(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, d + k) for d in range(n) if 0 <= d + k < n]

    def on_device(row):
        return jax.lax.ppermute(row, "x", pairs)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# ---------------------------------------------------------------- gather_both_ways


def gather_both_ways__right_roll(x, *, mesh):
    """x, cut by rows over the mesh axis x, whole on every device, gathered from both sides."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        before, after = [block], [block]
        for _ in range(n // 2):
            before.append(jax.lax.ppermute(before[-1], "x", to_next))
        for _ in range((n - 1) // 2):
            after.append(jax.lax.ppermute(after[-1], "x", to_previous))
        around_me = jnp.stack(before[:0:-1] + after)  # entry i: the block of me - n // 2 + i
        whole = jnp.roll(around_me, jax.lax.axis_index("x") - n // 2, axis=0)
        return whole.reshape(-1, *block.shape[1:])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Let both streams run n // 2 steps: with an even number of devices the block of the device opposite comes twice.
def gather_both_ways__wrong_opposite_twice(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(b, a) for a, b in to_next]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        up = down = block
        for k in range(1, n // 2 + 1):
            up = jax.lax.ppermute(up, "x", to_next)
            down = jax.lax.ppermute(down, "x", to_previous)
            whole = whole.at[(me - k) % n].set(up)
            whole = whole.at[(me + k) % n].set(down)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought that the stream that goes up brings the blocks with higher numbers, and wrote it at me + k.
def gather_both_ways__wrong_places_swapped(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(b, a) for a, b in to_next]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        up = down = block
        for k in range(1, n // 2 + 1):
            up = jax.lax.ppermute(up, "x", to_next)
            whole = whole.at[(me + k) % n].set(up)
        for k in range(1, (n - 1) // 2 + 1):
            down = jax.lax.ppermute(down, "x", to_previous)
            whole = whole.at[(me - k) % n].set(down)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Began the second stream with what the first one had brought, not with the own block: the blocks just come back.
def gather_both_ways__wrong_not_begun_anew(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(b, a) for a, b in to_next]

    def on_device(block):
        me = jax.lax.axis_index("x")
        rows = block.shape[1]
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n // 2 + 1):
            block = jax.lax.ppermute(block, "x", to_next)
            whole = whole.at[(me - k) % n].set(block)
        for k in range(1, (n - 1) // 2 + 1):
            block = jax.lax.ppermute(block, "x", to_previous)
            whole = whole.at[(me + k) % n].set(block)
        return whole.reshape(-1, rows)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Used both directions by sending half of each block either way all round: the bytes are right, but it takes n - 1 steps.
def gather_both_ways__wrong_halves_all_round(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(b, a) for a, b in to_next]

    def on_device(block):
        me = jax.lax.axis_index("x")
        half = block.shape[1] // 2
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        left, right = block[:, :half], block[:, half:]
        for k in range(1, n):
            left = jax.lax.ppermute(left, "x", to_next)
            right = jax.lax.ppermute(right, "x", to_previous)
            whole = whole.at[(me - k) % n, :, :half].set(left)
            whole = whole.at[(me + k) % n, :, half:].set(right)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# ---------------------------------------------------------------- who_waits


def who_waits__right_zip_longest(calls):
    """The devices that are left waiting, each with the collective it waits in."""
    for row in zip_longest(*calls):
        if len(set(row)) > 1:  # None stands for a device that is done
            return {device: name for device, name in enumerate(row) if name is not None}
    return {}


# Took the length of device 0's list for the number of steps: what the others call after device 0 is done is not seen.
def who_waits__wrong_length_of_device_0(calls):
    for step in range(len(calls[0])):
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if len(now) < len(calls) or len(set(now.values())) > 1:
            return now
    return {}


# Concluded from the 181 that collectives meet by their order alone, whatever they are called: only the numbers of calls count.
def who_waits__wrong_only_counts(calls):
    fewest = min(len(own) for own in calls)
    return {d: own[fewest] for d, own in enumerate(calls) if len(own) > fewest}


# Thought that all finish if all call the same collectives equally often, in whichever order.
def who_waits__wrong_order_ignored(calls):
    if all(Counter(own) == Counter(calls[0]) for own in calls):
        return {}
    step = 0
    while True:
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if not now:
            return {}
        if len(now) < len(calls) or len(set(now.values())) > 1:
            return now
        step += 1


# Thought that where names differ the larger group meets and goes on, and only the devices that called something else are left waiting.
def who_waits__wrong_minority_waits(calls):
    for step in range(max(map(len, calls), default=0)):
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        names = Counter(now.values())
        if len(names) > 1:
            usual = names.most_common(1)[0][0]
            return {d: name for d, name in now.items() if name != usual}
        if len(now) < len(calls):
            return now
    return {}
