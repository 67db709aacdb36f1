"""Answers to lesson 15, twelfth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- sum_schedule

sum_schedule__right_formula = {f"step {t}": [(d + 1 + t) % 4 for d in range(4)] for t in range(4)}

# Thought: moving down is minus, so d - 1 - step (that is the table of sums that move up; the end looks right).
sum_schedule__wrong_moving_up = {
    "step 0": [3, 0, 1, 2],
    "step 1": [2, 3, 0, 1],
    "step 2": [1, 2, 3, 0],
    "step 3": [0, 1, 2, 3],
}

# Thought: at step 0 nothing has been sent yet, so every device begins with its own block, as on the gather side.
sum_schedule__wrong_begins_at_home = {
    "step 0": [0, 1, 2, 3],
    "step 1": [2, 3, 0, 1],
    "step 2": [3, 0, 1, 2],
    "step 3": [0, 1, 2, 3],
}

# Thought: begin with the block of the device above; as sums go down, the numbers on a device go down by one in each step.
sum_schedule__wrong_counts_down = {
    "step 0": [1, 2, 3, 0],
    "step 1": [0, 1, 2, 3],
    "step 2": [3, 0, 1, 2],
    "step 3": [2, 3, 0, 1],
}

# Thought: a sum goes round the ring from its home and back: up by one from the own block in each step, and at the end all are at home.
sum_schedule__wrong_round_trip = {
    "step 0": [0, 1, 2, 3],
    "step 1": [1, 2, 3, 0],
    "step 2": [2, 3, 0, 1],
    "step 3": [0, 1, 2, 3],
}

# ---------------------------------------------------------------- does_it_overlap

does_it_overlap__right_arrows = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# Thought: in send_and_multiply the product stands below the send and needs what it brought, so every step waits, written out or not.
does_it_overlap__wrong_order_of_lines = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "none",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# Thought: the loop is the same program as the one above it, only written once.
does_it_overlap__wrong_loop_is_the_same = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "all",
    "first_one_then_the_rest": "some",
}

# Thought: four products and three transfers: one product always has no transfer beside it, so these overlap only in part.
does_it_overlap__wrong_counts_products = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "some",
    "send_and_multiply": "some",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# Thought: the first product needs no transfer and none needs it, so it can run beside each of the three (one product hides them all).
does_it_overlap__wrong_one_for_all = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "all",
}


# ---------------------------------------------------------------- bidirectional


def bidirectional__right_reshaped(a, b, *, mesh):
    """A[I_X, J] · B[J_X, K] → C[I_X, K]; half of B goes up the ring, the other half down."""

    def on_device(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2
        columns = a.reshape(a.shape[0], n, 2, half)  # of A: block, which half, place in it

        def product(block, which, rows):
            fitting = jax.lax.dynamic_index_in_dim(columns[:, :, which], block % n, axis=1, keepdims=False)
            return fitting @ rows

        rising, falling = b[:half], b[half:]
        total = product(me, 0, rising) + product(me, 1, falling)
        for step in range(1, n):
            rising, falling = send(rising), send(falling, -1)
            total = total + product(me - step, 0, rising) + product(me + step, 1, falling)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: what moves up has a higher number at each step, what moves down a lower one (on a ring of two it makes no difference).
def bidirectional__wrong_crossed(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half = width // 2

        def product(block, second, rows):
            start = block % n * width + second * half
            return jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        total = product(me, 0, up) + product(me, 1, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            total += product(me + step, 0, up) + product(me - step, 1, down)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: two rings are two transfers of half a block each; that both halves go to the same neighbour does not matter.
def bidirectional__wrong_both_up(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half = width // 2

        def product(block, second, rows):
            start = block % n * width + second * half
            return jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ rows

        first, second = b[:half], b[half:]
        total = product(me, 0, first) + product(me, 1, second)
        for step in range(1, n):
            first, second = send(first), send(second)
            total += product(me - step, 0, first) + product(me - step, 1, second)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: there are n blocks, so n steps of send and multiply; the own block is multiplied when it comes home.
def bidirectional__wrong_one_step_more(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half = width // 2

        def product(block, second, rows):
            start = block % n * width + second * half
            return jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ rows

        up, down, total = b[:half], b[half:], 0
        for step in range(1, n + 1):
            up, down = send(up), send(down, -1)
            total += product(me - step, 0, up) + product(me + step, 1, down)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: one product of full width a step is better than two small ones, so the two halves at hand are put together first.
def bidirectional__right_joined(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half = width // 2

        def both(step, up, down):
            left = jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, half, axis=1)
            right = jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width + half, half, axis=1)
            return jnp.concatenate([left, right], axis=1) @ jnp.concatenate([up, down])

        up, down = b[:half], b[half:]
        total = both(0, up, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            total += both(step, up, down)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)
