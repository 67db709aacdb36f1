"""Answers to lesson 15, eleventh batch, written by a reader of the notebook only."""

import jax
import jax.numpy as jnp
import numpy as np
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


# ---------------------------------------------------------------- schedule_table
schedule_table__right_ROLL = {
    f"shift {by:+d}, step {step}": np.roll(range(4), by * step).tolist() for by in (1, -1) for step in (1, 2, 3)
}

# A ring is a ring: he gives blocks that move down the rows of blocks that move up.
schedule_table__wrong_DOWN_AS_UP = {
    f"shift {by:+d}, step {step}": [(d - step) % 4 for d in range(4)] for by in (1, -1) for step in (1, 2, 3)
}

# For the second direction she begins the table with the start, before any transfer, as the figure does.
schedule_table__wrong_START_IS_STEP_1 = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [1, 2, 3, 0],
    "shift -1, step 1": [0, 1, 2, 3],
    "shift -1, step 2": [1, 2, 3, 0],
    "shift -1, step 3": [2, 3, 0, 1],
}

# n - 1 transfers are the whole round, so after three of them every block is home again.
schedule_table__wrong_HOME_AFTER_3 = {
    "shift +1, step 1": [3, 0, 1, 2],
    "shift +1, step 2": [2, 3, 0, 1],
    "shift +1, step 3": [0, 1, 2, 3],
    "shift -1, step 1": [1, 2, 3, 0],
    "shift -1, step 2": [2, 3, 0, 1],
    "shift -1, step 3": [0, 1, 2, 3],
}

# The opposite direction is the mirror image: each row of "up" is read backwards.
schedule_table__wrong_MIRRORED = {
    f"shift {by:+d}, step {step}": [(d - step) % 4 for d in range(4)][::by] for by in (1, -1) for step in (1, 2, 3)
}


# ---------------------------------------------------------------- with_fori_loop
def with_fori_loop__right_DOWN(a, b, *, mesh):
    # B moves down the ring: after t transfers block d + t is at hand.
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            return c + term(step, b), send(b, -1)

        zero = varying(jnp.zeros((a.shape[0], b.shape[1]), a.dtype))
        c, last = jax.lax.fori_loop(0, n - 1, turn, (zero, b))
        return c + term(n - 1, last)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Takes the product at hand out in front of the loop; then each turn multiplies what has just arrived, and so waits for it.
def with_fori_loop__wrong_PRODUCT_WAITS(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            b = send(b)
            return c + term(step, b), b

        return jax.lax.fori_loop(1, n, turn, (term(0, b), b))[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Off by one behind the loop: the last block has step n, he thinks, and takes his own columns, (me - n) % n = me, for it.
def with_fori_loop__wrong_LAST_IS_STEP_N(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            return c + term(step, b), send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + term(n, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Takes the number of the block modulo 4, as `fitting` of part 4 does: right on the ring of four (and, as slices are clamped, of two).
def with_fori_loop__wrong_MODULO_4(a, b, *, mesh):
    def on_device(a, b):
        n, width = jax.lax.axis_size("x"), b.shape[0]

        def fitting(step):
            start = (jax.lax.axis_index("x") - step) % 4 * width
            return jax.lax.dynamic_slice_in_dim(a, start, width, axis=1)

        def turn(step, carry):
            c, b = carry
            return c + fitting(step) @ b, send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + fitting(n - 1) @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Wants transfers and products of neighbouring turns to overlap and lets the loop be unrolled: the transfers stand there n - 1 times.
def with_fori_loop__wrong_UNROLLED(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            return c + term(step, b), send(b)

        zeros = varying(jnp.zeros((a.shape[0], b.shape[1])))
        c, b = jax.lax.fori_loop(0, n - 1, turn, (zeros, b), unroll=True)
        return c + term(n - 1, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ---------------------------------------------------------------- mlp_block
MLP = dict(in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None))


def mlp_block__right_STACK(x, w1, w2, *, mesh):
    # The hidden blocks are a stack of plates: the one made last is taken first.
    def on_device(x, w1, w2):
        plates = [jax.nn.gelu(x @ w1)]
        while len(plates) < jax.lax.axis_size("x"):
            x = send(x)
            plates.append(jax.nn.gelu(x @ w1))
        y = plates.pop() @ w2
        while plates:
            y = send(y, -1) + plates.pop() @ w2
        return y

    return jax.shard_map(on_device, mesh=mesh, **MLP)(x, w1, w2)


# Goes through the hidden blocks in the order in which they were made: the sum begins with the own block.
def mlp_block__wrong_IN_ORDER(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(1, jax.lax.axis_size("x")):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden[0] @ w2
        for h in hidden[1:]:
            y = send(y, -1) + h @ w2
        return y

    return jax.shard_map(on_device, mesh=mesh, **MLP)(x, w1, w2)


# Backwards through the list, but the sums move up as X does: a sum meets another block's part (right on a ring of two only).
def mlp_block__wrong_SUMS_UP(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(1, jax.lax.axis_size("x")):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        *others, y = [h @ w2 for h in hidden]
        for part in reversed(others):
            y = send(y) + part
        return y

    return jax.shard_map(on_device, mesh=mesh, **MLP)(x, w1, w2)


# Lets the finished hidden block go round in place of X: what comes belongs to another device's columns of F.
def mlp_block__wrong_HIDDEN_TRAVELS(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(1, jax.lax.axis_size("x")):
            hidden.append(send(hidden[-1]))
        y = hidden[-1] @ w2
        for h in hidden[-2::-1]:
            y = send(y, -1) + h @ w2
        return y

    return jax.shard_map(on_device, mesh=mesh, **MLP)(x, w1, w2)


# Right values, but collects all blocks of X first and makes the hidden layer in one product, which no transfer can run beside.
def mlp_block__wrong_COLLECTED_FIRST(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n, height = jax.lax.axis_size("x"), x.shape[0]
        blocks = [x]
        for _ in range(n - 1):
            blocks.append(send(blocks[-1]))
        hidden = jax.nn.gelu(jnp.concatenate(blocks) @ w1)
        parts = [hidden[k * height : (k + 1) * height] for k in range(n)]
        y = parts[-1] @ w2
        for h in parts[-2::-1]:
            y = send(y, -1) + h @ w2
        return y

    return jax.shard_map(on_device, mesh=mesh, **MLP)(x, w1, w2)
