"""Answers to lesson 08, tenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---- shift


def shift__right_bysource(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [((d - k) % n, d) for d in range(n)]  # for each receiver: from whom
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# After k steps device d holds the block of device d − k, so d − k is what belongs in the pair's second place.
def shift__wrong_backwards(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d - k) % n) for d in range(n)]
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# A pair whose destination does not exist has to be left out of the list.
def shift__wrong_openends(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, d + k) for d in range(n) if 0 <= d + k < n]
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# There is one row on each device, so the number of devices is the number of rows, row.shape[0] in the body.
def shift__wrong_locallength(x, *, k, mesh):
    def on_device(row):
        n = row.shape[0]
        return jax.lax.ppermute(row, "x", [(d, (d + k) % n) for d in range(n)])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# A device can talk only to its neighbours, so k devices further is k steps of one (right values, k sends).
def shift__wrong_manyhops(x, *, k, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        for _ in range(k % n):
            row = jax.lax.ppermute(row, "x", to_next)
        return row

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# ---- halo


def halo__right_twoshifted(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        before = jnp.concatenate([jax.lax.ppermute(block[-1:], "x", up), block[:-1]])
        after = jnp.concatenate([block[1:], jax.lax.ppermute(block[:1], "x", down)])
        return before + 2 * block + 4 * after

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# On its left a device lacks a first entry, on its right a last one: so the first goes up and the last goes down.
def halo__wrong_end(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        left = jax.lax.ppermute(block[:1], "x", up)
        right = jax.lax.ppermute(block[-1:], "x", down)
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# The first device has no left neighbour and the last no right one, so these get zeros, as padding.
def halo__wrong_zeropadded(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, d + 1) for d in range(n - 1)]
    down = [(d + 1, d) for d in range(n - 1)]

    def on_device(block):
        left = jax.lax.ppermute(block[-1:], "x", up)
        right = jax.lax.ppermute(block[:1], "x", down)
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# A ppermute sends blocks; the entry that is needed is taken from the block which came (right values, too many bytes).
def halo__wrong_wholeblocks(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        previous = jax.lax.ppermute(block, "x", up)
        following = jax.lax.ppermute(block, "x", down)
        wide = jnp.concatenate([previous[-1:], block, following[:1]])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# wide[2:] is wide moved two to the left, so it is the left neighbour x[i-1].
def halo__wrong_mirrored(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        left = jax.lax.ppermute(block[-1:], "x", up)
        right = jax.lax.ppermute(block[:1], "x", down)
        wide = jnp.concatenate([left, block, right])
        return wide[2:] + 2 * block + 4 * wide[:-2]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# ---- gather_both_ways


def gather_both_ways__right_rolled(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        below, above = [block], [block]
        for _ in range(n // 2):
            below.append(jax.lax.ppermute(below[-1], "x", up))
        for _ in range((n - 1) // 2):
            above.append(jax.lax.ppermute(above[-1], "x", down))
        # me - n//2, ..., me - 1, me, me + 1, ...: in order, but beginning at another place on every device
        in_order = jnp.stack(below[:0:-1] + above)
        whole = jnp.roll(in_order, jax.lax.axis_index("x") - n // 2, axis=0)
        return whole.reshape(-1, *block.shape[1:])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# n − 1 blocks are to come, half of them from either side: (n − 1) // 2 steps up and as many down.
def gather_both_ways__wrong_evengap(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        rising, falling = block, block
        for k in range(1, (n - 1) // 2 + 1):
            rising = jax.lax.ppermute(rising, "x", up)
            falling = jax.lax.ppermute(falling, "x", down)
            whole = whole.at[(me - k) % n].set(rising).at[(me + k) % n].set(falling)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# The second loop is the first one with the pairs turned round; that `block` is another one by now went unnoticed.
def gather_both_ways__wrong_noreset(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        for k in range(1, n // 2 + 1):
            block = jax.lax.ppermute(block, "x", up)
            whole = whole.at[(me - k) % n].set(block)
        for k in range(1, (n - 1) // 2 + 1):
            block = jax.lax.ppermute(block, "x", down)
            whole = whole.at[(me + k) % n].set(block)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# To use both directions one cuts each block in two: the left half goes up and the right half down (right values and bytes, n − 1 steps).
def gather_both_ways__wrong_halves(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        middle = block.shape[1] // 2
        left, right = block[:, :middle], block[:, middle:]
        lefts = jnp.zeros((n, *left.shape), block.dtype).at[me].set(left)
        rights = jnp.zeros((n, *right.shape), block.dtype).at[me].set(right)
        for k in range(1, n):
            left = jax.lax.ppermute(left, "x", up)
            right = jax.lax.ppermute(right, "x", down)
            lefts = lefts.at[(me - k) % n].set(left)
            rights = rights.at[(me + k) % n].set(right)
        return jnp.concatenate([lefts, rights], axis=2).reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# The stream that goes up brings the blocks with higher numbers, the one that goes down those with lower numbers.
def gather_both_ways__wrong_sides(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        me = jax.lax.axis_index("x")
        whole = jnp.zeros((n, *block.shape), block.dtype).at[me].set(block)
        moving = block
        for k in range(1, n // 2 + 1):
            moving = jax.lax.ppermute(moving, "x", up)
            whole = whole.at[(me + k) % n].set(moving)
        moving = block
        for k in range(1, (n - 1) // 2 + 1):
            moving = jax.lax.ppermute(moving, "x", down)
            whole = whole.at[(me - k) % n].set(moving)
        return whole.reshape(-1, block.shape[1])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)
