"""Answers to lesson 08, eighteenth batch, written by a reader of the notebook only."""

from collections import Counter
from itertools import zip_longest

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


def on_line(body, *arrays):
    """Run `body(block)` on each of the four devices. (The check is off, since part 7 runs programs that it would stop.)"""
    return jax.shard_map(body, mesh=line, in_specs=P("x"), out_specs=P("x"), check_vma=False)(*arrays)


# ----------------------------------------------------------- ring_all_gather
def ring_all_gather__right_pickafter(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(block):
        arrived = [block]
        while len(arrived) < n:
            arrived.append(jax.lax.ppermute(arrived[-1], "x", to_next))
        # arrived[k] is the block of me - k, so block p came as number me - p
        order = (jax.lax.axis_index("x") - jnp.arange(n)) % n
        return jnp.stack(arrived)[order].reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(x)


# "Each block that arrives is that of the next device, so the place goes up by one": pairs of +1 with places of -1.
def ring_all_gather__wrong_placesup(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n):
            block = jax.lax.ppermute(block, "x", pairs)
            whole = whole.at[(me + k) % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# "n blocks, n turns: send, write, send, write": its own block, too, comes round the ring before it is written (n sends).
def ring_all_gather__wrong_fullturn(x, *, mesh):
    n = mesh.shape["x"]

    def body(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype)
        for k in range(1, n + 1):
            block = jax.lax.ppermute(block, "x", [(d, (d + 1) % n) for d in range(n)])
            whole = whole.at[(me - k) % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# "Write the block at its place first, then nobody needs to compute places": the whole array with its zeros travels every time.
def ring_all_gather__wrong_wholetravels(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(block):
        travelling = jnp.zeros((n, *block.shape), block.dtype).at[jax.lax.axis_index("x")].set(block)
        whole = travelling
        for _ in range(n - 1):
            travelling = jax.lax.ppermute(travelling, "x", pairs)
            whole = whole + travelling
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# "The ring has four devices, and TO_NEXT is there already": right on the notebook's line, on no other ring.
def ring_all_gather__wrong_fourdevices(x, *, mesh):
    def body(block):
        place = jax.lax.axis_index("x")
        whole = jnp.zeros((4, *block.shape), block.dtype)
        whole = whole.at[place].set(block)
        for _ in range(3):
            block = jax.lax.ppermute(block, "x", TO_NEXT)
            place = (place - 1) % 4
            whole = whole.at[place].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# ----------------------------------------------------------------- who_waits
def who_waits__right_ziplongest(calls):
    for step in zip_longest(*calls):
        if len(set(step)) > 1:
            return {device: name for device, name in enumerate(step) if name is not None}
    return {}


# "A device waits if it calls more collectives than the others": only the lengths are compared, never the names.
def who_waits__wrong_lengths(calls):
    if not calls:
        return {}
    shortest = min(len(own) for own in calls)
    return {d: own[shortest] for d, own in enumerate(calls) if len(own) > shortest}


# "Those that have come to the same collective meet, and go on": it is enough that two are there, not all.
def who_waits__wrong_twomeet(calls):
    at = [0] * len(calls)
    while True:
        now = {d: own[at[d]] for d, own in enumerate(calls) if at[d] < len(own)}
        count = Counter(now.values())
        meeting = [d for d, name in now.items() if count[name] >= 2]
        if not meeting:
            return now
        for d in meeting:
            at[d] += 1


# "Every collective that all devices call somewhere takes place; left is what only some have": the order is forgotten.
def who_waits__wrong_counts(calls):
    if not calls:
        return {}
    common = Counter(calls[0])
    for own in calls[1:]:
        common &= Counter(own)
    waiting = {}
    for d, own in enumerate(calls):
        met = Counter(common)
        for name in own:
            if met[name] == 0:
                waiting[d] = name
                break
            met[name] -= 1
    return waiting


# "Who is stuck has not got to the end of its list, so it waits in what stands there": the last call, not the one it is at.
def who_waits__wrong_lastcall(calls):
    step = 0
    while True:
        now = {d: own[step] for d, own in enumerate(calls) if step < len(own)}
        if not now:
            return {}
        if len(now) < len(calls) or len(set(now.values())) > 1:
            return {d: calls[d][-1] for d in now}
        step += 1


# --------------------------------------------------------------------- shift
def shift__right_fromwhom(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [((to - k) % n, to) for to in range(n)]
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# "Device d gets the row of d - k, so the pair is (d, d - k)": from-whom written where to-whom belongs, all rows go the other way.
def shift__wrong_backwards(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d - k) % n) for d in range(n)]
    body = lambda row: jax.lax.ppermute(row, "x", pairs)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# "k places further is k times to the next": right rows, with up to n - 1 ppermutes instead of one.
def shift__wrong_stepbystep(x, *, k, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        for _ in range(k % n):
            row = jax.lax.ppermute(row, "x", to_next)
        return row

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# "A pair needs a destination that exists, so I leave the others out": an open chain, whose beginning gets zeros.
def shift__wrong_openchain(x, *, k, mesh):
    n = mesh.shape["x"]

    def body(row):
        pairs = [(d, d + k) for d in range(n) if 0 <= d + k < n]
        return jax.lax.ppermute(row, "x", pairs)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# "A shift round the ring is a ppermute by one and then a roll by what is left": but the device's block has only one row to roll.
def shift__wrong_rollinside(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        return jnp.roll(jax.lax.ppermute(row, "x", pairs), k - 1, axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)
