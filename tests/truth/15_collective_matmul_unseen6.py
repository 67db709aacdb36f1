"""Answers to lesson 15, sixth batch, written by a reader of the notebook only."""

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


# ------------------------------------------------------------ with_fori_loop


# Right: B moves down, so that the number of the block at hand counts up.
def with_fori_loop__right_downwards(a, b, *, mesh):
    def on_device(a, b):
        n, width = jax.lax.axis_size("x"), b.shape[0]

        def product(step, b):
            block = (jax.lax.axis_index("x") + step) % n
            return jax.lax.dynamic_slice_in_dim(a, block * width, width, axis=1) @ b

        def turn(step, carry):
            b, c = carry
            return send(b, by=-1), c + product(step, b)

        nothing = varying(jnp.zeros((a.shape[0], b.shape[1]), jnp.result_type(a, b)))
        b, c = jax.lax.fori_loop(0, n - 1, turn, (b, nothing))
        return c + product(n - 1, b)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student lets the loop make all n products, and so n transfers, the last for nobody.
def with_fori_loop__wrong_n_turns(a, b, *, mesh):
    def body(a, b):
        n, me, k = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def turn(step, carry):
            c, b = carry
            columns = jax.lax.dynamic_slice_in_dim(a, (me - step) % n * k, k, axis=1)
            return c + columns @ b, send(b)

        zeros = varying(jnp.zeros((a.shape[0], b.shape[1])))
        return jax.lax.fori_loop(0, n, turn, (zeros, b))[0]

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(a, b)


# This student thinks: blocks move up, so I get those above me, me + step.
def with_fori_loop__wrong_comes_from_above(a, b, *, mesh):
    def body(a, b):
        n = jax.lax.axis_size("x")
        me = jax.lax.axis_index("x")
        width = a.shape[1] // n

        def term(step, b):
            start = (me + step) % n * width
            return jax.lax.dynamic_slice_in_dim(a, start, width, axis=1) @ b

        def turn(step, carry):
            total, b = carry
            return total + term(step, b), send(b)

        total, b = jax.lax.fori_loop(0, n - 1, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return total + term(n - 1, b)

    return jax.shard_map(body, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None))(a, b)


# This student takes the first product out in front of the loop, and in each turn sends first and multiplies what has come.
def with_fori_loop__wrong_waits_in_turn(a, b, *, mesh):
    def body(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def fitting(step):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1)

        def turn(step, carry):
            c, b = carry
            b = send(b)
            return c + fitting(step) @ b, b

        c, _ = jax.lax.fori_loop(1, n, turn, (fitting(0) @ b, b))
        return c

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None),) * 2, out_specs=P("x", None))(a, b)


# This student has a mesh of four in mind: three turns, and block numbers modulo 4.
def with_fori_loop__wrong_of_four(a, b, *, mesh):
    def on_device(a, b):
        me, height = jax.lax.axis_index("x"), b.shape[0]

        def turn(step, carry):
            c, b = carry
            mine = jax.lax.dynamic_slice_in_dim(a, ((me - step) % 4) * height, height, axis=1)
            return c + mine @ b, send(b)

        c, b = jax.lax.fori_loop(0, 3, turn, (varying(jnp.zeros((a.shape[0], b.shape[1]))), b))
        return c + jax.lax.dynamic_slice_in_dim(a, ((me - 3) % 4) * height, height, axis=1) @ b

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ----------------------------------------------------------------- mlp_block


# Right: the hidden blocks are a stack, the one made last is used first.
def mlp_block__right_stack(x, w1, w2, *, mesh):
    n = mesh.shape["x"]

    def on_device(x, w1, w2):
        stack = [jax.nn.gelu(x @ w1)]
        while len(stack) < n:
            x = send(x)
            stack.append(jax.nn.gelu(x @ w1))
        y = stack.pop() @ w2
        while stack:
            y = send(y, -1) + stack.pop() @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student goes through the hidden blocks in the order in which they were made: every sum gets parts of different rows.
def mlp_block__wrong_in_order(x, w1, w2, *, mesh):
    def body(x, w1, w2):
        n, hidden = jax.lax.axis_size("x"), []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            if step < n - 1:
                x = send(x)
        y = hidden[0] @ w2
        for h in hidden[1:]:
            y = send(y, -1) + h @ w2
        return y

    specs = P("x", None), P(None, "x"), P("x", None)
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x", None))(x, w1, w2)


# This student sends the sums up as well, "the ring goes round in one direction", and keeps the backwards order.
def mlp_block__wrong_both_up(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        blocks = [x]
        for _ in range(n - 1):
            blocks.append(send(blocks[-1]))
        hidden = [jax.nn.gelu(block @ w1) for block in blocks]
        y = hidden[-1] @ w2
        for h in hidden[-2::-1]:
            y = send(y) + h @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student waits with the gelu until sums are finished, and applies it to Y instead of to the hidden blocks.
def mlp_block__wrong_gelu_of_y(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = mesh.shape["x"]
        hidden = []
        for step in range(n):
            hidden.append(x @ w1)
            x = send(x) if step + 1 < n else x
        total = None
        for h in reversed(hidden):
            part = h @ w2
            total = part if total is None else send(total, by=-1) + part
        return jax.nn.gelu(total)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student makes one array of all hidden blocks and one product with W2, and sends its pieces: right, but nothing runs beside the sums.
def mlp_block__wrong_one_product(x, w1, w2, *, mesh):
    def body(x, w1, w2):
        n, rows = jax.lax.axis_size("x"), x.shape[0]
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(1, n):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        parts = jnp.concatenate(hidden[::-1]) @ w2
        y = parts[:rows]
        for k in range(1, n):
            y = send(y, -1) + parts[k * rows : (k + 1) * rows]
        return y

    return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None))(
        x, w1, w2
    )


# ----------------------------------------------------------- does_it_overlap

does_it_overlap__right_arrows = dict(
    gather_first="none",
    ring_then_multiply="none",
    multiply_and_send="all",
    send_and_multiply="all",
    send_and_multiply_in_a_loop="none",
    first_one_then_the_rest="some",
)

# This student reads the lines as an order: what is sent before it is multiplied has to have arrived.
does_it_overlap__wrong_line_order = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "none",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# This student thinks that a loop is the same program as its turns written out.
does_it_overlap__wrong_loop_as_written_out = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "all",
    "first_one_then_the_rest": "some",
}

# This student lets one product, which waits for no transfer, count for all three of them.
does_it_overlap__wrong_counts_for_three = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "all",
}

# This student asks which *products* have a transfer beside them: one of the four has none, and of the loop the first has one.
does_it_overlap__wrong_counts_products = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "some",
    "send_and_multiply": "some",
    "send_and_multiply_in_a_loop": "some",
    "first_one_then_the_rest": "some",
}
