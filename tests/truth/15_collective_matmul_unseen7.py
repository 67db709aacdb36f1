"""Answers to lesson 15, seventh batch, written by a reader of the notebook only."""

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


# ---- ring_time


def ring_time__right_EXCESS(n, product, transfer):
    waits = (n - 1) * max(0, transfer - product)  # what of the transfers sticks out
    return {"apart": n * product + (n - 1) * transfer, "overlapped": n * product + waits}


# Thinks that there are as many steps as devices, each as long as the longer of the two.
def ring_time__wrong_N_STEPS(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": n * max(product, transfer)}


# Thinks that products and transfers are two rows that run freely beside each other: the longer row decides.
def ring_time__wrong_LONGER_ROW(n, product, transfer):
    products, transfers = n * product, (n - 1) * transfer
    return {"apart": products + transfers, "overlapped": max(products, transfers)}


# Counts a transfer for every product, also where they come one after the other.
def ring_time__wrong_N_TRANSFERS(n, product, transfer):
    return dict(apart=n * (product + transfer), overlapped=(n - 1) * max(product, transfer) + product)


# Thinks that the first block has to arrive before anything can be multiplied: the step that is left over is a transfer.
def ring_time__wrong_TRANSFER_FIRST(n, product, transfer):
    apart = (n - 1) * transfer + n * product
    overlapped = transfer
    for _ in range(n - 1):
        overlapped += max(product, transfer)
    return {"apart": apart, "overlapped": overlapped}


# ---- rs_matmul_ring


def rs_matmul_ring__right_UP_BLOCKS(a, b, *, mesh):
    n = mesh.shape["x"]
    up = [(k, (k + 1) % n) for k in range(n)]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        blocks = a.reshape(n, -1, a.shape[1])  # block k: the rows of A for block k of C

        def own_part(k):
            return jax.lax.dynamic_index_in_dim(blocks, k % n, keepdims=False) @ b

        total = own_part(me - 1)
        for step in range(2, n + 1):
            total = jax.lax.ppermute(total, "x", up) + own_part(me - step)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Makes one product and cuts the parts out of it: every sum waits for all of it.
def rs_matmul_ring__wrong_ONE_PRODUCT(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        parts = (a @ b).reshape(n, a.shape[0] // n, b.shape[1])
        c = parts[(me + 1) % n]
        for step in range(1, n):
            c = send(c, by=-1) + parts[(me + 1 + step) % n]
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Begins with its own block, so that after n - 1 steps every sum stands on the neighbour of the device that it belongs to.
def rs_matmul_ring__wrong_BEGINS_AT_HOME(a, b, *, mesh):
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


# Begins with its own block and brings the sum home by one more transfer: right values, n transfers.
def rs_matmul_ring__wrong_ONE_MORE_TO_GET_HOME(a, b, *, mesh):
    def on_device(a, b):
        n, me, height = jax.lax.axis_size("x"), jax.lax.axis_index("x"), a.shape[0] // jax.lax.axis_size("x")
        c = jnp.zeros((height, b.shape[1]), a.dtype)
        for step in range(n):
            rows = jax.lax.dynamic_slice_in_dim(a, ((me - step) % n) * height, height, axis=0)
            c = send(c + rows @ b)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Takes the worked example over as it stands: blocks of columns of C, and the layout that belongs to them.
def rs_matmul_ring__wrong_COLUMNS(a, b, *, mesh):
    def sums_move_up(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[1] // jax.lax.axis_size("x")

        def part(step):
            block = (me - 1 - step) % n
            return a @ jax.lax.dynamic_slice_in_dim(b, block * width, width, axis=1)

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return jax.shard_map(sums_move_up, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# ---- ag_matmul_ring


def ag_matmul_ring__right_DOWN_ONE_AHEAD(a, b, *, mesh):
    n = mesh.shape["x"]
    down = [((k + 1) % n, k) for k in range(n)]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]
        terms = []
        for step in range(n):
            coming = jax.lax.ppermute(b, "x", down) if step + 1 < n else None
            first = (me + step) % n * width
            terms.append(jax.lax.dynamic_slice_in_dim(a, first, width, axis=1) @ b)
            b = coming
        return sum(terms)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Writes the ring for the four devices of the lesson: 4 stands where n should be.
def ag_matmul_ring__wrong_FOUR(a, b, *, mesh):
    def on_device(a, b):
        me = jax.lax.axis_index("x")

        def columns(step):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % 4 * b.shape[0], b.shape[0], axis=1)

        total = columns(0) @ b
        for step in range(1, 4):
            b = send(b)
            total += columns(step) @ b
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thinks that blocks that move up bring those of the devices above: the sign of the step is wrong (right on a ring of two).
def ag_matmul_ring__wrong_SIGN(a, b, *, mesh):
    def body(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        c = jax.lax.dynamic_slice_in_dim(a, me * width, width, axis=1) @ b
        for step in range(1, n):
            b = send(b)
            c = c + jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ b
        return c

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Collects all blocks round the ring and multiplies once at the end: an all_gather written out, with nothing beside it.
def ag_matmul_ring__wrong_COLLECT_THEN_MULTIPLY(a, b, *, mesh):
    def body(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        blocks, columns = [b], []
        for _ in range(n - 1):
            blocks.append(send(blocks[-1]))
        for step in range(n):
            columns.append(jax.lax.dynamic_slice_in_dim(a, (me - step) % n * b.shape[0], b.shape[0], axis=1))
        return jnp.concatenate(columns, axis=1) @ jnp.concatenate(blocks, axis=0)

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# n - 1 transfers, so n - 1 products: forgets the block that the device has to begin with.
def ag_matmul_ring__wrong_OWN_BLOCK_FORGOTTEN(a, b, *, mesh):
    def body(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        c = varying(jnp.zeros((a.shape[0], b.shape[1]), a.dtype))
        for step in range(1, n):
            b = send(b)
            start = ((me - step) % n) * width
            c = c + jax.lax.dynamic_slice_in_dim(a, start, width, axis=1) @ b
        return c

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)
