"""Answers to lesson 15, second batch, written by a reader of the notebook only."""

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


# drew what needs what
does_it_overlap__right_arrows = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# reads the lines as an order: first sent, then multiplied, so nothing overlaps
does_it_overlap__wrong_order_of_lines = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "none",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# takes the loop for what is written out
does_it_overlap__wrong_loop = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "all",
    "first_one_then_the_rest": "some",
}

# thinks that the first product hides all transfers behind it
does_it_overlap__wrong_one_for_all = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "all",
}

# thinks that a ring always overlaps a little
does_it_overlap__wrong_ring_some = {
    "gather_first": "none",
    "ring_then_multiply": "some",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}


def with_fori_loop__right_one_carry(a, b, *, mesh):
    """Carries a dict; the block's start is computed by a small function."""

    def on_device(a, b):
        n, me, width = mesh.shape["x"], jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b

        def turn(step, now):
            return {"c": now["c"] + term(step, now["b"]), "b": send(now["b"])}

        start = {"c": varying(jnp.zeros((a.shape[0], b.shape[1]), a.dtype)), "b": b}
        last = jax.lax.fori_loop(0, n - 1, turn, start)
        return last["c"] + term(n - 1, last["b"])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


def with_fori_loop__wrong_n_turns(a, b, *, mesh):
    """n turns, each with a transfer: the last one sends what nobody needs."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def turn(step, carry):
            c, b = carry
            columns = jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1)
            return c + columns @ b, send(b)

        return jax.lax.fori_loop(0, n, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def with_fori_loop__wrong_sends_first(a, b, *, mesh):
    """Sends, then multiplies what has come: in a turn the product waits for the transfer."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def turn(step, carry):
            c, b = carry
            b = send(b)
            columns = jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1)
            return c + columns @ b, b

        first = jax.lax.dynamic_slice_in_dim(a, me * width, width, axis=1) @ b
        return jax.lax.fori_loop(1, n, turn, (first, b))[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def with_fori_loop__wrong_plus_step(a, b, *, mesh):
    """Block me + step: the ring turns the other way in the head than on the wire."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def term(step, b):
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ b

        def turn(step, carry):
            c, b = carry
            return c + term(step, b), send(b)

        c, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + term(n - 1, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def with_fori_loop__wrong_last_block(a, b, *, mesh):
    """The block that comes last is not multiplied."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def turn(step, carry):
            c, b = carry
            columns = jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1)
            return c + columns @ b, send(b)

        return jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def bidirectional__right_two_rings(a, b, *, mesh):
    """Two rings in one loop, the halves by jnp.split."""

    def on_device(a, b):
        n, me, width = mesh.shape["x"], jax.lax.axis_index("x"), b.shape[0]
        upper, lower = jnp.split(b, 2)

        def half(block, begins, rows):
            start = block % n * width + begins
            return jax.lax.dynamic_slice_in_dim(a, start, width // 2, axis=1) @ rows

        c = half(me, 0, upper) + half(me, width // 2, lower)
        for step in range(1, n):
            upper, lower = send(upper), send(lower, -1)
            c = c + half(me - step, 0, upper) + half(me + step, width // 2, lower)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def bidirectional__wrong_same_block(a, b, *, mesh):
    """Takes both halves for halves of the same block, me - step."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        up, down = b[: width // 2], b[width // 2 :]

        def product(block, second, rows):
            start = block % n * width + (width // 2 if second else 0)
            return jax.lax.dynamic_slice_in_dim(a, start, width // 2, axis=1) @ rows

        c = product(me, False, up) + product(me, True, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c += product(me - step, False, up) + product(me - step, True, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def bidirectional__wrong_no_offset(a, b, *, mesh):
    """The second halves meet the columns of the first ones."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        up, down = b[: width // 2], b[width // 2 :]

        def product(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width, width // 2, axis=1) @ rows

        c = product(me, up) + product(me, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c += product(me - step, up) + product(me + step, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def bidirectional__wrong_both_up(a, b, *, mesh):
    """Right values, but both halves go up: the links down carry nothing."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        first, second = b[: width // 2], b[width // 2 :]

        def product(block, offset, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width + offset, width // 2, axis=1) @ rows

        c = product(me, 0, first) + product(me, width // 2, second)
        for step in range(1, n):
            first, second = send(first), send(second)
            c += product(me - step, 0, first) + product(me - step, width // 2, second)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def bidirectional__wrong_whole_blocks(a, b, *, mesh):
    """Whole blocks go both ways, and of each only its half is used: twice the bytes."""

    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half, up, down = width // 2, b, b

        def product(block, offset, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width + offset, half, axis=1) @ rows

        c = product(me, 0, up[:half]) + product(me, half, down[half:])
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c += product(me - step, 0, up[:half]) + product(me + step, half, down[half:])
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def mlp_block__right_pops(x, w1, w2, *, mesh):
    """The hidden blocks are popped off the end of the list."""

    def on_device(x, w1, w2):
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(mesh.shape["x"] - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden.pop() @ w2
        while hidden:
            y = send(y, by=-1) + hidden.pop() @ w2
        return y

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


def mlp_block__wrong_forwards(x, w1, w2, *, mesh):
    """Goes through the list in the order in which it was made: the sums end on the wrong devices."""

    def on_device(x, w1, w2):
        n, hidden = jax.lax.axis_size("x"), []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            if step < n - 1:
                x = send(x)
        y = hidden[0] @ w2
        for h in hidden[1:]:
            y = send(y, -1) + h @ w2
        return y

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


def mlp_block__wrong_sums_up(x, w1, w2, *, mesh):
    """Backwards through the list, but the sums go up as X does."""

    def on_device(x, w1, w2):
        n, hidden = jax.lax.axis_size("x"), []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            if step < n - 1:
                x = send(x)
        y = hidden[-1] @ w2
        for h in hidden[-2::-1]:
            y = send(y) + h @ w2
        return y

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


def mlp_block__wrong_gelu_at_the_end(x, w1, w2, *, mesh):
    """gelu of the finished result in place of the hidden blocks."""

    def on_device(x, w1, w2):
        n, hidden = jax.lax.axis_size("x"), []
        for step in range(n):
            hidden.append(x @ w1)
            if step < n - 1:
                x = send(x)
        y = hidden[-1] @ w2
        for h in hidden[-2::-1]:
            y = send(y, -1) + h @ w2
        return jax.nn.gelu(y)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


def mlp_block__wrong_x_all_round(x, w1, w2, *, mesh):
    """Sends X n times, and the sums n times: right values, and one transfer too many each."""

    def on_device(x, w1, w2):
        n, hidden = jax.lax.axis_size("x"), []
        for _ in range(n):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = jnp.zeros_like(x)
        for h in hidden[::-1]:
            y = send(y + h @ w2, -1)
        return y

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)
