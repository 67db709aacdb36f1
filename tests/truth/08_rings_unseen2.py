"""Answers to lesson 08, second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


def ring_all_reduce__right_sorted_at_the_end(x, *, mesh):
    """Collects the finished parts in the order of arrival, and sorts them once."""
    n = mesh.shape["x"]
    onward = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", onward) + parts[(me - k) % n]
        arrived = [total]
        for _ in range(n - 1):
            arrived.append(jax.lax.ppermute(arrived[-1], "x", onward))
        return jnp.stack(arrived)[(me - jnp.arange(n)) % n].reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def ring_all_reduce__wrong_whole_vectors(x, *, mesh):
    """Right numbers, but whole vectors go round, not one part."""
    n = mesh.shape["x"]
    onward = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        total = row
        for _ in range(n - 1):
            row = jax.lax.ppermute(row, "x", onward)
            total = total + row
        return total.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def ring_all_reduce__wrong_begins_with_own(x, *, mesh):
    """Begins with its own part: every sum stops one place too early, and the blocks come out rotated."""
    n = mesh.shape["x"]
    onward = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[me]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", onward) + parts[(me - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", onward)
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def ring_all_reduce__wrong_order_of_arrival(x, *, mesh):
    """The finished parts one below the other as they came: every device has another order."""
    n = mesh.shape["x"]
    onward = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", onward) + parts[(me - k) % n]
        arrived = [total]
        for _ in range(n - 1):
            arrived.append(jax.lax.ppermute(arrived[-1], "x", onward))
        return jnp.concatenate(arrived)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def ring_all_reduce__wrong_once_more(x, *, mesh):
    """n turns in the first half: a part is added twice, and the numbers are one place on."""
    n = mesh.shape["x"]
    onward = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(2, n + 2):
            total = jax.lax.ppermute(total, "x", onward) + parts[(me - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", onward)
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def gather_both_ways__right_rolled(x, *, mesh):
    """The blocks in a row, with mine in the middle; rolled to their places at the end."""
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        before, after = [block], [block]
        for _ in range(n // 2):
            before.append(jax.lax.ppermute(before[-1], "x", up))
        for _ in range((n - 1) // 2):
            after.append(jax.lax.ppermute(after[-1], "x", down))
        row = jnp.stack(before[::-1] + after[1:])
        return jnp.roll(row, me - n // 2, axis=0).reshape(-1, *block.shape[1:])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def gather_both_ways__wrong_opposite_twice(x, *, mesh):
    """n // 2 steps both ways: with an even n the block opposite comes twice, a block too many."""
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        a = b = block
        for k in range(1, n // 2 + 1):
            a = jax.lax.ppermute(a, "x", up)
            b = jax.lax.ppermute(b, "x", down)
            whole = whole.at[(me - k) % n].set(a).at[(me + k) % n].set(b)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def gather_both_ways__wrong_opposite_missing(x, *, mesh):
    """(n - 1) // 2 steps both ways: with an even n the block opposite never comes."""
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        a = b = block
        for k in range(1, (n - 1) // 2 + 1):
            a = jax.lax.ppermute(a, "x", up)
            b = jax.lax.ppermute(b, "x", down)
            whole = whole.at[(me - k) % n].set(a).at[(me + k) % n].set(b)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def gather_both_ways__wrong_signs(x, *, mesh):
    """The places of the two streams are exchanged."""
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        a = b = block
        for k in range(1, n // 2 + 1):
            a = jax.lax.ppermute(a, "x", up)
            whole = whole.at[(me + k) % n].set(a)
        for k in range(1, (n - 1) // 2 + 1):
            b = jax.lax.ppermute(b, "x", down)
            whole = whole.at[(me - k) % n].set(b)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def gather_both_ways__wrong_one_way(x, *, mesh):
    """Right numbers, but n - 1 steps: one stream only."""
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n):
            block = jax.lax.ppermute(block, "x", up)
            whole = whole.at[(me - k) % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


ring_after__right_came_from = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 3,
}

# where its own block has gone, not whose block has come
ring_after__wrong_gone_to = {
    "4 devices, +1, 1 step: device 2": 3,
    "4 devices, +1, 3 steps: device 1": 0,
    "4 devices, -1, 1 step: device 3": 2,
    "8 devices, +1, 5 steps: device 2": 7,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 7,
}

# the ring is not closed
ring_after__wrong_not_closed = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": -2,
    "4 devices, -1, 1 step: device 3": 4,
    "8 devices, +1, 5 steps: device 2": -3,
    "8 devices, -1, 4 steps: device 6": 10,
    "8 devices, +3, 2 steps: device 1": -5,
}

# the shift of the last row is counted once, not in both steps
ring_after__wrong_one_shift = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 2,
    "4 devices, -1, 1 step: device 3": 0,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 6,
}

# everything round a ring of eight
ring_after__wrong_of_eight = {
    "4 devices, +1, 1 step: device 2": 1,
    "4 devices, +1, 3 steps: device 1": 6,
    "4 devices, -1, 1 step: device 3": 4,
    "8 devices, +1, 5 steps: device 2": 5,
    "8 devices, -1, 4 steps: device 6": 2,
    "8 devices, +3, 2 steps: device 1": 3,
}

ring_costs__right_sevens = {
    "all_gather: steps": 7,
    "all_gather: bytes": 3584,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 7168,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 28672,
}

# n steps for n - 1
ring_costs__wrong_eight_steps = {
    "all_gather: steps": 8,
    "all_gather: bytes": 4096,
    "all_reduce: steps": 16,
    "all_reduce: bytes": 8192,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 32768,
}

# 4,096 bytes taken for one block
ring_costs__wrong_block = {
    "all_gather: steps": 7,
    "all_gather: bytes": 28672,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 57344,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 28672,
}

# half of seven, rounded down
ring_costs__wrong_rounded_down = {
    "all_gather: steps": 7,
    "all_gather: bytes": 3584,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 7168,
    "all_gather, both ways: steps": 3,
    "all_reduce of whole vectors: bytes": 28672,
}

# whole vectors twice round, as in the ring of two halves
ring_costs__wrong_twice_round = {
    "all_gather: steps": 7,
    "all_gather: bytes": 3584,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 7168,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 57344,
}
