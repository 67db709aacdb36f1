"""Answers to lesson 15, seventeenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- bidirectional


def bidirectional__right_columns_of_b(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height, half = b.shape[0], b.shape[1] // 2

        def met(block, columns):
            return jax.lax.dynamic_slice_in_dim(a, (block % n) * height, height, axis=1) @ columns

        up, down = b[:, :half], b[:, half:]
        left, right = met(me, up), met(me, down)
        for t in range(1, n):
            up, down = send(up), send(down, -1)
            left, right = left + met(me - t, up), right + met(me + t, down)
        return jnp.concatenate([left, right], axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: after t steps the halves at hand belong to one block, (me - t), since they were cut from one block (right in a ring of two).
def bidirectional__wrong_one_block(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        half = b.shape[0] // 2

        def part(step, second, rows):
            start = (me - step) % n * 2 * half + second * half
            return jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        c = part(0, 0, up) + part(0, 1, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c += part(step, 0, up) + part(step, 1, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: links are used better when blocks are cut in two and two transfers are on their way at once; both go to the next device.
def bidirectional__wrong_both_up(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        half = b.shape[0] // 2

        def part(block, second, rows):
            return jax.lax.dynamic_slice_in_dim(a, block * 2 * half + second * half, half, axis=1) @ rows

        first, second = b[:half], b[half:]
        c = part(me, 0, first) + part(me, 1, second)
        for step in range(1, n):
            first, second = send(first), send(second)
            block = (me - step) % n
            c += part(block, 0, first) + part(block, 1, second)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: a half of block k meets the columns of A where block k begins (the second half's columns begin half a block later).
def bidirectional__wrong_no_offset(a, b, *, mesh):
    def on_device(a, b):
        n, me, height = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half = height // 2

        def part(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        c = part(me, up) + part(me, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c += part(me - step, up) + part(me + step, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: "half" is half of the way: whole blocks go up and down, and meet on the other side of the ring after n / 2 steps.
def bidirectional__wrong_half_the_way(a, b, *, mesh):
    def on_device(a, b):
        n, me, height = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def part(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height, axis=1) @ rows

        up = down = b
        c = part(me, b)
        for step in range(1, n // 2 + 1):
            up = send(up)
            c += part(me - step, up)
            if step < n - step:
                down = send(down, -1)
                c += part(me + step, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ---------------------------------------------------------------- sum_schedule

sum_schedule__right_formula = {f"step {t}": [(d + 1 + t) % 4 for d in range(4)] for t in range(4)}

# Thought: a device begins with its own block, as on the gather side, goes on by one, and in the end has its own again.
sum_schedule__wrong_own_first = {
    "step 0": [0, 1, 2, 3],
    "step 1": [1, 2, 3, 0],
    "step 2": [2, 3, 0, 1],
    "step 3": [0, 1, 2, 3],
}

# Thought: the schedule of the worked example, block (d - 1 - step), holds for both directions, since only the end matters.
sum_schedule__wrong_moving_up = {f"step {t}": [(d - 1 - t) % 4 for d in range(4)] for t in range(4)}

# Thought: the sum moves down by one and the block number goes up by one, so from step to step a device jumps by two.
sum_schedule__wrong_by_two = {
    "step 0": [1, 2, 3, 0],
    "step 1": [3, 0, 1, 2],
    "step 2": [1, 2, 3, 0],
    "step 3": [0, 1, 2, 3],
}

# Thought: went back from step 3 to step 2, and for step 1 moved the row the other way; step 0 is three places from the end.
sum_schedule__wrong_back_and_forth = {
    "step 0": [1, 2, 3, 0],
    "step 1": [0, 1, 2, 3],
    "step 2": [3, 0, 1, 2],
    "step 3": [0, 1, 2, 3],
}


# ---------------------------------------------------------------- schedule_table

schedule_table__right_rotated = {
    f"shift {shift}, step {t}": (lambda k: [0, 1, 2, 3][k:] + [0, 1, 2, 3][:k])(t if shift == "-1" else 4 - t)
    for shift in ("+1", "-1")
    for t in (1, 2, 3)
}

# Thought: moving up means that the number at a device goes up by one a step; down was written out with its pairs.
schedule_table__wrong_up_is_plus = {
    "shift +1, step 1": [1, 2, 3, 0],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [3, 0, 1, 2],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [3, 0, 1, 2],
}

# Thought: after the last of the three steps every block has been everywhere, so it is at home again.
schedule_table__wrong_home_after_three = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [0, 1, 2, 3],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [0, 1, 2, 3],
}

# Thought: the other direction is the mirror image: the rows of the upper half, read backwards.
schedule_table__wrong_mirrored = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [2, 1, 0, 3],
    "shift -1, step 2": [1, 0, 3, 2],
    "shift -1, step 3": [0, 3, 2, 1],
}

# Thought: up and down cannot have the same row at step 2, so moving down it must be the one that is left over, and step 3 the other.
schedule_table__wrong_never_equal = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [3, 0, 1, 2],
    "shift -1, step 3": [2, 3, 0, 1],
}
