"""Answers to lesson 08, twelfth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


# ---------------------------------------------------------------- sum_for_some


def sum_for_some__right_formula(x, *, mesh):
    def body(row):
        odd = jax.lax.axis_index("x") % 2
        return (1 - odd) * jax.lax.psum(row, "x") + odd * row

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# All devices call the psum, but only the even ones want it, so only they bring their row; the others bring zeros.
def sum_for_some__wrong_masked(x, *, mesh):
    def body(row):
        even = jax.lax.axis_index("x") % 2 == 0
        return jnp.where(even, jax.lax.psum(jnp.where(even, row, 0), "x"), row)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# `place % 2` as the condition for "even": it is true (1) at the odd places.
def sum_for_some__wrong_parity(x, *, mesh):
    def body(row):
        return jnp.where(jax.lax.axis_index("x") % 2, jax.lax.psum(row, "x"), row)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Every second row of x becomes the sum: rows are counted within the block, which has just one, number 0.
def sum_for_some__wrong_rows(x, *, mesh):
    def body(rows):
        return rows.at[::2].set(jax.lax.psum(rows, "x")[::2])

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# The even devices are 0 and 2, as in the line of four.
def sum_for_some__wrong_four(x, *, mesh):
    def body(row):
        me = jax.lax.axis_index("x")
        return jnp.where((me == 0) | (me == 2), jax.lax.psum(row, "x"), row)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# --------------------------------------------------------- ring_reduce_scatter


def ring_reduce_scatter__right_downwards(x, *, mesh):
    n = mesh.shape["x"]
    to_previous = [(d, (d - 1) % n) for d in range(n)]

    def body(row):
        me, parts = jax.lax.axis_index("x"), row.reshape(n, -1)
        total = parts[(me + 1) % n]  # part p begins on p - 1 and goes down to p
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", to_previous) + parts[(me + k) % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Add, then send, n - 1 times: the sum arrives at its owner, who never adds his own term.
def ring_reduce_scatter__wrong_owner(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me, parts = jax.lax.axis_index("x"), row.reshape(n, -1)
        total = jnp.zeros_like(parts[0])
        for k in range(n - 1):
            total = jax.lax.ppermute(total + parts[(me - 1 - k) % n], "x", pairs)
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# The sums go to the next device, so the number of the part goes up by one with each step (true for two devices).
def ring_reduce_scatter__wrong_upwards(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me, parts = jax.lax.axis_index("x"), row.reshape(n, -1)
        number = me - 1
        total = parts[number % n]
        for _ in range(n - 1):
            number = number + 1
            total = jax.lax.ppermute(total, "x", pairs) + parts[number % n]
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Let the whole rows go round, add them all up, and keep part `me` at the end: n - 1 sends, but of n parts each.
def ring_reduce_scatter__wrong_whole_rows(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        total = row
        for _ in range(n - 1):
            row = jax.lax.ppermute(row, "x", pairs)
            total = total + row
        return total.reshape(n, -1)[jax.lax.axis_index("x")]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Device d wants the sum of part d, so everybody sends his part d round and adds his own part d to what arrives.
def ring_reduce_scatter__wrong_own_number(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        mine = row.reshape(n, -1)[jax.lax.axis_index("x")]
        total = mine
        for _ in range(n - 1):
            total = jax.lax.ppermute(total, "x", pairs) + mine
        return total

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# ------------------------------------------------------------- ring_all_reduce


def ring_all_reduce__right_one_early(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me, parts = jax.lax.axis_index("x"), row.reshape(n, -1)
        total = parts[me]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", pairs) + parts[(me - k) % n]
        # begun with its own part, device d has part d + 1 now: good enough to gather from
        whole = jnp.zeros_like(parts).at[(me + 1) % n].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", pairs)
            whole = whole.at[(me + 1 - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# Each sum begins as the device's own part; and then the gather of part 2, which takes it that device d has part d.
def ring_all_reduce__wrong_turned(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me, parts = jax.lax.axis_index("x"), row.reshape(n, -1)
        total = parts[me]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", pairs) + parts[(me - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", pairs)
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# In the second round every device sends *its* sum again and again, and does not pass on what came (true for two devices).
def ring_all_reduce__wrong_not_passed_on(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me, parts = jax.lax.axis_index("x"), row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", pairs) + parts[(me - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            whole = whole.at[(me - k) % n].set(jax.lax.ppermute(total, "x", pairs))
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# The ring is for the sum; the second half adds nothing, so JAX's own gather does it (not "ppermute alone").
def ring_all_reduce__wrong_built_in_half(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me, parts = jax.lax.axis_index("x"), row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", pairs) + parts[(me - k) % n]
        return jax.lax.all_gather(total, "x", tiled=True)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(x)


# The vector comes from the devices along x, so out_specs name x, as in ring_reduce_scatter: n copies one after the other.
def ring_all_reduce__wrong_copies(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def body(row):
        me, parts = jax.lax.axis_index("x"), row.reshape(n, -1)
        total = parts[(me - 1) % n]
        for k in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", pairs) + parts[(me - k) % n]
        whole = jnp.zeros_like(parts).at[me].set(total)
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", pairs)
            whole = whole.at[(me - k) % n].set(total)
        return whole.reshape(-1)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)
