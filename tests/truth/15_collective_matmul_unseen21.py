"""Answers to lesson 15, twenty-first batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- with_fori_loop


def with_fori_loop__right_downwards(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def product(step, block):
            start = (me + step) % n * width
            return jax.lax.dynamic_slice_in_dim(a, start, width, axis=1) @ block

        def turn(step, carry):
            total, block = carry
            return total + product(step, block), send(block, -1)

        nothing = varying(jnp.zeros((a.shape[0], b.shape[1]), a.dtype))
        total, last = jax.lax.fori_loop(0, n - 1, turn, (nothing, b))
        return total + product(n - 1, last)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Wrote the turn as "send, then multiply what came", as in the unrolled ring: within a turn the product waits.
def with_fori_loop__wrong_send_first(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def product(step, block):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ block

        def turn(step, carry):
            c, b = carry
            b = send(b)
            return c + product(step, b), b

        return jax.lax.fori_loop(1, n, turn, (product(0, b), b))[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought that blocks which move up have a number that goes up: me + step (right on a ring of two).
def with_fori_loop__wrong_sign(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def product(step, block):
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ block

        def turn(step, carry):
            c, b = carry
            return c + product(step, b), send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + product(n - 1, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Numbered the product behind the loop n instead of n - 1, so it takes the columns of the device's own block again.
def with_fori_loop__wrong_last_number(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def product(step, block):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ block

        def turn(step, carry):
            c, b = carry
            return c + product(step, b), send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + product(n, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Mixed the two forms: first product before the loop and turns that multiply what is at hand; the last one is missing.
def with_fori_loop__wrong_first_twice(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def product(step, block):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ block

        def turn(step, carry):
            c, b = carry
            return c + product(step, b), send(b)

        c, _ = jax.lax.fori_loop(0, n - 1, turn, (product(0, b), b))
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ---------------------------------------------------------------- sum_schedule

sum_schedule__right_formula = {f"step {t}": [(d + 1 + t) % 4 for d in range(4)] for t in range(4)}

# Took over the worked example's (d - 1 - step), which is for sums that move up.
sum_schedule__wrong_upwards = {
    "step 0": [3, 0, 1, 2],
    "step 1": [2, 3, 0, 1],
    "step 2": [1, 2, 3, 0],
    "step 3": [0, 1, 2, 3],
}

# Began with the own block as on the gather side (d + step), and wrote the end that the text demands.
sum_schedule__wrong_own_first = {
    "step 0": [0, 1, 2, 3],
    "step 1": [1, 2, 3, 0],
    "step 2": [2, 3, 0, 1],
    "step 3": [0, 1, 2, 3],
}

# Counted step t as after its transfer, so every line comes one step early and the last one stands twice.
sum_schedule__wrong_one_early = {
    "step 0": [2, 3, 0, 1],
    "step 1": [3, 0, 1, 2],
    "step 2": [0, 1, 2, 3],
    "step 3": [0, 1, 2, 3],
}

# Began right, then thought that moving down lowers the block number on each device.
sum_schedule__wrong_numbers_go_down = {
    "step 0": [1, 2, 3, 0],
    "step 1": [0, 1, 2, 3],
    "step 2": [3, 0, 1, 2],
    "step 3": [2, 3, 0, 1],
}


# ---------------------------------------------------------------- rs_matmul_ring


def rs_matmul_ring__right_to_its_owner(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def part(block):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height, axis=0) @ b

        total = part(me)
        for distance in range(1, n):
            total = total + send(part(me + distance), distance)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Saved work by one large product whose rows are then handed round: every transfer waits for all of it.
def rs_matmul_ring__wrong_one_product(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        parts = (a @ b).reshape(n, -1, b.shape[1])
        c = parts[(me + 1) % n]
        for step in range(1, n):
            c = send(c, -1) + parts[(me + 1 + step) % n]
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Began with the own block and sent n times, all the way round, since the sum has to come home: one transfer too many.
def rs_matmul_ring__wrong_all_the_way_round(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * height, height, axis=0) @ b

        c = send(part(0), -1)
        for step in range(1, n):
            c = send(c + part(step), -1)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Took the block numbers of the ring that moves down, and send as it is, which moves up (right on a ring of two).
def rs_matmul_ring__wrong_direction(a, b, *, mesh):
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


# Kept the worked example's columns of b: the product is right, but a device ends with columns of C and not with rows.
def rs_matmul_ring__wrong_columns_of_c(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[1] // n

        def part(step):
            return a @ jax.lax.dynamic_slice_in_dim(b, (me + 1 + step) % n * width, width, axis=1)

        c = part(0)
        for step in range(1, n):
            c = send(c, -1) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)
