"""Answers to lesson 08, fifteenth batch, written by a reader of the notebook only."""

from collections import Counter
from itertools import zip_longest

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def gather_both_ways__right_roll(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def body(block):
        from_me = {0: block}  # from_me[k]: the block of me + k
        for k in range(1, n // 2 + 1):
            from_me[-k % n] = jax.lax.ppermute(from_me[(1 - k) % n], "x", up)
        for k in range(1, (n - 1) // 2 + 1):
            from_me[k] = jax.lax.ppermute(from_me[k - 1], "x", down)
        seen = jnp.stack([from_me[k] for k in range(n)])
        return jnp.roll(seen, jax.lax.axis_index("x"), axis=0).reshape(-1, *block.shape[1:])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


def _two_streams(x, mesh, ups, downs, sign=1):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        rising = falling = block
        for k in range(1, ups + 1):
            rising = jax.lax.ppermute(rising, "x", up)
            whole = whole.at[(me - sign * k) % n].set(rising)
        for k in range(1, downs + 1):
            falling = jax.lax.ppermute(falling, "x", down)
            whole = whole.at[(me + sign * k) % n].set(falling)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# By symmetry both streams go half round, n // 2 steps each.
def gather_both_ways__wrong_half(x, *, mesh):
    n = mesh.shape["x"]
    return _two_streams(x, mesh, n // 2, n // 2)


# n − 1 blocks are to come, half of them from each side: (n − 1) // 2 steps each.
def gather_both_ways__wrong_opposite(x, *, mesh):
    n = mesh.shape["x"]
    return _two_streams(x, mesh, (n - 1) // 2, (n - 1) // 2)


# What goes up comes from higher numbers: writes the rising stream at me + k, the falling one at me − k.
def gather_both_ways__wrong_places(x, *, mesh):
    n = mesh.shape["x"]
    return _two_streams(x, mesh, n // 2, (n - 1) // 2, sign=-1)


# Whatever comes from both sides is the same blocks, and the bytes are the same: one stream of n − 1 steps will do.
def gather_both_ways__wrong_oneway(x, *, mesh):
    return _two_streams(x, mesh, mesh.shape["x"] - 1, 0)


def who_waits__right_zip(calls):
    for now in zip_longest(*calls):
        here = {d: call for d, call in enumerate(now) if call is not None}
        if len(here) < len(calls) or len(set(here.values())) > 1:
            return here
    return {}


# Nobody waits as long as all come to some collective: only a device that is missing keeps others waiting.
def who_waits__wrong_anyname(calls):
    for step in range(max(map(len, calls), default=0)):
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if len(now) < len(calls):
            return now
    return {}


# Where names differ, those wait that are not where device 0 is; device 0 leads.
def who_waits__wrong_leader(calls):
    for step in range(max(map(len, calls), default=0)):
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if len(now) < len(calls):
            return now
        if len(set(now.values())) > 1:
            return {d: call for d, call in now.items() if call != now[0]}
    return {}


# What matters is that all call the same collectives equally often; the order settles itself.
def who_waits__wrong_counts(calls):
    if all(Counter(own) == Counter(calls[0]) for own in calls):
        return {}
    for step in range(max(map(len, calls), default=0)):
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if len(now) < len(calls) or len(set(now.values())) > 1:
            return now
    return {}


# Goes through all steps and notes who waits in each; the last note stands.
def who_waits__wrong_goeson(calls):
    waiting = {}
    for step in range(max(map(len, calls), default=0)):
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if len(now) < len(calls) or len(set(now.values())) > 1:
            waiting.update(now)
    return waiting


def _permuted(x, mesh, pairs):
    body = lambda row: jax.lax.ppermute(row, "x", pairs)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


def shift__right_fromwhere(x, *, k, mesh):
    n = mesh.shape["x"]
    return _permuted(x, mesh, [((d - k) % n, d) for d in range(n)])


# Device d receives from d + k: takes the pairs for (destination, source).
def shift__wrong_backwards(x, *, k, mesh):
    n = mesh.shape["x"]
    return _permuted(x, mesh, [((d + k) % n, d) for d in range(n)])


# Only destinations that exist may be named, so pairs beyond the ends are left out.
def shift__wrong_open(x, *, k, mesh):
    n = mesh.shape["x"]
    return _permuted(x, mesh, [(d, d + k) for d in range(n) if 0 <= d + k < n])


# The ring has four devices.
def shift__wrong_four(x, *, k, mesh):
    return _permuted(x, mesh, [(d, (d + k) % 4) for d in range(4)])


# A row can go to the next device only, so it takes k steps round the ring.
def shift__wrong_steps(x, *, k, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        for _ in range(k % n):
            row = jax.lax.ppermute(row, "x", to_next)
        return row

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)
