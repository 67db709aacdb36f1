"""Answers to lesson 15, eighth batch, written by a reader of the notebook only."""

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


def bidirectional__right_columns_as_an_array(a, b, *, mesh):
    def on_device(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2
        columns = a.reshape(a.shape[0], n, 2, half)  # [row, block, which half, place in it]
        moving = {+1: b[:half], -1: b[half:]}
        c = 0
        for step in range(n):
            for which, by in enumerate((+1, -1)):
                fitting = jax.lax.dynamic_index_in_dim(
                    columns[:, :, which], (me - by * step) % n, axis=1, keepdims=False
                )
                c = c + fitting @ moving[by]
            if step + 1 < n:
                moving = {by: send(rows, by) for by, rows in moving.items()}
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# This student took "block (me - step) % n" for both halves, and tried it on two devices, where up and down are the same.
def bidirectional__wrong_one_index_for_both(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half = width // 2
        up, down = b[:half], b[half:]

        def products(step, up, down):
            start = (me - step) % n * width
            return (
                jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ up
                + jax.lax.dynamic_slice_in_dim(a, start + half, half, axis=1) @ down
            )

        c = products(0, up, down)
        for step in range(1, n):
            up, down = send(up, 1), send(down, -1)
            c = c + products(step, up, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that both ways round means: whole blocks, each by the shorter way, so that it takes half as many steps.
def bidirectional__wrong_shorter_way(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def product(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width, width, axis=1) @ rows

        c = product(me, b)
        up = down = b
        for step in range(1, n // 2 + 1):
            up = send(up, 1)
            c += product(me - step, up)
            if step <= (n - 1) // 2:
                down = send(down, -1)
                c += product(me + step, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that two rings are a faster all_gather: he puts all halves into their places, and multiplies when B is there.
def bidirectional__wrong_gathers_then_multiplies(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half = width // 2
        whole = varying(jnp.zeros((n * width, b.shape[1]), b.dtype))
        up, down = b[:half], b[half:]
        for step in range(n):
            whole = jax.lax.dynamic_update_slice_in_dim(whole, up, (me - step) % n * width, axis=0)
            whole = jax.lax.dynamic_update_slice_in_dim(whole, down, (me + step) % n * width + half, axis=0)
            if step < n - 1:
                up, down = send(up), send(down, by=-1)
        return a @ whole

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student took the length of what travels, now a half, for the length of a block also where it says where a block begins.
def bidirectional__wrong_begins_at_halves(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        up, down = jnp.split(b, 2)
        width = up.shape[0]

        def half_product(block, second, rows):
            start = block % n * width
            if second:
                start = start + width
            return jax.lax.dynamic_slice_in_dim(a, start, width, axis=1) @ rows

        c = half_product(me, False, up) + half_product(me, True, down)
        for step in range(1, n):
            up, down = send(up, 1), send(down, -1)
            c = c + half_product(me - step, False, up) + half_product(me + step, True, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ---- sum_schedule

sum_schedule__right_from_the_end = {f"step {t}": [(d + (3 - t) * -1) % 4 for d in range(4)] for t in range(4)}

# This student let each device begin with its own block, and thought that a sum is home when it has gone all the way round.
sum_schedule__wrong_begins_at_home = {
    "step 0": [0, 1, 2, 3],
    "step 1": [1, 2, 3, 0],
    "step 2": [2, 3, 0, 1],
    "step 3": [3, 0, 1, 2],
}

# This student wrote down on which device the sums for blocks 0, 1, 2, 3 are (followed a colour, not a row).
sum_schedule__wrong_where_the_sums_are = {
    "step 0": [3, 0, 1, 2],
    "step 1": [2, 3, 0, 1],
    "step 2": [1, 2, 3, 0],
    "step 3": [0, 1, 2, 3],
}

# This student started at the end, as the hint says, and then wrote the steps down in the order in which he found them.
sum_schedule__wrong_backwards = {
    "step 0": [0, 1, 2, 3],
    "step 1": [3, 0, 1, 2],
    "step 2": [2, 3, 0, 1],
    "step 3": [1, 2, 3, 0],
}

# This student began rightly with the block of the device above, and then thought that numbers go down when sums move down.
sum_schedule__wrong_numbers_go_down = {f"step {t}": [(d + 1 - t) % 4 for d in range(4)] for t in range(4)}


# ---- mlp_block


def mlp_block__right_mirrored(x, w1, w2, *, mesh):
    """X goes down, the sums go up: the mirror image works as well."""

    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        made = [jax.nn.gelu(x @ w1)]
        while len(made) < n:
            x = send(x, -1)
            made.append(jax.nn.gelu(x @ w1))
        y = made.pop() @ w2
        while made:
            y = send(y, +1) + made.pop() @ w2
        return y

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


# This student thought "first made, first used", and goes through the list in the order in which it was filled.
def mlp_block__wrong_first_made_first_used(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            if step < n - 1:
                x = send(x)
        y = hidden[0] @ w2
        for step in range(1, n):
            y = send(y, by=-1) + hidden[step] @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student let the sums follow the X blocks up the ring, where the list fits as it is, and did not ask where a sum ends: one place below.
def mlp_block__wrong_sums_follow_x(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        y = None
        hidden = []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            x = send(x) if step < n - 1 else x
        for h in hidden:
            part = h @ w2
            y = part if y is None else send(y) + part
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student also let the sums follow X, saw that they end one place off, and sends them home with one transfer more.
def mlp_block__wrong_one_transfer_home(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden[0] @ w2
        for h in hidden[1:]:
            y = send(y) + h @ w2
        return send(y)  # home

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student thought that small products run badly: he puts the hidden blocks together for one large second product, and cuts the parts from it.
def mlp_block__wrong_one_second_product(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n, rows = jax.lax.axis_size("x"), x.shape[0]
        hidden = []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            if step < n - 1:
                x = send(x)
        parts = jnp.split(jnp.concatenate(hidden) @ w2, n)
        y = parts[-1]
        for part in parts[-2::-1]:
            y = send(y, -1) + part
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)
