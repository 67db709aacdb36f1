"""Answers to lesson 08, twenty-first batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


# ---------------------------------------------------------------- halo
def halo__right_repairedroll(x, *, mesh):
    """x[i-1] + 2·x[i] + 4·x[i+1], periodic, for a vector cut over the mesh axis x."""
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(b, a) for a, b in up]

    def on_device(block):
        before = jax.lax.ppermute(block[-1:], "x", up)
        after = jax.lax.ppermute(block[:1], "x", down)
        smaller = jnp.roll(block, 1).at[0].set(before[0])  # the roll is wrong in one place only
        larger = jnp.roll(block, -1).at[-1].set(after[0])
        return smaller + 2 * block + 4 * larger

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student sends the first entry up and the last one down, since the left halo is "at the beginning" of the block.
def halo__wrong_otherends(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        left = jax.lax.ppermute(block[:1], "x", up)
        right = jax.lax.ppermute(block[-1:], "x", down)
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student sends along an open line: devices at the ends have only one neighbour, and get zeros.
def halo__wrong_openline(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, d + 1) for d in range(n - 1)]
    down = [(d + 1, d) for d in range(n - 1)]

    def on_device(block):
        left = jax.lax.ppermute(block[-1:], "x", up)
        right = jax.lax.ppermute(block[:1], "x", down)
        wide = jnp.concatenate([left, block, right])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student computes both ends apart from the middle; a block of one entry has no second entry, and nothing is left.
def halo__wrong_endsapart(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        left = jax.lax.ppermute(block[-1:], "x", up)
        right = jax.lax.ppermute(block[:1], "x", down)
        first = left + 2 * block[:1] + 4 * block[1:2]
        middle = block[:-2] + 2 * block[1:-1] + 4 * block[2:]
        last = block[-2:-1] + 2 * block[-1:] + 4 * right
        return jnp.concatenate([first, middle, last])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# This student fetches both neighbours' blocks and reads the edges off there: right numbers, but whole blocks travel.
def halo__wrong_wholeblocks(x, *, mesh):
    n = mesh.shape["x"]
    up = [(d, (d + 1) % n) for d in range(n)]
    down = [(d, (d - 1) % n) for d in range(n)]

    def on_device(block):
        previous, following = (jax.lax.ppermute(block, "x", way) for way in (up, down))
        wide = jnp.concatenate([previous[-1:], block, following[:1]])
        return wide[:-2] + 2 * block + 4 * wide[2:]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


# ---------------------------------------------------------------- shift
def shift__right_bysource(x, *, k, mesh):
    """Every device's row, on the device k places further."""
    n = mesh.shape["x"]
    pairs = [((d - k) % n, d) for d in range(n)]  # device d hears from d - k
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# This student has kept "device d holds the block of d − k", and writes that as the destination.
def shift__wrong_backwards(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d - k) % n) for d in range(n)]
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# This student passes the row on k times to the neighbour: it arrives, but by k ppermutes and with k times the bytes.
def shift__wrong_hops(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        for _ in range(k % n):
            row = jax.lax.ppermute(row, "x", pairs)
        return row

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# This student leaves out pairs that would go over the end, as on a line: zeros arrive where the ring should close.
def shift__wrong_falloff(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, d + k) for d in range(n) if 0 <= d + k < n]
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# This student counts the devices by the rows, but inside the function, where there is one row: device 0 sends to itself.
def shift__wrong_localcount(x, *, k, mesh):
    def on_device(rows):
        n = rows.shape[0]
        return jax.lax.ppermute(rows, "x", [(d, (d + k) % n) for d in range(n)])

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# ---------------------------------------------------------------- deadlock_or_not
_names = [
    "one_branch",
    "sum_then_branch",
    "open_ring",
    "each_its_own_turns",
    "as_many_turns_for_all",
    "only_process_0_sums",
]
deadlock_or_not__right_notsamecalls = {
    name: "hangs" if name in {"one_branch", "each_its_own_turns", "only_process_0_sums"} else "finishes"
    for name in _names
}

# This student thinks that device 0 waits for a block which nobody sends it.
deadlock_or_not__wrong_nosender = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "hangs",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}

# This student calls every program that decides something by axis_index a deadlock, wherever the collective stands.
deadlock_or_not__wrong_anydecision = {
    "one_branch": "hangs",
    "sum_then_branch": "hangs",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "hangs",
    "only_process_0_sums": "hangs",
}

# This student says that a Python `if` is gone after tracing, so that all eight devices run one and the same program.
deadlock_or_not__wrong_pythonif = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "hangs",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "finishes",
}

# This student takes a ppermute for a letter and no meeting: who has left the loop is simply not heard from (zeros).
deadlock_or_not__wrong_letters = {
    "one_branch": "hangs",
    "sum_then_branch": "finishes",
    "open_ring": "finishes",
    "each_its_own_turns": "finishes",
    "as_many_turns_for_all": "finishes",
    "only_process_0_sums": "hangs",
}
