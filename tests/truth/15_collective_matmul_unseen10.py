"""Answers to lesson 15, tenth batch, written by a reader of the notebook only."""

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


# ---- bidirectional


def bidirectional__right_reshaped(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        columns = a.reshape(a.shape[0], n, 2, -1)
        upper, lower = columns[:, :, 0], columns[:, :, 1]
        up, down = jnp.split(b, 2)
        c = 0
        for step in range(n):
            c = c + jax.lax.dynamic_index_in_dim(upper, (me - step) % n, axis=1, keepdims=False) @ up
            c = c + jax.lax.dynamic_index_in_dim(lower, (me + step) % n, axis=1, keepdims=False) @ down
            if step < n - 1:
                up, down = send(up), send(down, -1)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# two halves in two transfers a step, but both the same way: thinks that it is halving, not turning round, that frees the links
def bidirectional__wrong_both_up(a, b, *, mesh):
    def on_device(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2

        def part(block, second, rows):
            return jax.lax.dynamic_slice_in_dim(a, block * 2 * half + second * half, half, axis=1) @ rows

        first, last = b[:half], b[half:]
        c = part(me, 0, first) + part(me, 1, last)
        for step in range(1, n):
            first, last = send(first), send(last)
            c += part((me - step) % n, 0, first) + part((me - step) % n, 1, last)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# thinks that two rings need two halves of A: all first halves' columns stand in its left half, all second halves' in its right
def bidirectional__wrong_halves_of_a(a, b, *, mesh):
    def on_device(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2
        left, right = a[:, : n * half], a[:, n * half :]

        def part(side, block, rows):
            return jax.lax.dynamic_slice_in_dim(side, block * half, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        c = part(left, me, up) + part(right, me, down)
        for step in range(1, n):
            up, down = send(up), send(down, by=-1)
            c += part(left, (me - step) % n, up) + part(right, (me + step) % n, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# halves the way round in place of the blocks: whole blocks go both ways until they have met, n - 1 whole transfers
def bidirectional__wrong_half_the_ring(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def part(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width, width, axis=1) @ rows

        c, up, down = part(me, b), b, b
        for step in range(1, n // 2 + 1):
            up = send(up)
            c += part(me - step, up)
            if step <= (n - 1) // 2:
                down = send(down, -1)
                c += part(me + step, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# takes the number for "moving down" from the other column of the table, that of sums: block me + 1 + step
def bidirectional__wrong_number_of_sums(a, b, *, mesh):
    def on_device(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2

        def part(block, second, rows):
            return jax.lax.dynamic_slice_in_dim(a, (2 * block + second) * half, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        for step in range(n):
            if step:
                up, down = send(up), send(down, -1)
            own = part((me - step) % n, 0, up) + part((me + 1 + step) % n, 1, down)
            c = c + own if step else own  # noqa: F821
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ---- schedule_table

schedule_table__right_formula = {
    f"shift {by:+d}, step {step}": [(d - by * step) % 4 for d in range(4)] for by in (1, -1) for step in (1, 2, 3)
}

# moving up he adds, as one says where a block goes to; moving down he writes out the pairs, and gets it right
schedule_table__wrong_up_adds = {
    "shift +1, step 1": [1, 2, 3, 0],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [3, 0, 1, 2],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [3, 0, 1, 2],
}

# goes on from where the three steps up have left the blocks: each step down takes one of them back
schedule_table__wrong_down_goes_on = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [2, 3, 0, 1],
    "shift -1, step 2": [3, 0, 1, 2],
    "shift -1, step 3": [0, 1, 2, 3],
}

# "a ring of n needs n - 1 transfers": after three of them everything is back at home
schedule_table__wrong_home_after_three = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [0, 1, 2, 3],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [0, 1, 2, 3],
}

# takes "the other way round" for the same rows read backwards
schedule_table__wrong_down_reads_backwards = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [2, 1, 0, 3],
    "shift -1, step 2": [1, 0, 3, 2],
    "shift -1, step 3": [0, 3, 2, 1],
}

# ---- sum_schedule

sum_schedule__right_formula = {f"step {step}": [(d + 1 + step) % 4 for d in range(4)] for step in range(4)}

# takes the numbers of the worked example, whose sums move up (me - 1 - step)
sum_schedule__wrong_as_moving_up = {
    "step 0": [3, 0, 1, 2],
    "step 1": [2, 3, 0, 1],
    "step 2": [1, 2, 3, 0],
    "step 3": [0, 1, 2, 3],
}

# goes back rightly, but at step 0 nothing has moved yet, so every device "must" be at its own block, as on the other side
sum_schedule__wrong_own_block_first = {
    "step 0": [0, 1, 2, 3],
    "step 1": [2, 3, 0, 1],
    "step 2": [3, 0, 1, 2],
    "step 3": [0, 1, 2, 3],
}

# begins rightly, then "the sums move down, so the number falls by one each step", and does not look where they end
sum_schedule__wrong_number_falls = {
    "step 0": [1, 2, 3, 0],
    "step 1": [0, 1, 2, 3],
    "step 2": [3, 0, 1, 2],
    "step 3": [2, 3, 0, 1],
}

# goes back one place from step 3 to step 2, two more places to step 1 and three more to step 0
sum_schedule__wrong_ever_longer_steps = {
    "step 0": [2, 3, 0, 1],
    "step 1": [1, 2, 3, 0],
    "step 2": [3, 0, 1, 2],
    "step 3": [0, 1, 2, 3],
}
