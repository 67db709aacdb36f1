"""Answers to lesson 15, fifth batch, written by a reader of the notebook only."""

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])


def send(block, by=1):
    """Send the block `by` places up the ring over x; returns the one that came instead."""
    n = jax.lax.axis_size("x")
    return jax.lax.ppermute(block, "x", [(d, (d + by) % n) for d in range(n)])


def varying(value):
    """The same value, marked as one that may differ along x (`lax.pvary` until JAX 0.8.1, `lax.pcast` since)."""
    return jax.lax.pcast(value, "x", to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(value, "x")


# ---------------------------------------------------------------- schedule_table

schedule_table__right_rolled = {
    f"shift {by:+d}, step {step}": np.roll(np.arange(4), by * step).tolist() for by in (1, -1) for step in (1, 2, 3)
}

# The student writes where the block of device d has gone, not which block device d holds.
schedule_table__wrong_where_it_went = {
    "shift +1, step 1": [1, 2, 3, 0],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [3, 0, 1, 2],
    "shift -1, step 1": [3, 0, 1, 2],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [1, 2, 3, 0],
}

# The pairs (d, (d - 1) % 4) are read as (gets, from), so that moving down gives the same as moving up.
schedule_table__wrong_pairs_read_backwards = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [3, 0, 1, 2],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [1, 2, 3, 0],
}

# Three transfers are enough for a ring of four, so the student lets every block be back home after them.
schedule_table__wrong_home_after_three = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [0, 1, 2, 3],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [0, 1, 2, 3],
}

# Step t is taken to move everything t places further than step t - 1 did, instead of one.
schedule_table__wrong_t_places_more = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [1, 2, 3, 0],
    "shift +1, step 3": [2, 3, 0, 1],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [3, 0, 1, 2],
    "shift -1, step 3": [2, 3, 0, 1],
}


# ---------------------------------------------------------------- ring_time


def ring_time__right_two_bounds(n, product, transfer):
    transfers, products = (n - 1) * transfer, n * product
    # either the products are never kept waiting, or the wire is never idle and one product is left at the end
    return {"apart": transfers + products, "overlapped": max(products, transfers + product)}


# Every step has a product and a transfer beside it, the student thinks, the last one too.
def ring_time__wrong_n_steps_with_both(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": n * max(product, transfer)}


# The step that stands alone is taken to be the first transfer, as if a device had nothing to multiply at the start.
def ring_time__wrong_a_transfer_alone(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": (n - 1) * max(product, transfer) + transfer}


# All products on one side, all transfers on the other, the longer side wins: the product of the last block is forgotten.
def ring_time__wrong_longer_side(n, product, transfer):
    products, transfers = n * product, (n - 1) * transfer
    return {"apart": products + transfers, "overlapped": max(products, transfers)}


# n blocks go round a ring of n devices, so the student counts n transfers where they come first.
def ring_time__wrong_n_transfers(n, product, transfer):
    return {"apart": n * (product + transfer), "overlapped": (n - 1) * max(product, transfer) + product}


# ---------------------------------------------------------------- rs_matmul_ring


def rs_matmul_ring__right_up(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        rows = a.reshape(n, a.shape[0] // n, a.shape[1])

        def part(step):
            return jax.lax.dynamic_index_in_dim(rows, (me + n - 1 - step) % n, axis=0, keepdims=False) @ b

        total = part(0)
        for step in range(1, n):
            came, own = send(total), part(step)
            total = came + own
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P("x"))(a, b)


# Each device begins with its own block, and since the sums then end one place off, one more transfer brings them home.
def rs_matmul_ring__wrong_n_transfers(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * height, height, axis=0) @ b

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return send(c)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# The block numbers are those of sums that move down, and `send` moves them up (which is the same on a ring of two).
def rs_matmul_ring__wrong_down_and_up(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me + 1 + step) % n * height, height, axis=0) @ b

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# One large product is better than n small ones, thinks the student, and cuts the parts out of it: nothing can overlap.
def rs_matmul_ring__wrong_one_product(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n
        product = a @ b

        def part(step):
            return jax.lax.dynamic_slice_in_dim(product, (me - 1 - step) % n * height, height, axis=0)

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# The student's ring has the four devices of the notebook, in the number of turns and in the block numbers.
def rs_matmul_ring__wrong_always_four(a, b, *, mesh):
    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // 4

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me + 1 + step) % 4 * height, height, axis=0) @ b

        c = part(0)
        for step in range(1, 4):
            c = send(c, -1) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)
