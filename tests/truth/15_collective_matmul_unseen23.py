"""Answers to lesson 15, twenty-third batch, written by a reader of the notebook only."""

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
    return jax.lax.pcast(value, "x", to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(value, "x")


# ------------------------------------------------------------ with_fori_loop


def with_fori_loop__right_DOWNWARDS(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):  # blocks move down: at hand is the one from `step` places above
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            return c + term(step, b), send(b, -1)

        zeros = varying(jnp.zeros((a.shape[0], b.shape[1]), jnp.result_type(a, b)))
        c, b = jax.lax.fori_loop(0, n - 1, turn, (zeros, b))
        return c + term(n - 1, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# The own product needs no transfer, so it stands before the loop; a turn then sends and multiplies what came.
def with_fori_loop__wrong_WAITS(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            b = send(b)
            return c + term(step, b), b

        return jax.lax.fori_loop(1, n, turn, (term(0, b), b))[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Blocks move up, so the number of the block at hand goes up as well (right in a ring of two).
def with_fori_loop__wrong_COUNTSUP(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            return c + term(step, b), send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + term(n - 1, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# n - 1 transfers are n - 1 turns, and each has its product: when the loop is over so is the sum (the last block is not multiplied).
def with_fori_loop__wrong_LASTBLOCK(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def turn(step, carry):
            c, b = carry
            columns = jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1)
            return c + columns @ b, send(b)

        return jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# The sum begins with the own product before the loop, and the loop, from 0, adds it again and leaves the last one to the end.
def with_fori_loop__wrong_OWNTWICE(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            return c + term(step, b), send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (term(0, b), b))
        return c + term(n - 1, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ------------------------------------------------------------ schedule_table

schedule_table__right_FORMULA = {
    f"shift {by:+d}, step {t}": [(d - by * t) % 4 for d in range(4)] for by in (1, -1) for t in (1, 2, 3)
}

# Blocks move up by one, so one is added to every number.
schedule_table__wrong_ADDSONE = {
    "shift +1, step 1": [1, 2, 3, 0],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [3, 0, 1, 2],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [3, 0, 1, 2],
}

# Downwards: step 1 is where one starts (before any transfer).
schedule_table__wrong_FROMZERO = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [0, 1, 2, 3],
    "shift -1, step 2": [1, 2, 3, 0],
    "shift -1, step 3": [2, 3, 0, 1],
}

# After the last step of a ring every block is at home again.
schedule_table__wrong_HOMEAGAIN = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [0, 1, 2, 3],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [0, 1, 2, 3],
}

# Two steps each way lead to the opposite device, which is the same as exchanging neighbours in pairs (3 for 0, and 2 for 1).
schedule_table__wrong_MIRRORED = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [3, 2, 1, 0],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [3, 2, 1, 0],
    "shift -1, step 3": [3, 0, 1, 2],
}

# ------------------------------------------------------------ rs_matmul_ring


def rs_matmul_ring__right_STRAIGHT(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def part(block):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height, axis=0) @ b

        came = [send(part(me + away), away) for away in range(1, n)]  # each part straight to its owner
        return sum(came, part(me))

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# The index of the hint, (me + 1 + step), with `send` as it stands, which moves sums up (right in a ring of two).
def rs_matmul_ring__wrong_MIXED(a, b, *, mesh):
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


# All parts are rows of a @ b, so multiply once and send the blocks of that round.
def rs_matmul_ring__wrong_ONEPRODUCT(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n
        parts = a @ b

        def part(step):
            return jax.lax.dynamic_slice_in_dim(parts, (me - 1 - step) % n * height, height, axis=0)

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Everybody begins with its own block, adds and sends on; after a whole round of n transfers the sum is home again.
def rs_matmul_ring__wrong_WHOLEROUND(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n
        c = 0
        for step in range(n):
            rows = jax.lax.dynamic_slice_in_dim(a, (me - step) % n * height, height, axis=0)
            c = send(c + rows @ b)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# The worked example with rows; the block numbers are mod 4, as on the mesh of the notebook.
def rs_matmul_ring__wrong_MODFOUR(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), a.shape[0] // n

        def part(step):
            block = (me - 1 - step) % 4
            return jax.lax.dynamic_slice_in_dim(a, block * height, height, axis=0) @ b

        c = part(0)
        for step in range(1, n):
            c = send(c) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)
