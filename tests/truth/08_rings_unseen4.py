"""Answers to lesson 08, fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

# ---------------------------------------------------------------- ring_all_reduce


def ring_all_reduce__right_downwards(x, *, mesh):
    """The other way round the ring: sums and parts go to the previous device, so that numbers go up."""
    n = mesh.shape["x"]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me + 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", down) + parts[(me + k) % n]
        seen = [total]
        for _ in range(n - 1):
            seen.append(jax.lax.ppermute(seen[-1], "x", down))
        return jnp.roll(jnp.stack(seen), me, axis=0).reshape(-1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# This student begins with the own part, so that each sum ends on the device before its own, and all parts are one place off.
def ring_all_reduce__wrong_own_part_first(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total, number = parts[me], me
        for _ in range(n - 1):
            total = jax.lax.ppermute(total, "x", to_next)
            number = number - 1
            total = total + parts[number % n]
        whole = jnp.zeros(parts.shape, parts.dtype).at[me].set(total)
        place = me
        for _ in range(n - 1):
            total = jax.lax.ppermute(total, "x", to_next)
            place = place - 1
            whole = whole.at[place % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# This student passes whole vectors round and adds up what comes by: right, n/2 times the bytes.
def ring_all_reduce__wrong_whole_vectors(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        vector = total = row[0]
        for _ in range(n - 1):
            vector = jax.lax.ppermute(vector, "x", to_next)
            total = total + vector
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# This student thinks that what comes from the previous device belongs one place further, since it has travelled up.
def ring_all_reduce__wrong_places_go_up(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(n - 1):
            total = jax.lax.ppermute(total, "x", to_next) + parts[(me - 2 - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next)
            whole = whole.at[(me + k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# This student takes n steps for the sums, once round, so that the device where a sum began adds its term twice.
def ring_all_reduce__wrong_one_step_more(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total, number = parts[me], me
        for _ in range(n):
            total = jax.lax.ppermute(total, "x", to_next)
            number = (number - 1) % n
            total = total + parts[number]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next)
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# ---------------------------------------------------------------- gather_both_ways


def gather_both_ways__right_lined_up(x, *, mesh):
    """From the farthest below to the farthest above, in a row; then turned so that block 0 is the first."""
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        below, above = [block], [block]
        for _ in range(n // 2):
            below.append(jax.lax.ppermute(below[-1], "x", up))
        for _ in range((n - 1) // 2):
            above.append(jax.lax.ppermute(above[-1], "x", down))
        in_a_row = jnp.stack(below[::-1] + above[1:])
        first = jax.lax.axis_index("x") - n // 2
        return jnp.roll(in_a_row, first, axis=0).reshape(-1, *block.shape[1:])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# This student lets both streams run n // 2 steps: with an even number the block of the device opposite comes twice.
def gather_both_ways__wrong_opposite_twice(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        from_below = from_above = block
        for k in range(1, n // 2 + 1):
            from_below = jax.lax.ppermute(from_below, "x", up)
            from_above = jax.lax.ppermute(from_above, "x", down)
            whole = whole.at[(me - k) % n].set(from_below)
            whole = whole.at[(me + k) % n].set(from_above)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# This student tried it with five devices: (n - 1) // 2 steps each way, and with an even number one block never comes.
def gather_both_ways__wrong_opposite_missing(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        from_below = from_above = block
        for k in range(1, (n - 1) // 2 + 1):
            from_below = jax.lax.ppermute(from_below, "x", up)
            from_above = jax.lax.ppermute(from_above, "x", down)
            whole = whole.at[(me - k) % n].set(from_below).at[(me + k) % n].set(from_above)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# This student turned the pairs round in the copy of the loop, but thinks that the place is one less there as well.
def gather_both_ways__wrong_same_places(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        place, moving = me, block
        for _ in range(n // 2):
            moving = jax.lax.ppermute(moving, "x", up)
            place = place - 1
            whole = whole.at[place % n].set(moving)
        moving = block
        for _ in range((n - 1) // 2):
            moving = jax.lax.ppermute(moving, "x", down)
            place = place - 1
            whole = whole.at[place % n].set(moving)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# This student sends one half of every block up and the other half down: both directions busy, the same bytes, but n - 1 steps.
def gather_both_ways__wrong_half_blocks(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        middle = block.shape[1] // 2
        left, right = block[:, :middle], block[:, middle:]
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n):
            left = jax.lax.ppermute(left, "x", up)
            right = jax.lax.ppermute(right, "x", down)
            whole = whole.at[(me - k) % n, :, :middle].set(left)
            whole = whole.at[(me + k) % n, :, middle:].set(right)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# ---------------------------------------------------------------- deadlock_or_not

deadlock_or_not__right_same_lists = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# This student thinks that device 0 waits for somebody to send to it, in a ring that is not closed.
deadlock_or_not__wrong_nobody_sends = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "hangs",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# This student thinks that any branch on the device's number is dangerous where a collective is near.
deadlock_or_not__wrong_any_branch = {
    "one_branch": "hangs",
    "sum_then_branch": "hangs",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "hangs",
    "only_process_0_sums": "hangs",
}

# This student thinks that a Python `if` is settled while tracing, so that no device is left with a branch to miss.
deadlock_or_not__wrong_settled_in_tracing = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "finishes",
}

# This student thinks that who is sent nothing in a ppermute gets zeros, also from devices that have left the loop.
deadlock_or_not__wrong_zeros_from_the_absent = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "finishes",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}
