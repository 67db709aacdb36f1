"""Answers to lesson 15, thirteenth batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
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


# ---------------------------------------------------------------- rs_matmul_ring


def rs_matmul_ring__right_straight(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def part(block):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height, axis=0) @ b

        c = part(me)
        for ahead in range(1, n):
            c = c + send(part(me + ahead), by=ahead)  # straight to its owner
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that with sums that move up a device begins with its own block and goes backwards from there.
def rs_matmul_ring__wrong_beginsathome(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height = a.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * height, height, axis=0) @ b

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought of the schedule for sums that move down, and sent them up.
def rs_matmul_ring__wrong_othersway(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height = a.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me + 1 + step) % n * height, height, axis=0) @ b

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that a sum begins at home, goes all the way round and comes home again.
def rs_matmul_ring__wrong_allround(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height = a.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * height, height, axis=0) @ b

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return send(c)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that, as before, B goes round and meets the device's own rows of A.
def rs_matmul_ring__wrong_bgoesround(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height = a.shape[0] // n
        rows = jax.lax.dynamic_slice_in_dim(a, me * height, height, axis=0)
        c = rows @ b
        for _ in range(1, n):
            b = send(b)
            c = c + rows @ b
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# ---------------------------------------------------------------- ring_time


def ring_time__right_whatsticksout(n, product, transfer):
    work = n * product
    return {"apart": work + (n - 1) * transfer, "overlapped": work + (n - 1) * max(0, transfer - product)}


# This student thought that all n steps have both, a product and a transfer beside it.
def ring_time__wrong_nsteps(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": n * max(product, transfer)}


# This student thought that, one after the other, each of the n blocks is sent and multiplied.
def ring_time__wrong_ntransfers(n, product, transfer):
    return {"apart": n * (product + transfer), "overlapped": (n - 1) * max(product, transfer) + product}


# This student thought that products and transfers run freely side by side, and that the longer of the two sums decides.
def ring_time__wrong_sums(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": max(n * product, (n - 1) * transfer)}


# This student thought that a transfer has to come first, and that all else runs beside something.
def ring_time__wrong_transferfirst(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": transfer + (n - 1) * max(product, transfer)}


# ---------------------------------------------------------------- ag_matmul_ring


def ag_matmul_ring__right_down(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, columns = jax.lax.axis_index("x"), jnp.split(a, n, axis=1)
        columns = jnp.stack(columns)  # [block, I, J of a block]
        c = columns[me] @ b
        for step in range(1, n):
            b = jax.lax.ppermute(b, "x", [(d, (d - 1) % n) for d in range(n)])
            c = c + columns[(me + step) % n] @ b
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that if blocks move up, the next one at hand is the next one up.
def ag_matmul_ring__wrong_nextup(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def fits(step):
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1)

        c = fits(0) @ b
        for step in range(1, n):
            b = send(b)
            c = c + fits(step) @ b
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that the slice begins at the number of the block.
def ag_matmul_ring__wrong_blockasstart(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        c = jax.lax.dynamic_slice_in_dim(a, me, b.shape[0], axis=1) @ b
        for step in range(1, n):
            b = send(b)
            c = c + jax.lax.dynamic_slice_in_dim(a, (me - step) % n, b.shape[0], axis=1) @ b
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that n - 1 transfers are made by range(1, n - 1).
def ag_matmul_ring__wrong_onetoofew(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def fits(step):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1)

        c = fits(0) @ b
        for step in range(1, n - 1):
            b = send(b)
            c = c + fits(step) @ b
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that transfers in pieces are enough, and put the pieces together for one large product.
def ag_matmul_ring__wrong_assembled(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        whole = varying(jnp.zeros((n * width, b.shape[1]), b.dtype))
        for step in range(n):
            whole = jax.lax.dynamic_update_slice_in_dim(whole, b, (me - step) % n * width, axis=0)
            if step < n - 1:
                b = send(b)
        return a @ whole

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)
