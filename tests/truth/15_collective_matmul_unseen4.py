"""Answers to lesson 15, fourth batch, written by a reader of the notebook only."""

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


# ------------------------------------------------------------------ does_it_overlap

does_it_overlap__right_arrows = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# This student read the lines as an order: whoever sends before he multiplies waits in every step.
does_it_overlap__wrong_order_of_lines = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "none",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# This student thought that a loop is the same program as the one written out.
does_it_overlap__wrong_loop_unrolled = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "all",
    "first_one_then_the_rest": "some",
}

# This student thought that one product which needs no transfer stands beside all of them.
does_it_overlap__wrong_one_for_all = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "all",
}

# This student thought that the last transfer of a ring has nothing left beside it, and that a loop hides all but its first.
does_it_overlap__wrong_last_is_bare = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "some",
    "send_and_multiply_in_a_loop": "some",
    "first_one_then_the_rest": "some",
}

# ------------------------------------------------------------------ sum_schedule

sum_schedule__right_formula = {f"step {t}": [(d + 1 + t) % 4 for d in range(4)] for t in range(4)}

# This student took the worked example's table, where sums move up.
sum_schedule__wrong_moving_up = {
    "step 0": [3, 0, 1, 2],
    "step 1": [2, 3, 0, 1],
    "step 2": [1, 2, 3, 0],
    "step 3": [0, 1, 2, 3],
}

# This student began with the own block, as the gathering ring does.
sum_schedule__wrong_begins_at_home = {
    "step 0": [0, 1, 2, 3],
    "step 1": [1, 2, 3, 0],
    "step 2": [2, 3, 0, 1],
    "step 3": [3, 0, 1, 2],
}

# This student began with the right block and then let the blocks' numbers fall, as if they moved up.
sum_schedule__wrong_turns_round = {
    "step 0": [1, 2, 3, 0],
    "step 1": [0, 1, 2, 3],
    "step 2": [3, 0, 1, 2],
    "step 3": [2, 3, 0, 1],
}

# This student counted four transfers back from the end instead of three.
sum_schedule__wrong_one_too_many = {
    "step 0": [0, 1, 2, 3],
    "step 1": [2, 3, 0, 1],
    "step 2": [3, 0, 1, 2],
    "step 3": [0, 1, 2, 3],
}


# ------------------------------------------------------------------ bidirectional


def bidirectional__right_four_dimensions(a, b, *, mesh):
    """The columns of A as [block, half, row]; two sums, added at the end."""

    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        columns = a.reshape(a.shape[0], n, 2, -1)

        def term(block, half, rows):
            return jax.lax.dynamic_index_in_dim(columns, block % n, axis=1, keepdims=False)[:, half] @ rows

        up, down = jnp.split(b, 2)
        left, right = term(me, 0, up), term(me, 1, down)
        for step in range(1, n):
            up, down = send(up, 1), send(down, -1)
            left, right = left + term(me - step, 0, up), right + term(me + step, 1, down)
        return left + right

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student cut every block in two but sends both halves up, so the links down stay idle.
def bidirectional__wrong_both_up(a, b, *, mesh):
    def on_device(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2

        def term(block, second, rows):
            return jax.lax.dynamic_slice_in_dim(a, block * 2 * half + second * half, half, axis=1) @ rows

        one, two = b[:half], b[half:]
        total = term(me, 0, one) + term(me, 1, two)
        for step in range(1, n):
            one, two = send(one), send(two)
            block = (me - step) % n
            total += term(block, 0, one) + term(block, 1, two)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student forgot that the second half's columns begin half a block later.
def bidirectional__wrong_no_offset(a, b, *, mesh):
    def on_device(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2

        def term(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * b.shape[0], half, axis=1) @ rows

        up, down = b[:half], b[half:]
        total = term(me, up) + term(me, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            total += term(me - step, up) + term(me + step, down)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that at each step a device holds both halves of one block, the block me - step.
def bidirectional__wrong_same_block(a, b, *, mesh):
    def on_device(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2

        def term(block, second, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * 2 * half + second * half, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        total = term(me, 0, up) + term(me, 1, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            total += term(me - step, 0, up) + term(me - step, 1, down)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student sends whole blocks both ways, each half of the way round: right values, n - 1 transfers of whole blocks.
def bidirectional__wrong_half_way_round(a, b, *, mesh):
    def on_device(a, b):
        n, me, rows = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def term(block, piece):
            return jax.lax.dynamic_slice_in_dim(a, block % n * rows, rows, axis=1) @ piece

        up = down = b
        total = term(me, b)
        for step in range(1, n // 2 + 1):
            up = send(up)
            total += term(me - step, up)
            if step <= (n - 1) // 2:
                down = send(down, -1)
                total += term(me + step, down)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)
