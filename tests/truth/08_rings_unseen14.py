"""Answers to lesson 08, fourteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def _up(n):
    return [(d, (d + 1) % n) for d in range(n)]


def _down(n):
    return [(d, (d - 1) % n) for d in range(n)]


# --- ring_reduce_scatter


def ring_reduce_scatter__right_down_the_ring(x, *, mesh):
    n = mesh.shape["x"]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me + 1) % n]
        for step in range(1, n):
            total = jax.lax.ppermute(total, "x", _down(n))
            total = total + parts[(me + 1 + step) % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Each device adds its part to the sum that it has, and then sends it on: n - 1 times add, send.
def ring_reduce_scatter__wrong_adds_then_sends(x, *, mesh):
    n = mesh.shape["x"]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = jnp.zeros_like(parts[0])
        number = me - 1
        for _ in range(n - 1):
            total = jax.lax.ppermute(total + parts[number % n], "x", _up(n))
            number = number - 1
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Device d is to have the sum of part d, so whatever arrives, it is part d that it adds.
def ring_reduce_scatter__wrong_always_own_number(x, *, mesh):
    n = mesh.shape["x"]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for _ in range(n - 1):
            total = jax.lax.ppermute(total, "x", _up(n)) + parts[me]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Let the vectors themselves come by, and add up of each the part that is mine; it is n - 1 ppermutes too.
def ring_reduce_scatter__wrong_whole_rows_travel(x, *, mesh):
    n = mesh.shape["x"]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[me]
        for _ in range(n - 1):
            parts = jax.lax.ppermute(parts, "x", _up(n))
            total = total + parts[me]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# The number of the part goes down by one in each step, so the sums have to be sent to the device before.
def ring_reduce_scatter__wrong_numbers_up_pairs_down(x, *, mesh):
    n = mesh.shape["x"]

    def body(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        number = me - 1
        total = parts[number % n]
        for _ in range(n - 1):
            number = number - 1
            total = jax.lax.ppermute(total, "x", _down(n)) + parts[number % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# --- ring_all_gather


def ring_all_gather__right_sorted_at_the_end(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        me = jax.lax.axis_index("x")
        seen = [block]
        while len(seen) < n:
            seen.append(jax.lax.ppermute(seen[-1], "x", _up(n)))
        arrival = (me - jnp.arange(n)) % n  # block p came in step me - p
        return jnp.stack(seen)[arrival].reshape(n * block.shape[0], *block.shape[1:])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# n blocks have to be written down, so pass on, write, n times; the own block comes last, when it has been round.
def ring_all_gather__wrong_own_block_goes_round(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        place = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype)
        for _ in range(n):
            block = jax.lax.ppermute(block, "x", _up(n))
            place = place - 1
            whole = whole.at[place % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# The blocks go up the ring, to the next device, so the place where I write goes up too.
def ring_all_gather__wrong_places_go_up(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        place = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[place].set(block)
        for _ in range(n - 1):
            block = jax.lax.ppermute(block, "x", _up(n))
            place = place + 1
            whole = whole.at[place % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# Pass on what you have: the array that fills up, with my block added to it; after n - 1 steps it is full everywhere.
def ring_all_gather__wrong_whole_travels(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        me = jax.lax.axis_index("x")
        mine = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        whole = mine
        for _ in range(n - 1):
            whole = mine + jax.lax.ppermute(whole, "x", _up(n))
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# Turned round, the blocks are in rising order, and it remains to roll them by my own number (but the first of them is me + 1, not me).
def ring_all_gather__wrong_rolled_one_short(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        me = jax.lax.axis_index("x")
        seen = [block]
        for _ in range(n - 1):
            seen.append(jax.lax.ppermute(seen[-1], "x", _up(n)))
        rising = jnp.stack(seen[::-1])
        return jnp.roll(rising, me, axis=0).reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# --- halo


def halo__right_two_shifted_blocks(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        before = jax.lax.ppermute(block[-1:], "x", _up(n))
        after = jax.lax.ppermute(block[:1], "x", _down(n))
        shifted_up = jnp.concatenate([before, block[:-1]])
        shifted_down = jnp.concatenate([block[1:], after])
        return shifted_up + 2 * block + 4 * shifted_down

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# The next device lacks something at its beginning, so it gets my first entry; the previous one gets my last.
def halo__wrong_ends_exchanged(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        left = jax.lax.ppermute(block[:1], "x", _up(n))
        right = jax.lax.ppermute(block[-1:], "x", _down(n))
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# The first device has no left neighbour and the last no right one: pairs inside the line only.
def halo__wrong_open_line(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        left = jax.lax.ppermute(block[-1:], "x", [(d, d + 1) for d in range(n - 1)])
        right = jax.lax.ppermute(block[:1], "x", [(d + 1, d) for d in range(n - 1)])
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# Fetch both neighbours' blocks and work in the long one; the ends that are not needed are cut off.
def halo__wrong_whole_blocks_travel(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        length = block.shape[0]
        previous = jax.lax.ppermute(block, "x", _up(n))
        following = jax.lax.ppermute(block, "x", _down(n))
        long = jnp.concatenate([previous, block, following])
        found = jnp.roll(long, 1) + 2 * long + 4 * jnp.roll(long, -1)
        return found[length : 2 * length]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# x[i+1] is the vector pushed one place on, hence wide[:-2]; x[i-1] is wide[2:].
def halo__wrong_plus_and_minus(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        left = jax.lax.ppermute(block[-1:], "x", _up(n))
        right = jax.lax.ppermute(block[:1], "x", _down(n))
        wide = jnp.concatenate([left, block, right])
        return wide[2:] + 2 * block + 4 * wide[:-2]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)
