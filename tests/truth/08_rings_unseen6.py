"""Answers to lesson 08, sixth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

line = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
TO_NEXT = [(d, (d + 1) % 4) for d in range(4)]


def on_line(body, *arrays):
    """Run `body(block)` on each of the four devices. (The check is off, since part 7 runs programs that it would stop.)"""
    return jax.shard_map(body, mesh=line, in_specs=P("x"), out_specs=P("x"), check_vma=False)(*arrays)


# ---------------------------------------------------------------- sum_for_some
def sum_for_some__right_odd_keep(x, *, mesh):
    """The sum of all rows on devices with an even number, their own row on the others."""

    def on_device(row):
        odd = jax.lax.axis_index("x") % 2 == 1
        return jnp.where(odd, row, jax.lax.psum(row, "x"))

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# cond chooses on each device: the even ones go through the psum, and with a cast the types agree. (CAUTION: it hangs.)
def sum_for_some__wrong_cond_around_psum(x, *, mesh):
    def on_device(row):
        even = jax.lax.axis_index("x") % 2 == 0
        return jax.lax.cond(even, lambda r: jax.lax.psum(r, "x"), lambda r: r, row)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), check_vma=False)(x)


# Only the even devices take part, so the others bring zeros to the sum.
def sum_for_some__wrong_sum_of_the_even(x, *, mesh):
    def on_device(row):
        even = jax.lax.axis_index("x") % 2 == 0
        total = jax.lax.psum(jnp.where(even, row, 0), "x")
        return jnp.where(even, total, row)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# The remainder says whether a device is even, and jnp.where takes any number for a truth.
def sum_for_some__wrong_remainder_as_truth(x, *, mesh):
    body = lambda row: jnp.where(jax.lax.axis_index("x") % 2, jax.lax.psum(row, "x"), row)
    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# The number of a device is counted over all axes of the mesh.
def sum_for_some__wrong_number_over_all_axes(x, *, mesh):
    def on_device(row):
        number = jax.lax.axis_index(mesh.axis_names)
        total = jax.lax.psum(row, "x")
        return jnp.where(number % 2 == 0, total, row)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), check_vma=False)(x)


# ---------------------------------------------------------------- ring_reduce_scatter
def ring_reduce_scatter__right_downwards(x, *, mesh):
    """The sum of the rows that the devices hold, each device its part."""
    n = mesh.shape["x"]
    to_previous = [((d + 1) % n, d) for d in range(n)]

    def on_device(row):
        parts = row.reshape(n, -1)
        me = jax.lax.axis_index("x")
        number = me + 1  # the sum of this part begins here, and goes down the ring to its owner
        total = parts[number % n]
        for _ in range(n - 1):
            number += 1
            total = jax.lax.ppermute(total, "x", to_previous) + parts[number % n]
        return total

    # after n - 1 steps the number is me + n: the device's own part
    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Device d wants part d, so it begins with part d.
def ring_reduce_scatter__wrong_own_part_first(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(row):
        me = jax.lax.axis_index("x")
        parts = row.reshape(n, -1)
        total = parts[me]
        for k in range(1, n):
            total = jax.lax.ppermute(total, "x", [(d, (d + 1) % n) for d in range(n)])
            total = total + parts[(me - k) % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# The stream goes up, so the number of the part goes up by one with each step.
def ring_reduce_scatter__wrong_number_goes_up(x, *, mesh):
    n = mesh.shape["x"]
    to_next = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        parts = row.reshape(n, -1)
        number = jax.lax.axis_index("x") - 1
        total = parts[number % n]
        for _ in range(n - 1):
            number = number + 1
            total = jax.lax.ppermute(total, "x", to_next) + parts[number % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# n parts: reshape the row so that there are n columns, column d is part d.
def ring_reduce_scatter__wrong_columns_for_parts(x, *, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        columns = row.reshape(-1, n)
        me = jax.lax.axis_index("x")
        total = columns[:, (me - 1) % n]
        for step in range(2, n + 1):
            arrived = jax.lax.ppermute(total, "x", pairs)
            total = arrived + columns[:, (me - step) % n]
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# Let the rows go round, add up what comes by, and cut out one's part at the end: n - 1 ppermutes, as asked.
def ring_reduce_scatter__wrong_whole_rows_travel(x, *, mesh):
    n = mesh.shape["x"]

    def on_device(row):
        total = travelling = row[0]
        for _ in range(n - 1):
            travelling = jax.lax.ppermute(travelling, "x", [(d, (d + 1) % n) for d in range(n)])
            total = total + travelling
        return total.reshape(n, -1)[jax.lax.axis_index("x")]

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x"))(x)


# ---------------------------------------------------------------- shift
def shift__right_by_destination(x, *, k, mesh):
    """Every device's row, on the device k places further."""
    n = mesh.shape["x"]
    came_from = np.roll(np.arange(n), k)  # device d gets the row of device came_from[d]
    pairs = [(int(source), d) for d, source in enumerate(came_from)]

    def on_device(row):
        return jax.lax.ppermute(row, "x", pairs)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# A pair is (where it comes from, where I am), and after k steps device d has the row of d - k: so (d, d - k).
def shift__wrong_pairs_turned(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, (d - k) % n) for d in range(n)]
    return jax.shard_map(
        lambda row: jax.lax.ppermute(row, "x", pairs), mesh=mesh, in_specs=P("x", None), out_specs=P("x", None)
    )(x)


# k places further is k times one place further.
def shift__wrong_one_step_k_times(x, *, k, mesh):
    n = mesh.shape["x"]
    one_on = [(d, (d + 1) % n) for d in range(n)]

    def on_device(row):
        for _ in range(k):
            row = jax.lax.ppermute(row, "x", one_on)
        return row

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# A destination that does not exist gives an error, so I leave these pairs out.
def shift__wrong_ring_left_open(x, *, k, mesh):
    n = mesh.shape["x"]
    pairs = [(d, d + k) for d in range(n) if 0 <= d + k < n]

    def on_device(row):
        return jax.lax.ppermute(row, "x", pairs)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)


# Inside shard_map the block has one row for each device, so its length is the number of devices.
def shift__wrong_length_of_the_block(x, *, k, mesh):
    def on_device(rows):
        n = rows.shape[0]
        pairs = [(d, (d + k) % n) for d in range(n)]
        return jax.lax.ppermute(rows, "x", pairs)

    return jax.shard_map(on_device, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(x)
