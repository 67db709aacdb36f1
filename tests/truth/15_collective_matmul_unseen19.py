"""Answers to lesson 15, nineteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- does_it_overlap

does_it_overlap__right_arrows = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# This student reads lines as an order: what is sent above a product must have come before it.
does_it_overlap__wrong_lines = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "none",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# This student takes a loop for the same program as the one written out.
does_it_overlap__wrong_loop = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "all",
    "first_one_then_the_rest": "some",
}

# This student lets the one free product count for each of the transfers which it may run beside.
does_it_overlap__wrong_countedagain = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "all",
}

# This student finds that one product of four is alone (n - 1 transfers), says "some" for it, and lets the loop's first product hide its first turn.
does_it_overlap__wrong_fourproducts = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "some",
    "send_and_multiply": "some",
    "send_and_multiply_in_a_loop": "some",
    "first_one_then_the_rest": "some",
}


# ---------------------------------------------------------------- rs_matmul_ring

ROWS_OUT_ = dict(in_specs=(P(None, "x"), P("x")), out_specs=P("x"))


# (Each part goes straight to its owner, s places up.)
def rs_matmul_ring__right_straight(a, b, *, mesh):
    """A[I, J_X] · B[J_X, K] → C[I_X, K]; the sums go round the ring."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def part(block):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height) @ b

        return sum((send(part(me + s), by=s) for s in range(1, n)), start=part(me))

    return jax.shard_map(on_device, mesh=mesh, **ROWS_OUT_)(a, b)


# This student makes one product and cuts the parts out of it.
def rs_matmul_ring__wrong_oneproduct(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        parts = (a @ b).reshape(n, -1, b.shape[1])
        c = parts[(me - 1) % n]
        for step in range(1, n):
            c = send(c) + parts[(me - 1 - step) % n]
        return c

    return jax.shard_map(on_device, mesh=mesh, **ROWS_OUT_)(a, b)


# This student moves the sums up with the schedule of sums that move down (which is right for two devices).
def rs_matmul_ring__wrong_direction(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me + 1 + step) % n * height, height) @ b

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, **ROWS_OUT_)(a, b)


# This student lets a sum of zeros set out as well: n transfers for n parts.
def rs_matmul_ring__wrong_zeros(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def turn(step, c):
            rows = jax.lax.dynamic_slice_in_dim(a, (me - 1 - step) % n * height, height)
            return send(c) + rows @ b

        return jax.lax.fori_loop(0, n, turn, varying(jnp.zeros((height, b.shape[1]), a.dtype)))

    return jax.shard_map(on_device, mesh=mesh, **ROWS_OUT_)(a, b)


# This student copies the worked example: blocks of columns of C, so that each device ends with columns in place of rows.
def rs_matmul_ring__wrong_columns(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[1] // n

        def part(step):
            return a @ jax.lax.dynamic_slice_in_dim(b, (me - 1 - step) % n * width, width, axis=1)

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(None, "x"))(a, b)


# ---------------------------------------------------------------- ag_matmul_ring

AS_ROWS_ = dict(in_specs=(P("x"), P("x")), out_specs=P("x"))


# (Down the ring: what a device holds after t steps came from above.)
def ag_matmul_ring__right_down(a, b, *, mesh):
    """A[I_X, J] · B[J_X, K] → C[I_X, K]; B goes round the ring."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]
        held = [b]
        while len(held) < n:
            held.append(send(held[-1], by=-1))
        return sum(
            jax.lax.dynamic_slice_in_dim(a, (me + t) % n * width, width, axis=1) @ block for t, block in enumerate(held)
        )

    return jax.shard_map(on_device, mesh=mesh, **AS_ROWS_)(a, b)


# This student sends up, and thinks that what has moved up t places is block me + t (the same on a ring of two).
def ag_matmul_ring__wrong_plus(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width, total = jax.lax.axis_index("x"), b.shape[0], 0
        for step in range(n):
            total += jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ b
            if step < n - 1:
                b = send(b)
        return total

    return jax.shard_map(on_device, mesh=mesh, **AS_ROWS_)(a, b)


# This student collects the blocks by a ring, puts them in order and makes one large product, which runs best.
def ag_matmul_ring__wrong_collected(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), b.shape[0]
        blocks = [b]
        for _ in range(n - 1):
            blocks.append(send(blocks[-1]))
        whole = jnp.stack(blocks)[(me - jnp.arange(n)) % n].reshape(n * height, -1)
        return a @ whole

    return jax.shard_map(on_device, mesh=mesh, **AS_ROWS_)(a, b)


# This student lets a loop of n turns multiply and send in each: the last turn sends every block home, one transfer too many.
def ag_matmul_ring__wrong_home(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def turn(step, carry):
            c, b = carry
            return c + jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b, send(b)

        return jax.lax.fori_loop(0, n, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]), a.dtype)), b))[0]

    return jax.shard_map(on_device, mesh=mesh, **AS_ROWS_)(a, b)


# This student multiplies every block that comes by with the device's own columns of A.
def ag_matmul_ring__wrong_owncolumns(a, b, *, mesh):
    def on_device(a, b):
        width = b.shape[0]
        own = jax.lax.dynamic_slice_in_dim(a, jax.lax.axis_index("x") * width, width, axis=1)
        c = own @ b
        for _ in range(mesh.shape["x"] - 1):
            b = send(b)
            c += own @ b
        return c

    return jax.shard_map(on_device, mesh=mesh, **AS_ROWS_)(a, b)
