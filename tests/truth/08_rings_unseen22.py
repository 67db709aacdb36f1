"""Answers to lesson 08, twenty-second batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


# ---------------------------------------------------------------- gather_both_ways
def gather_both_ways__right_rolled(x, *, mesh):
    """x, cut by rows over the mesh axis x, whole on every device, gathered from both sides."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(d, (d - 1) % n) for d in range(n)]
    up, down = n // 2, (n - 1) // 2

    def body(block):
        before, after = [block], [block]
        for _ in range(up):
            before.append(jax.lax.ppermute(before[-1], "x", to_next))
        for _ in range(down):
            after.append(jax.lax.ppermute(after[-1], "x", to_previous))
        # the blocks of me - up, …, me, …, me + down: consecutive round the ring, so one roll puts them in place
        around = jnp.stack(before[:0:-1] + after)
        whole = jnp.roll(around, jax.lax.axis_index("x") - up, axis=0)
        return whole.reshape(-1, *block.shape[1:])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: each stream brings half, n // 2 blocks; for even n the block opposite comes twice, one block too many is sent.
def gather_both_ways__wrong_opposite_twice(x, *, mesh):
    """x, cut by rows over the mesh axis x, whole on every device, gathered from both sides."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(b, a) for a, b in to_next]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        up = down = block
        for k in range(1, n // 2 + 1):
            up = jax.lax.ppermute(up, "x", to_next)
            down = jax.lax.ppermute(down, "x", to_previous)
            whole = whole.at[(me - k) % n].set(up)
            whole = whole.at[(me + k) % n].set(down)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: the stream that goes up brings higher numbers, the one that goes down lower ones.
def gather_both_ways__wrong_places_swapped(x, *, mesh):
    """x, cut by rows over the mesh axis x, whole on every device, gathered from both sides."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(b, a) for a, b in to_next]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        up = block
        for k in range(1, n // 2 + 1):
            up = jax.lax.ppermute(up, "x", to_next)
            whole = whole.at[(me + k) % n].set(up)
        down = block
        for k in range(1, (n - 1) // 2 + 1):
            down = jax.lax.ppermute(down, "x", to_previous)
            whole = whole.at[(me - k) % n].set(down)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: copied the loop for the second stream, which goes on with what the first one had in hand at its end, not with the own block.
def gather_both_ways__wrong_not_begun_anew(x, *, mesh):
    """x, cut by rows over the mesh axis x, whole on every device, gathered from both sides."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(b, a) for a, b in to_next]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        moving = block
        for k in range(1, n // 2 + 1):
            moving = jax.lax.ppermute(moving, "x", to_next)
            whole = whole.at[(me - k) % n].set(moving)
        for k in range(1, (n - 1) // 2 + 1):
            moving = jax.lax.ppermute(moving, "x", to_previous)
            whole = whole.at[(me + k) % n].set(moving)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: both directions are used if half of every block goes up and half goes down; the bytes are right, but n - 1 steps stay.
def gather_both_ways__wrong_half_blocks(x, *, mesh):
    """x, cut by rows over the mesh axis x, whole on every device, gathered from both sides."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]
    to_previous = [(b, a) for a, b in to_next]

    def body(block):
        me = jax.lax.axis_index("x")
        half = (block.shape[0] + 1) // 2
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        up, down = block[:half], block[half:]
        for k in range(1, n):
            up = jax.lax.ppermute(up, "x", to_next)
            down = jax.lax.ppermute(down, "x", to_previous)
            whole = whole.at[(me - k) % n, :half].set(up)
            whole = whole.at[(me + k) % n, half:].set(down)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# ---------------------------------------------------------------- ring_reduce_scatter
def ring_reduce_scatter__right_down_the_ring(x, *, mesh):
    """The sum of the rows that the devices hold, each device its part."""
    n = mesh.shape["x"]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        number = me + 1
        total = parts[number % n]
        for _ in range(n - 1):
            number = number + 1
            total = jax.lax.ppermute(total, "x", to_previous) + parts[number % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Thought: device d is to have part d, so it begins with part d; every sum then stops one device before its own.
def ring_reduce_scatter__wrong_own_part_first(x, *, mesh):
    """The sum of the rows that the devices hold, each device its part."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[me]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next) + parts[(me - k) % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Thought: add my part, then send the sum on, n - 1 times; the owner's own term is never added.
def ring_reduce_scatter__wrong_add_then_send(x, *, mesh):
    """The sum of the rows that the devices hold, each device its part."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = jnp.zeros_like(parts[0])
        for k in range(n - 1):
            total = total + parts[(me - 1 - k) % n]
            total = jax.lax.ppermute(total, "x", to_next)
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Thought: sums may also go down, so only the pairs are turned round; the numbers still fall, and different parts are mixed.
def ring_reduce_scatter__wrong_pairs_turned_only(x, *, mesh):
    """The sum of the rows that the devices hold, each device its part."""
    n = mesh.shape["x"]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        number = (me - 1) % n
        total = parts[number]
        for _ in range(n - 1):
            number = (number - 1) % n
            total = jax.lax.ppermute(total, "x", to_previous) + parts[number]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Thought: send the whole row round, add up, keep my part at the end; right, but n times as many bytes.
def ring_reduce_scatter__wrong_whole_rows(x, *, mesh):
    """The sum of the rows that the devices hold, each device its part."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        total = moving = row
        for _ in range(n - 1):
            moving = jax.lax.ppermute(moving, "x", to_next)
            total = total + moving
        return total.reshape(n, -1)[jax.lax.axis_index("x")]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# ---------------------------------------------------------------- ring_all_reduce
def ring_all_reduce__right_one_place_on(x, *, mesh):
    """The sum of the rows that the devices hold, whole on every device."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[me]  # begun with my own part, so I end with the sum of part me + 1
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next) + parts[(me - k) % n]
        whole = jnp.zeros_like(parts).at[(me + 1) % n].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next)
            whole = whole.at[(me + 1 - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: every device needs the whole sum, so whole vectors go round and everybody adds up; right, but n/2 times the bytes.
def ring_all_reduce__wrong_whole_vectors(x, *, mesh):
    """The sum of the rows that the devices hold, whole on every device."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        total = moving = row[0]
        for _ in range(n - 1):
            moving = jax.lax.ppermute(moving, "x", to_next)
            total = total + moving
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: JAX says that the result varies over x, so out_specs name x, and the check is content; n copies stand one after the other.
def ring_all_reduce__wrong_out_specs_name_x(x, *, mesh):
    """The sum of the rows that the devices hold, whole on every device."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next) + parts[(me - 1 - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next)
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Thought: I hold one of the n parts and n - 1 are to come, so the range ends at n - 1; the last part is never fetched.
def ring_all_reduce__wrong_one_part_short(x, *, mesh):
    """The sum of the rows that the devices hold, whole on every device."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next) + parts[(me - 1 - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n - 1):
            total = jax.lax.ppermute(total, "x", to_next)
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Thought: it is a sum, so in the second round too what arrives is added, to the parts that I have; my own terms count twice.
def ring_all_reduce__wrong_added_to_own_parts(x, *, mesh):
    """The sum of the rows that the devices hold, whole on every device."""
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next) + parts[(me - 1 - k) % n]
        whole = parts.at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", to_next)
            whole = whole.at[(me - k) % n].add(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)
