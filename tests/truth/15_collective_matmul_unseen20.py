"""Answers to lesson 15, twentieth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- ring_time


def ring_time__right_excess(n, product, transfer):
    work = n * product
    return {"apart": work + (n - 1) * transfer, "overlapped": work + (n - 1) * max(0, transfer - product)}


# n steps, each as long as the longer of the two: this student forgot that the last step sends nothing.
def ring_time__wrong_n_steps(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": n * max(product, transfer)}


# All that overlaps is as long as the longer of both totals, thought this student; but the last product waits for the last block.
def ring_time__wrong_longer_total(n, product, transfer):
    products, transfers = n * product, (n - 1) * transfer
    return {"apart": products + transfers, "overlapped": max(products, transfers)}


# A ring of n devices sends n times, thought this student for the plain version, all the way round.
def ring_time__wrong_n_transfers(n, product, transfer):
    return {"apart": n * (product + transfer), "overlapped": (n - 1) * max(product, transfer) + product}


# This student thought that nothing can be multiplied before a first block has come, and put a transfer in front.
def ring_time__wrong_transfer_first(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": transfer + (n - 1) * max(product, transfer)}


# ---------------------------------------------------------------- bidirectional


def bidirectional__right_column_halves(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height = b.shape[0]

        def term(block, half):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height, axis=1) @ half

        up, down = jnp.split(b, 2, axis=1)
        left, right = term(me, up), term(me, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            left = left + term(me - step, up)
            right = right + term(me + step, down)
        return jnp.concatenate([left, right], axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student used one block number for both halves, that of the half which moves up.
def bidirectional__wrong_one_number(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        half = b.shape[0] // 2

        def term(block, second, rows):
            start = block * 2 * half + second * half
            return jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        c = term(me, 0, up) + term(me, 1, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            block = (me - step) % n
            c = c + term(block, 0, up) + term(block, 1, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Both halves belong to blocks of the same columns, thought this student, who begins each at the start of its block.
def bidirectional__wrong_no_offset(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width, half = b.shape[0], b.shape[0] // 2

        def term(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        c = term(me, up) + term(me, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c = c + term(me - step, up) + term(me + step, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student read "half goes up" as half of the blocks: whole blocks travel, each way round only half of the ring.
def bidirectional__wrong_whole_blocks(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width = b.shape[0]

        def term(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width, width, axis=1) @ rows

        c = term(me, b)
        up = down = b
        for step in range(1, n // 2 + 1):
            up = send(up)
            c = c + term(me - step, up)
        for step in range(1, (n - 1) // 2 + 1):
            down = send(down, -1)
            c = c + term(me + step, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Two rings of halves, but this student sends both of them up: the values are right, one direction of the links is idle.
def bidirectional__wrong_both_up(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        half = b.shape[0] // 2

        def term(block, second, rows):
            start = block * 2 * half + second * half
            return jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ rows

        first, second = b[:half], b[half:]
        c = term(me, 0, first) + term(me, 1, second)
        for step in range(1, n):
            first, second = send(first), send(second)
            block = (me - step) % n
            c = c + term(block, 0, first) + term(block, 1, second)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ---------------------------------------------------------------- schedule_table

schedule_table__right_computed = {
    f"shift {shift:+d}, step {step}": [(device - shift * step) % 4 for device in range(4)]
    for shift in (1, -1)
    for step in (1, 2, 3)
}

# This student wrote for "up" where block d has gone, (d + t) mod 4, instead of which block device d holds.
schedule_table__wrong_where_it_went = {
    "shift +1, step 1": [1, 2, 3, 0],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [3, 0, 1, 2],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [3, 0, 1, 2],
}

# Down means minus, thought this student, and used (d - t) mod 4 for the blocks that move down as well.
schedule_table__wrong_minus_both = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [3, 0, 1, 2],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [1, 2, 3, 0],
}

# This student counted the steps of the second ring from where nothing has been sent yet.
schedule_table__wrong_from_zero = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [0, 1, 2, 3],
    "shift -1, step 2": [1, 2, 3, 0],
    "shift -1, step 3": [2, 3, 0, 1],
}

# Down is up read backwards, thought this student, and turned the lists round.
schedule_table__wrong_lists_reversed = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [2, 1, 0, 3],
    "shift -1, step 2": [1, 0, 3, 2],
    "shift -1, step 3": [0, 3, 2, 1],
}
