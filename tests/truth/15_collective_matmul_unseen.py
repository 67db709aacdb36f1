"""Answers to lesson 15, written by a reader of the notebook only."""

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


schedule_table__right_formula = {
    f"shift {sign}, step {t}": [(d - t if sign == "+1" else d + t) % 4 for d in range(4)]
    for sign in ("+1", "-1")
    for t in (1, 2, 3)
}
# the two directions swapped
schedule_table__wrong_swapped = {
    f"shift {sign}, step {t}": [(d + t if sign == "+1" else d - t) % 4 for d in range(4)]
    for sign in ("+1", "-1")
    for t in (1, 2, 3)
}
# counted one step too early
schedule_table__wrong_early = {
    f"shift {sign}, step {t}": [(d - t + 1 if sign == "+1" else d + t - 1) % 4 for d in range(4)]
    for sign in ("+1", "-1")
    for t in (1, 2, 3)
}
# one transfer for all steps
schedule_table__wrong_one_step = {
    f"shift {sign}, step {t}": [(d - 1 if sign == "+1" else d + 1) % 4 for d in range(4)]
    for sign in ("+1", "-1")
    for t in (1, 2, 3)
}

sum_schedule__right_shifted = {f"step {t}": [(d + 1 + t) % 4 for d in range(4)] for t in range(4)}
# begins with the own block
sum_schedule__wrong_own_first = {f"step {t}": [(d + t) % 4 for d in range(4)] for t in range(4)}
# the film's: sums that move up
sum_schedule__wrong_up = {f"step {t}": [(d - 1 - t) % 4 for d in range(4)] for t in range(4)}
# the block stays the same: it follows nobody
sum_schedule__wrong_fixed = {f"step {t}": [t] * 4 for t in range(4)}


def ring_time__right_long(n, product, transfer):
    """Step by step."""
    together = sum(product if step == n - 1 else max(product, transfer) for step in range(n))
    return {"apart": transfer * (n - 1) + product * n, "overlapped": together}


def ring_time__wrong_n_transfers(n, product, transfer):
    """n transfers."""
    return {"apart": n * (product + transfer), "overlapped": n * max(product, transfer)}


def ring_time__wrong_n_products(n, product, transfer):
    """n - 1 products."""
    return {"apart": (n - 1) * (product + transfer), "overlapped": (n - 1) * max(product, transfer)}


def ring_time__wrong_first_transfer(n, product, transfer):
    """The step without a pair is a transfer."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": (n - 1) * max(product, transfer) + transfer}


def ring_time__wrong_whole_max(n, product, transfer):
    """The longer of both sums."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": max(n * product, (n - 1) * transfer)}


def ring_time__wrong_min(n, product, transfer):
    """min for max."""
    return {"apart": n * product + (n - 1) * transfer, "overlapped": (n - 1) * min(product, transfer) + product}


def _ag(body):
    def program(a, b, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)

    return program


def ag_matmul_ring__right_blocks(a, b, *, mesh):
    """A reshaped into column blocks; blocks go down."""
    n = mesh.shape["x"]

    def on_device(a, b):
        blocks = jnp.stack(jnp.split(a, n, axis=1))
        me = jax.lax.axis_index("x")
        total = blocks[me] @ b
        for t in range(1, n):
            b = jax.lax.ppermute(b, "x", [((d + 1) % n, d) for d in range(n)])
            total = total + blocks[(me + t) % n] @ b
        return total

    return _ag(on_device)(a, b, mesh)


def ag_matmul_ring__wrong_direction(a, b, *, mesh):
    """Blocks go up, the index goes up too."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]
        c = 0
        for step in range(n):
            c = c + jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ b
            if step < n - 1:
                b = send(b)
        return c

    return _ag(on_device)(a, b, mesh)


def ag_matmul_ring__wrong_n_transfers(a, b, *, mesh):
    """One transfer too many, whose block is used as the first."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]
        c = 0
        for step in range(1, n + 1):
            b = send(b)
            c = c + jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b
        return c

    return _ag(on_device)(a, b, mesh)


def ag_matmul_ring__wrong_collect(a, b, *, mesh):
    """Collects all blocks first, and multiplies once."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        blocks = [b]
        for _ in range(n - 1):
            blocks.append(send(blocks[-1]))
        whole = jnp.concatenate([jnp.stack(blocks)[(me - k) % n] for k in range(n)])
        return a @ whole

    return _ag(on_device)(a, b, mesh)


def ag_matmul_ring__wrong_first_missing(a, b, *, mesh):
    """The own block is never multiplied."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]
        c = 0
        for step in range(1, n):
            b = send(b)
            c = c + jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b
        return c

    return _ag(on_device)(a, b, mesh)


def ag_matmul_ring__wrong_start(a, b, *, mesh):
    """The block's number in place of the column where it begins."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]
        c = jax.lax.dynamic_slice_in_dim(a, me, width, axis=1) @ b
        for step in range(1, n):
            b = send(b)
            c = c + jax.lax.dynamic_slice_in_dim(a, (me - step) % n, width, axis=1) @ b
        return c

    return _ag(on_device)(a, b, mesh)


def ag_matmul_ring__wrong_gather(a, b, *, mesh):
    """An all_gather."""
    return _ag(lambda a, b: a @ jax.lax.all_gather(b, "x", tiled=True))(a, b, mesh)


def ag_matmul_ring__wrong_four(a, b, *, mesh):
    """Always four devices."""

    def on_device(a, b):
        me, width = jax.lax.axis_index("x"), b.shape[0]
        c = jax.lax.dynamic_slice_in_dim(a, me * width, width, axis=1) @ b
        for step in range(1, 4):
            b = send(b)
            c = c + jax.lax.dynamic_slice_in_dim(a, (me - step) % 4 * width, width, axis=1) @ b
        return c

    return _ag(on_device)(a, b, mesh)


def _rs(body):
    def program(a, b, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)

    return program


def rs_matmul_ring__right_up(a, b, *, mesh):
    """Up the ring."""
    n = mesh.shape["x"]

    def on_device(a, b):
        rows = len(a) // n

        def mine(t):
            return jax.lax.dynamic_slice_in_dim(a, (jax.lax.axis_index("x") - 1 - t) % n * rows, rows) @ b

        total = mine(0)
        for t in range(1, n):
            total = mine(t) + send(total)
        return total

    return _rs(on_device)(a, b, mesh)


def rs_matmul_ring__wrong_own_first(a, b, *, mesh):
    """Begins with the own block: every sum ends one place off."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, rows = jax.lax.axis_index("x"), len(a) // n
        c = 0
        for t in range(n):
            part = jax.lax.dynamic_slice_in_dim(a, (me + t) % n * rows, rows) @ b
            c = part if t == 0 else send(c, -1) + part
        return c

    return _rs(on_device)(a, b, mesh)


def rs_matmul_ring__wrong_mixed(a, b, *, mesh):
    """Index for down, sends up."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, rows = jax.lax.axis_index("x"), len(a) // n
        c = jax.lax.dynamic_slice_in_dim(a, (me + 1) % n * rows, rows) @ b
        for t in range(1, n):
            c = send(c) + jax.lax.dynamic_slice_in_dim(a, (me + 1 + t) % n * rows, rows) @ b
        return c

    return _rs(on_device)(a, b, mesh)


def rs_matmul_ring__wrong_one_product(a, b, *, mesh):
    """All parts cut from one product: nothing runs beside a transfer."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        parts = (a @ b).reshape(n, -1, b.shape[1])
        c = parts[(me + 1) % n]
        for t in range(1, n):
            c = send(c, -1) + parts[(me + 1 + t) % n]
        return c

    return _rs(on_device)(a, b, mesh)


def rs_matmul_ring__wrong_extra(a, b, *, mesh):
    """One transfer more, to bring it home."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, rows = jax.lax.axis_index("x"), len(a) // n
        c = jax.lax.dynamic_slice_in_dim(a, me * rows, rows) @ b
        for t in range(1, n):
            c = send(c, -1) + jax.lax.dynamic_slice_in_dim(a, (me + t) % n * rows, rows) @ b
        return send(c, -1)

    return _rs(on_device)(a, b, mesh)


def rs_matmul_ring__wrong_no_add(a, b, *, mesh):
    """Adds before it sends, and sends what was added: the last part counts on the wrong device."""
    n = mesh.shape["x"]

    def on_device(a, b):
        me, rows = jax.lax.axis_index("x"), len(a) // n
        c = jax.lax.dynamic_slice_in_dim(a, (me + 1) % n * rows, rows) @ b
        for t in range(1, n):
            c = send(c + jax.lax.dynamic_slice_in_dim(a, (me + 1 + t) % n * rows, rows) @ b, -1)
        return c

    return _rs(on_device)(a, b, mesh)


def rs_matmul_ring__wrong_psum_scatter(a, b, *, mesh):
    """The collective."""
    return _rs(lambda a, b: jax.lax.psum_scatter(a @ b, "x", tiled=True))(a, b, mesh)
