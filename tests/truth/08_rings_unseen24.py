"""Answers to lesson 08, twenty-fourth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])

TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


# ---- gather_both_ways


def gather_both_ways__right_byindex(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        from_below, from_above = [block], [block]
        for _ in range(n // 2):
            from_below.append(jax.lax.ppermute(from_below[-1], "x", up))
        for _ in range((n - 1) // 2):
            from_above.append(jax.lax.ppermute(from_above[-1], "x", down))
        # entry k of the stack is the block of device me - k
        back = jnp.stack(from_below + from_above[:0:-1])
        return back[(me - jnp.arange(n)) % n].reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: n // 2 steps each way is half of the ring on either side.
def gather_both_ways__wrong_oppositetwice(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        a = b = block
        for k in range(1, n // 2 + 1):
            a = jax.lax.ppermute(a, "x", up)
            whole = whole.at[(me - k) % n].set(a)
            b = jax.lax.ppermute(b, "x", down)
            whole = whole.at[(me + k) % n].set(b)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# Thought: (n - 1) blocks are to come, half of them from each side, so (n - 1) // 2 steps in both directions.
def gather_both_ways__wrong_oppositemissing(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        previous = following = block
        for k in range(1, (n - 1) // 2 + 1):
            previous = jax.lax.ppermute(previous, "x", up)
            following = jax.lax.ppermute(following, "x", down)
            whole = whole.at[(me - k) % n].set(previous).at[(me + k) % n].set(following)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: what goes up comes from above, so the up stream is written at me + k and the down stream at me - k.
def gather_both_ways__wrong_places(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        passing = block
        for k in range(1, n // 2 + 1):
            passing = jax.lax.ppermute(passing, "x", up)
            whole = whole.at[(me + k) % n].set(passing)
        passing = block
        for k in range(1, (n - 1) // 2 + 1):
            passing = jax.lax.ppermute(passing, "x", down)
            whole = whole.at[(me - k) % n].set(passing)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: first up n // 2 times; the block then turns round and walks the other way, picking up the rest.
def gather_both_ways__wrong_turnsround(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        passing = block
        for k in range(1, n // 2 + 1):
            passing = jax.lax.ppermute(passing, "x", up)
            whole = whole.at[(me - k) % n].set(passing)
        for k in range(1, (n - 1) // 2 + 1):
            passing = jax.lax.ppermute(passing, "x", down)
            whole = whole.at[(me + k) % n].set(passing)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# ---- ring_all_reduce


def ring_all_reduce__right_down(x, *, mesh):
    n = mesh.shape["x"]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me + 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", to_previous) + parts[(me + k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_previous)
            whole = whole.at[(me + k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: a sum starts with the device's own part, and ends where it started.
def ring_all_reduce__wrong_ownpart(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[me]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", pairs) + parts[(me - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", pairs)
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: in the second round the blocks go up, so the number of what arrives goes up too.
def ring_all_reduce__wrong_gatherplaces(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        number = me - 1
        total = parts[number % n]
        for _ in range(n - 1):
            number = number - 1
            total = jax.lax.ppermute(total, "x", pairs) + parts[number % n]
        whole = jnp.zeros(parts.shape, parts.dtype).at[me].set(total)
        place = me
        for _ in range(n - 1):
            place = place + 1
            total = jax.lax.ppermute(total, "x", pairs)
            whole = whole.at[place % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: n devices, so a sum makes n steps until all have added.
def ring_all_reduce__wrong_nsteps(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[me]
        for k in range(1, n + 1):
            total = jax.lax.ppermute(total, "x", pairs) + parts[(me - k) % n]
        # n steps on, the sum is back where it began
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", pairs)
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: the whole vectors go round n - 1 times and every device adds what comes by; these are fewer ppermutes than allowed.
def ring_all_reduce__wrong_wholevectors(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        vector = total = row[0]
        for _ in range(n - 1):
            vector = jax.lax.ppermute(vector, "x", pairs)
            total = total + vector
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# ---- shift


def shift__right_bydestination(x, *, k, mesh):
    n = mesh.shape["x"]
    sources = np.roll(np.arange(n), k).tolist()
    pairs = list(zip(sources, range(n)))
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# Thought: after k steps device d has the block of d - k, so d goes with d - k in the pair.
def shift__wrong_otherway(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d - k) % n) for d in range(n)]
    body = lambda row: jax.lax.ppermute(row, "x", pairs)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Thought: a device whose row would leave the line has nobody to send to, so there is no pair for it.
def shift__wrong_openline(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, d + k) for d in range(n) if 0 <= d + k < n]

    def body(row):
        return jax.lax.ppermute(row, "x", pairs)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Thought: the ring is TO_NEXT's, with k for 1: four devices.
def shift__wrong_fourdevices(x, *, k, mesh):
    pairs = [(d, (d + k) % 4) for d in range(4)]
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# Thought: k places further is k times to the next device; a k that is negative or too large is brought into the ring first.
def shift__wrong_stepbystep(x, *, k, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        for _ in range(k % n):
            row = jax.lax.ppermute(row, "x", to_next)
        return row

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)
