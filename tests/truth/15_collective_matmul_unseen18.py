"""Answers to lesson 15, eighteenth batch, written by a reader of the notebook only."""

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


# ---------------------------------------------------------------- ring_time
def ring_time__right_played_through(n, product, transfer):
    """The time of n products and n - 1 transfers, one after the other and side by side."""
    arrived, done = 0, product  # the block at hand needs no transfer
    for _ in range(n - 1):
        arrived += transfer
        done = max(done, arrived) + product
    return {"apart": sum([product] * n) + sum([transfer] * (n - 1)), "overlapped": done}


# This student thought that each of the n steps takes as long as the longer of the two, the last one as well.
def ring_time__wrong_last_step_too(n, product, transfer):
    def step(sends):
        return max(product, transfer) if sends else product

    return {"apart": n * product + (n - 1) * transfer, "overlapped": sum(step(k < n) for k in range(n))}


# This student thought wires and multipliers are busy independently, and the longer of the two totals decides.
def ring_time__wrong_longer_total(n, product, transfer):
    products, transfers = n * product, (n - 1) * transfer
    return {"apart": products + transfers, "overlapped": max(products, transfers)}


# This student counted one transfer for each product where they come one after the other, with n of both.
def ring_time__wrong_n_of_both(n, product, transfer):
    with_both = max(product, transfer) * (n - 1)
    return {"apart": n * (product + transfer), "overlapped": with_both + product}


# This student thought that what is left over at the end is the shorter of the two, as the longer one has been counted.
def ring_time__wrong_shorter_left(n, product, transfer):
    longer, shorter = max(product, transfer), min(product, transfer)
    return {"apart": n * product + (n - 1) * transfer, "overlapped": (n - 1) * longer + shorter}


# ---------------------------------------------------------------- with_fori_loop
def with_fori_loop__right_down(a, b, *, mesh):
    """A[I_X, J] · B[J_X, K] → C[I_X, K]; the ring in a loop, blocks move down."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, length = jax.lax.axis_index("x"), b.shape[0]

        def term(step, block):
            start = (me + step) % n * length
            return jax.lax.dynamic_slice_in_dim(a, start, length, axis=1) @ block

        def turn(step, carry):
            total, block = carry
            return total + term(step, block), send(block, -1)

        nothing = varying(jnp.zeros((a.shape[0], b.shape[1]), jnp.result_type(a, b)))
        total, block = jax.lax.fori_loop(0, n - 1, turn, (nothing, b))
        return total + term(n - 1, block)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that blocks which move up come from above: block me + step. (On a ring of two it is the same.)
def with_fori_loop__wrong_came_from_above(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, length = jax.lax.axis_index("x"), b.shape[0]

        def term(step, block):
            start = (me + step) % n * length
            return jax.lax.dynamic_slice_in_dim(a, start, length, axis=1) @ block

        def turn(step, carry):
            total, block = carry
            return total + term(step, block), send(block)

        nothing = varying(jnp.zeros((a.shape[0], b.shape[1]), jnp.result_type(a, b)))
        total, block = jax.lax.fori_loop(0, n - 1, turn, (nothing, b))
        return total + term(n - 1, block)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student thought that after the loop the ring is closed, and the block that comes last is the device's own again.
def with_fori_loop__wrong_ring_closed(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, length = jax.lax.axis_index("x"), b.shape[0]

        def columns(number):
            return jax.lax.dynamic_slice_in_dim(a, number * length, length, axis=1)

        def turn(step, carry):
            total, block = carry
            return total + columns((me - step) % n) @ block, send(block)

        nothing = varying(jnp.zeros((a.shape[0], b.shape[1]), jnp.result_type(a, b)))
        total, block = jax.lax.fori_loop(0, n - 1, turn, (nothing, b))
        return total + columns(me) @ block

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student wanted the next block to be there in time: one transfer before the loop, which then carries two blocks.
def with_fori_loop__wrong_one_sent_ahead(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, length = jax.lax.axis_index("x"), b.shape[0]

        def term(step, block):
            start = (me - step) % n * length
            return jax.lax.dynamic_slice_in_dim(a, start, length, axis=1) @ block

        def turn(step, carry):
            total, here, coming = carry
            return total + term(step, here), coming, send(coming)

        nothing = varying(jnp.zeros((a.shape[0], b.shape[1]), jnp.result_type(a, b)))
        total, here, coming = jax.lax.fori_loop(0, n - 2, turn, (nothing, b, send(b)))
        return total + term(n - 2, here) + term(n - 1, coming)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student took the product that needs no transfer in front of the loop, and in a turn sends first, then multiplies what came.
def with_fori_loop__wrong_send_then_multiply(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me, length = jax.lax.axis_index("x"), b.shape[0]

        def term(step, block):
            start = (me - step) % n * length
            return jax.lax.dynamic_slice_in_dim(a, start, length, axis=1) @ block

        def turn(step, carry):
            total, block = carry
            block = send(block)
            return total + term(step, block), block

        return jax.lax.fori_loop(1, n, turn, (term(0, b), b))[0]

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ---------------------------------------------------------------- mlp_block
def mlp_block__right_mirrored(x, w1, w2, *, mesh):
    """gelu(X[I_X, D] · W1[D, F_X]) · W2[F_X, D] → Y[I_X, D]; X goes down, the sums go up."""
    n = mesh.shape["x"]

    def hidden_blocks(x, w1):
        """Of device d: blocks d, d + 1, …, d - 1, as they are made."""
        made = [jax.nn.gelu(x @ w1)]
        for _ in range(n - 1):
            x = send(x, -1)
            made.append(jax.nn.gelu(x @ w1))
        return made

    def on_device(x, w1, w2):
        made = hidden_blocks(x, w1)
        y = made.pop() @ w2  # for block d - 1
        while made:
            y = send(y) + made.pop() @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student goes through the hidden blocks in the order in which they were made, so that each sum begins at home.
def mlp_block__wrong_first_made_first(x, w1, w2, *, mesh):
    n = mesh.shape["x"]

    def on_device(x, w1, w2):
        hidden = []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            if step < n - 1:
                x = send(x)
        y = hidden[0] @ w2
        for h in hidden[1:]:
            y = send(y, -1) + h @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student sends both up, and reads the list backwards as for sums that move down. (On a ring of two there is no difference.)
def mlp_block__wrong_both_up(x, w1, w2, *, mesh):
    n = mesh.shape["x"]

    def on_device(x, w1, w2):
        hidden = []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            if step < n - 1:
                x = send(x)
        last, *others = reversed(hidden)
        y = last @ w2
        for h in others:
            y = send(y) + h @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student thought that gelu has to wait until all sums are finished, as W1 is cut, and applies it to what comes home.
def mlp_block__wrong_gelu_at_the_end(x, w1, w2, *, mesh):
    n = mesh.shape["x"]

    def on_device(x, w1, w2):
        hidden = [x @ w1]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(x @ w1)
        y = hidden[-1] @ w2
        for h in hidden[-2::-1]:
            y = send(y, -1) + h @ w2
        return jax.nn.gelu(y)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student puts the hidden blocks together and makes all parts of Y in one product, from which the second ring only picks.
def mlp_block__wrong_one_product(x, w1, w2, *, mesh):
    n = mesh.shape["x"]

    def on_device(x, w1, w2):
        rows, hidden = x.shape[0], []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            if step < n - 1:
                x = send(x)
        parts = jnp.concatenate(hidden[::-1]) @ w2  # blocks d + 1, d + 2, …, d
        y = parts[:rows]
        for step in range(1, n):
            y = send(y, -1) + parts[step * rows : (step + 1) * rows]
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)
