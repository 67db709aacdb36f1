"""Answers to lesson 15, twenty-second batch, written by a reader of the notebook only."""

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


# ------------------------------------------------------------ ag_matmul_ring


def ag_matmul_ring__right_down(a, b, *, mesh):
    """A[I_X, J] · B[J_X, K] → C[I_X, K]; B goes round the ring (down)."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        columns = a.reshape(a.shape[0], n, b.shape[0])
        terms = []
        for step in range(n):
            at_hand = jax.lax.dynamic_index_in_dim(columns, (me + step) % n, axis=1, keepdims=False)
            terms.append(at_hand @ b)
            if step + 1 < n:
                b = send(b, by=-1)
        return sum(terms[1:], terms[0])

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student sends blocks up and thinks that the block of the device above comes then (in a ring of two it is the same).
def ag_matmul_ring__wrong_from_above(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        c = jax.lax.dynamic_slice_in_dim(a, me * width, width, axis=1) @ b
        for step in range(1, n):
            b = send(b)
            block = (me + step) % n
            c = c + jax.lax.dynamic_slice_in_dim(a, block * width, width, axis=1) @ b
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student sends before each of the n products, so a block goes all the way round until it is at home: n transfers.
def ag_matmul_ring__wrong_all_round(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        c = 0
        for step in range(1, n + 1):
            b = send(b)
            start = ((me - step) % n) * width
            c += jax.lax.dynamic_slice_in_dim(a, start, width, axis=1) @ b
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# This student takes the gather apart into a ring, and multiplies once, when all blocks are in their places.
def ag_matmul_ring__wrong_multiply_at_the_end(a, b, *, mesh):
    def on_device(a, b):
        n, me, height = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        whole = varying(jnp.zeros((n * height, b.shape[1]), b.dtype))
        whole = jax.lax.dynamic_update_slice_in_dim(whole, b, me * height, axis=0)
        for step in range(1, n):
            b = send(b)
            whole = jax.lax.dynamic_update_slice_in_dim(whole, b, (me - step) % n * height, axis=0)
        return a @ whole

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# This student slices from column number `block`, and forgets that a block is several columns wide.
def ag_matmul_ring__wrong_start(a, b, *, mesh):
    def on_device(a, b):
        n = jax.lax.axis_size("x")
        me = jax.lax.axis_index("x")

        def fits(step):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n, b.shape[0], axis=1)

        total = fits(0) @ b
        for step in range(1, n):
            b = send(b)
            total += fits(step) @ b
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# ----------------------------------------------------------------- ring_time


def ring_time__right_rest_shows(n, product, transfer):
    """The products always take their time; of a transfer shows what is longer than the product beside it."""
    work, wires = n * product, (n - 1) * transfer
    return {"apart": work + wires, "overlapped": work + (n - 1) * max(0, transfer - product)}


# This student thinks that each of the n steps has both, a product and a transfer, and takes the longer one.
def ring_time__wrong_n_steps(n, product, transfer):
    return {"apart": n * product + (n - 1) * transfer, "overlapped": n * max(product, transfer)}


# This student thinks that wires and multipliers work independently, and that the ring takes as long as the busier of the two.
def ring_time__wrong_busier(n, product, transfer):
    products = n * product
    transfers = (n - 1) * transfer
    return {"apart": products + transfers, "overlapped": max(products, transfers)}


# This student counts as many transfers as products where they come apart.
def ring_time__wrong_n_transfers(n, product, transfer):
    return {"apart": n * (product + transfer), "overlapped": (n - 1) * max(product, transfer) + product}


# This student thinks that the first block must arrive before anything can be multiplied, and that nothing is left over at the end.
def ring_time__wrong_transfer_alone(n, product, transfer):
    both = max(product, transfer)
    return {"apart": n * product + (n - 1) * transfer, "overlapped": transfer + (n - 1) * both}


# ----------------------------------------------------------------- mlp_block


def mlp_block__right_down_then_up(x, w1, w2, *, mesh):
    """X goes down the ring, the sums of Y go up."""

    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = [jax.nn.gelu(x @ w1)]  # blocks d, d + 1, ..., d + n - 1
        for _ in range(n - 1):
            x = send(x, by=-1)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden.pop() @ w2  # block d - 1, which has farthest to go
        while hidden:
            y = send(y) + hidden.pop() @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student lets X and the sums both move up and uses the hidden blocks in the order in which they were made: sums are complete one device off.
def mlp_block__wrong_one_off(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = []
        for step in range(n):
            hidden.append(jax.nn.gelu(x @ w1))
            if step < n - 1:
                x = send(x)
        y = hidden[0] @ w2
        for h in hidden[1:]:
            y = send(y) + h @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student thinks that gelu needs something that is summed first, and applies it to the finished sums of Y.
def mlp_block__wrong_gelu_late(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = [x @ w1]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(x @ w1)
        hidden = hidden[::-1]
        y = hidden[0] @ w2
        for h in hidden[1:]:
            y = send(y, -1) + h @ w2
        return jax.nn.gelu(y)

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student makes one array of the hidden blocks, multiplies it by W2 at once, and lets the parts of that product go round.
def mlp_block__wrong_one_product(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        parts = jnp.split(jnp.concatenate(hidden) @ w2, n)
        y = parts[n - 1]
        for step in range(1, n):
            y = send(y, -1) + parts[n - 1 - step]
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)


# This student sends X before every product, its last turn brings it home again, so that the order fits without going backwards: n transfers of X.
def mlp_block__wrong_home_again(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = []
        for _ in range(n):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))  # blocks d - 1, d - 2, ..., d
        y = hidden[0] @ w2
        for h in hidden[1:]:
            y = send(y) + h @ w2
        return y

    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(P("x", None), P(None, "x"), P("x", None)), out_specs=P("x", None)
    )(x, w1, w2)
