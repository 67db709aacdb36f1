"""Answers to lesson 08, twentieth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


def _up(n):
    return [(d, (d + 1) % n) for d in range(n)]


def _down(n):
    return [((d + 1) % n, d) for d in range(n)]


# ----------------------------------------------------------------- ring_costs

_devices, _whole = 8, 4096
_part, _to_come = _whole // _devices, _devices - 1

ring_costs__right_computed = {
    "all_gather: steps": _to_come,
    "all_gather: bytes": _to_come * _part,
    "all_reduce: steps": 2 * _to_come,
    "all_reduce: bytes": 2 * _to_come * _part,
    "all_gather, both ways: steps": -(-_to_come // 2),
    "all_reduce of whole vectors: bytes": _to_come * _whole,
}

# Eight blocks make the whole, so in the gather eight blocks go by, one in each of eight steps (counts the device's own).
ring_costs__wrong_own_block_counted = {
    "all_gather: steps": 8,
    "all_gather: bytes": 4096,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 7168,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 28672,
}

# Two blocks come in each step, so seven need 7 // 2 steps (the one that is left over is forgotten).
ring_costs__wrong_rounded_down = {
    "all_gather: steps": 7,
    "all_gather: bytes": 3584,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 7168,
    "all_gather, both ways: steps": 3,
    "all_reduce of whole vectors: bytes": 28672,
}

# An all-reduce goes twice round the ring, whatever it carries: 14 steps of 4,096 bytes with whole vectors.
ring_costs__wrong_whole_vectors_twice_round = {
    "all_gather: steps": 7,
    "all_gather: bytes": 3584,
    "all_reduce: steps": 14,
    "all_reduce: bytes": 7168,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 57344,
}

# A sum that has gone once round has met everybody, so an all-reduce is done after seven steps of one part.
ring_costs__wrong_once_round = {
    "all_gather: steps": 7,
    "all_gather: bytes": 3584,
    "all_reduce: steps": 7,
    "all_reduce: bytes": 3584,
    "all_gather, both ways: steps": 4,
    "all_reduce of whole vectors: bytes": 28672,
}


# -------------------------------------------------------- ring_reduce_scatter


def ring_reduce_scatter__right_down_the_ring(x, *, mesh):
    """Sums go down: device d begins with part d + 1, and then sees d + 2, d + 3, …, and at last its own."""
    n = mesh.shape["x"]

    def on_device(block):
        parts = block[0].reshape(n, -1)
        order = (jax.lax.axis_index("x") + 1 + jnp.arange(n)) % n
        in_turn = parts[order]
        total = in_turn[0]
        for k in range(1, n):
            total = in_turn[k] + jax.lax.ppermute(total, "x", _down(n))
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Each device begins with its own part, since that is the one it is to have in the end.
def ring_reduce_scatter__wrong_begins_with_own(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        parts = block[0].reshape(n, -1)
        number = jax.lax.axis_index("x")
        total = parts[number]
        for _ in range(n - 1):
            total = jax.lax.ppermute(total, "x", _up(n))
            number = number - 1
            total = total + parts[number % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# The sums go up the ring, so the number of the part goes up as well (right for two devices only).
def ring_reduce_scatter__wrong_numbers_go_up(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        me = jax.lax.axis_index("x")
        parts = block[0].reshape(n, -1)
        total = parts[(me + 1) % n]
        for k in range(1, n):
            arrived = jax.lax.ppermute(total, "x", _up(n))
            total = arrived + parts[(me + 1 + k) % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Add your own part, then send: n - 1 times (what arrives last never gets its owner's term).
def ring_reduce_scatter__wrong_add_then_send(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        me = jax.lax.axis_index("x")
        parts = block[0].reshape(n, -1)
        total = jnp.zeros_like(parts[0])
        for k in range(1, n):
            with_mine = total + parts[(me - k) % n]
            total = jax.lax.ppermute(with_mine, "x", _up(n))
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Every row goes round and is added up, and in the end a device keeps its part of the sum (n times the bytes).
def ring_reduce_scatter__wrong_whole_rows_travel(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        me = jax.lax.axis_index("x")
        row = block[0]
        travelling, total = row, row
        for _ in range(n - 1):
            travelling = jax.lax.ppermute(travelling, "x", _up(n))
            total = total + travelling
        return total.reshape(n, -1)[me]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# ------------------------------------------------------------ ring_all_reduce


def ring_all_reduce__right_own_part_first(x, *, mesh):
    """Each sum begins at home, so device d ends the first round with part d + 1; the second round goes on from there."""
    n = mesh.shape["x"]

    def on_device(block):
        me = jax.lax.axis_index("x")
        parts = block[0].reshape(n, -1)
        total = parts[me]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", _up(n)) + parts[(me - k) % n]
        seen = [total]  # of the parts me + 1, me, me - 1, …
        for _ in range(n - 1):
            seen.append(jax.lax.ppermute(seen[-1], "x", _up(n)))
        where = (me + 1 - jnp.arange(n)) % n  # part p was seen at (me + 1 - p) % n
        return jnp.stack(seen)[where].reshape(-1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def _first_round(block, n):
    """The reduce-scatter: device d ends with the sum of part d."""
    me = jax.lax.axis_index("x")
    parts = block[0].reshape(n, -1)
    total = parts[(me - 1) % n]
    for k in range(2, n + 1):
        total = jax.lax.ppermute(total, "x", _up(n)) + parts[(me - k) % n]
    return me, parts, total


# After the first round I have the sum of my own part (but it began with the own part, so that what it has is that of me + 1).
def ring_all_reduce__wrong_written_one_off(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        me = jax.lax.axis_index("x")
        parts = block[0].reshape(n, -1)
        total = parts[me]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", _up(n)) + parts[(me - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", _up(n))
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Twice round: the second round is the first one again, so each device adds its own part to what arrives there too.
def ring_all_reduce__wrong_adds_in_both_rounds(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        me, parts, total = _first_round(block, n)
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", _up(n)) + parts[(me - k) % n]
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# The second round is an all-gather, and for that there is a collective, with the same bytes ("ppermute alone" is overlooked).
def ring_all_reduce__wrong_gather_built_in(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        _, _, total = _first_round(block, n)
        return jax.lax.all_gather(total, "x", axis=0, tiled=True)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# n - 1 turns of "write, pass on" are enough (what arrives in the last turn is never written: one part stays zero).
def ring_all_reduce__wrong_last_not_written(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(block):
        me, parts, total = _first_round(block, n)
        whole = jnp.zeros_like(parts)
        for k in range(n - 1):
            whole = whole.at[(me - k) % n].set(total)
            total = jax.lax.ppermute(total, "x", _up(n))
        return whole.reshape(-1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)
