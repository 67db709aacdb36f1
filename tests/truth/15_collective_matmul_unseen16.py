"""Answers to lesson 15, sixteenth batch, written by a reader of the notebook only."""

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

does_it_overlap__right_table = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# Where the send stands in front of the product, the product multiplies what comes, and so it has to wait: in a loop or not.
does_it_overlap__wrong_lineorder = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "none",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# A loop is the same program as the one written out, only shorter.
does_it_overlap__wrong_sameloop = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "all",
    "first_one_then_the_rest": "some",
}

# The first product needs no transfer and no transfer needs it, so it can run beside all three of them.
does_it_overlap__wrong_oneforall = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "all",
}

# Four products and three transfers: one of the products has nothing beside it, so it is not all of them.
does_it_overlap__wrong_leftover = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "some",
    "send_and_multiply": "some",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}


# ---------------------------------------------------------------- ring_time


def ring_time__right_saved(n, product, transfer):
    """The time of n products and n - 1 transfers, one after the other and side by side."""
    apart = n * product + (n - 1) * transfer
    saved = (n - 1) * min(product, transfer)  # of each pair the shorter one is hidden
    return {"apart": apart, "overlapped": apart - saved}


# Every one of the n steps has a product and a transfer, and takes as long as the longer.
def ring_time__wrong_nsteps(n, product, transfer):
    """The time of n products and n - 1 transfers, one after the other and side by side."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": n * max(product, transfer)}


# Products and transfers are two queues that run side by side, so the longer queue decides.
def ring_time__wrong_queues(n, product, transfer):
    """The time of n products and n - 1 transfers, one after the other and side by side."""
    multiplying = n * product
    sending = (n - 1) * transfer
    return {"apart": multiplying + sending, "overlapped": max(multiplying, sending)}


# A ring on n devices has n transfers, until each block is at home again.
def ring_time__wrong_fullcircle(n, product, transfer):
    """The time of n products and n - 1 transfers, one after the other and side by side."""
    overlapped = product
    for _ in range(n - 1):
        overlapped += max(product, transfer)
    return {"apart": n * (product + transfer), "overlapped": overlapped}


# The first block must arrive before anything can be multiplied: one transfer alone, then steps with both.
def ring_time__wrong_arrivesfirst(n, product, transfer):
    """The time of n products and n - 1 transfers, one after the other and side by side."""
    return {
        "apart": n * product + (n - 1) * transfer,
        "overlapped": transfer + (n - 1) * max(product, transfer),
    }


# ---------------------------------------------------------------- with_fori_loop


def with_fori_loop__right_down(a, b, *, mesh):
    """A[I_X, J] · B[J_X, K] → C[I_X, K]; the ring in a loop."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):  # blocks move down, so they come from above
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, here = carry
            return c + term(step, here), send(here, by=-1)

        zeros = varying(jnp.zeros((a.shape[0], b.shape[1]), jnp.result_type(a, b)))
        c, last = jax.lax.fori_loop(0, n - 1, turn, (zeros, b))
        return c + term(n - 1, last)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Blocks move up, so after `step` transfers a device has the block `step` places above its own (right on two devices only).
def with_fori_loop__wrong_above(a, b, *, mesh):
    """A[I_X, J] · B[J_X, K] → C[I_X, K]; the ring in a loop."""

    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width = b.shape[0]

        def columns(step):
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1)

        def turn(step, carry):
            c, b = carry
            return c + columns(step) @ b, send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + columns(n - 1) @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Counts turns from 1 to n - 1 and takes the upper bound of fori_loop for included: one turn is missing.
def with_fori_loop__wrong_inclusive(a, b, *, mesh):
    """A[I_X, J] · B[J_X, K] → C[I_X, K]; the ring in a loop."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def block_product(sent, b):
            start = (me - sent) % n * width
            return jax.lax.dynamic_slice_in_dim(a, start, width, axis=1) @ b

        def turn(number, carry):
            c, b = carry
            c = c + block_product(number - 1, b)
            return c, send(b)

        c = varying(jnp.zeros((a.shape[0], b.shape[1])))
        c, b = jax.lax.fori_loop(1, n - 1, turn, (c, b))
        return c + block_product(n - 1, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# The ring is what counts: the loop collects the blocks into all of B, and one product comes after it.
def with_fori_loop__wrong_collects(a, b, *, mesh):
    """A[I_X, J] · B[J_X, K] → C[I_X, K]; the ring in a loop."""

    def on_device(a, b):
        n, me, height = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def place(whole, b, step):
            return jax.lax.dynamic_update_slice_in_dim(whole, b, (me - step) % n * height, axis=0)

        def turn(step, carry):
            whole, b = carry
            b = send(b)
            return place(whole, b, step), b

        whole = place(varying(jnp.zeros((n * height, b.shape[1]), b.dtype)), b, 0)
        whole, _ = jax.lax.fori_loop(1, n, turn, (whole, b))
        return a @ whole

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Puts the answer of part 3 into a loop as it was, first send, then multiply what came: in a loop that waits.
def with_fori_loop__wrong_sendfirst(a, b, *, mesh):
    """A[I_X, J] · B[J_X, K] → C[I_X, K]; the ring in a loop."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def term(step, block):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ block

        def turn(step, carry):
            c, block = carry
            block = send(block)
            return c + term(step, block), block

        return jax.lax.fori_loop(1, n, turn, (term(0, b), b))[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)
