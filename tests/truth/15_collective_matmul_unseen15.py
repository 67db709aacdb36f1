"""Answers to lesson 15, fifteenth batch, written by a reader of the notebook only."""

import jax
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


# ---------------------------------------------------------------- rs_matmul_ring
def rs_matmul_ring__right_upwards(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        blocks = a.reshape(n, a.shape[0] // n, a.shape[1])

        def part(k):
            return jax.lax.dynamic_index_in_dim(blocks, k % n, keepdims=False) @ b

        total = part(me - 1)
        for step in range(1, n):
            total = send(total) + part(me - 1 - step)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P("x"))(a, b)


# The student began with the own block, as in the gathering ring: every sum ends one place beside its owner.
def rs_matmul_ring__wrong_begins_with_own(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        rows = a.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(a, (me + step) % n * rows, rows) @ b

        total = part(0)
        for step in range(1, n):
            total = send(total, -1) + part(step)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P("x"))(a, b)


# The student multiplied once and let blocks of the finished product go round: right values, but every transfer waits for the one product.
def rs_matmul_ring__wrong_one_product(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        product = a @ b
        rows = product.shape[0] // n

        def part(step):
            return jax.lax.dynamic_slice_in_dim(product, (me + 1 + step) % n * rows, rows)

        total = part(0)
        for step in range(1, n):
            total = send(total, -1) + part(step)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P("x"))(a, b)


# The student kept the worked example's columns of b, so that C comes out cut by columns and not by rows.
def rs_matmul_ring__wrong_columns_of_b(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width = b.shape[1] // n

        def part(step):
            return a @ jax.lax.dynamic_slice_in_dim(b, (me + 1 + step) % n * width, width, axis=1)

        total = part(0)
        for step in range(1, n):
            total = send(total, -1) + part(step)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P(None, "x"))(a, b)


# The student used the schedule of sums that move down, and sent them up (in a ring of two there is no difference).
def rs_matmul_ring__wrong_up_by_the_schedule_down(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        rows = a.shape[0] // n
        total = jax.lax.dynamic_slice_in_dim(a, (me + 1) % n * rows, rows) @ b
        for step in range(1, n):
            total = send(total)
            total += jax.lax.dynamic_slice_in_dim(a, (me + 1 + step) % n * rows, rows) @ b
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x")), out_specs=P("x"))(a, b)


# ---------------------------------------------------------------- bidirectional
def bidirectional__right_reshaped(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        half = b.shape[0] // 2
        columns = a.reshape(a.shape[0], n, 2, half)

        def product(block, which, rows):
            return jax.lax.dynamic_index_in_dim(columns[:, :, which], block % n, axis=1, keepdims=False) @ rows

        up, down = b[:half], b[half:]
        total = product(me, 0, up) + product(me, 1, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            total = total + product(me - step, 0, up) + product(me + step, 1, down)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# The student thought that after t steps both halves are of block me - t, whichever way they went.
def bidirectional__wrong_same_block(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width, half = b.shape[0], b.shape[0] // 2
        up, down = b[:half], b[half:]
        total = 0
        for step in range(n):
            start = (me - step) % n * width
            total += jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ up
            total += jax.lax.dynamic_slice_in_dim(a, start + half, half, axis=1) @ down
            if step < n - 1:
                up, down = send(up), send(down, -1)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# The student cut the blocks in two transfers, but sent both of them up: the values are right, one neighbour gets all bytes.
def bidirectional__wrong_both_up(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width, half = b.shape[0], b.shape[0] // 2
        first, second = b[:half], b[half:]
        total = 0
        for step in range(n):
            start = (me - step) % n * width
            total += jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ first
            total += jax.lax.dynamic_slice_in_dim(a, start + half, half, axis=1) @ second
            if step < n - 1:
                first, second = send(first), send(second)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# The student forgot that the second half of a block meets columns that begin half a block later.
def bidirectional__wrong_no_half_offset(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width, half = b.shape[0], b.shape[0] // 2

        def product(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        total = product(me, up) + product(me, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            total += product(me - step, up) + product(me + step, down)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# The student sent whole blocks both ways, each half around the ring: n - 1 transfers of a whole block, not 2 (n - 1) of half a one.
def bidirectional__wrong_whole_blocks_half_way(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width = b.shape[0]

        def product(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * width, width, axis=1) @ rows

        up = down = b
        total = product(me, b)
        for step in range(1, n // 2 + 1):
            up = send(up)
            total += product(me - step, up)
            if step <= (n - 1) // 2:
                down = send(down, -1)
                total += product(me + step, down)
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# ---------------------------------------------------------------- ag_matmul_ring
def ag_matmul_ring__right_downwards(a, b, *, mesh):
    n = mesh.shape["x"]

    def on_device(a, b):
        me = jax.lax.axis_index("x")
        columns = a.reshape(a.shape[0], n, b.shape[0])
        terms = []
        for step in range(n):
            coming = send(b, by=-1) if step + 1 < n else None
            terms.append(jax.lax.dynamic_index_in_dim(columns, (me + step) % n, axis=1, keepdims=False) @ b)
            b = coming
        return sum(terms)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# The student sent first and multiplied then, n times, until the own block was back: right values with one transfer too many.
def ag_matmul_ring__wrong_once_round(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        total = 0
        for step in range(1, n + 1):
            b = send(b)
            total += jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# The student thought that blocks that move up come from above: block me + step (in a ring of two there is no difference).
def ag_matmul_ring__wrong_from_above(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        total = jax.lax.dynamic_slice_in_dim(a, me * width, width, axis=1) @ b
        for step in range(1, n):
            b = send(b)
            total += jax.lax.dynamic_slice_in_dim(a, (me + step) % n * width, width, axis=1) @ b
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# The student began the columns at block times the rows of A on a device, which is the width of a block only where A is square.
def ag_matmul_ring__wrong_rows_of_a(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        total = jax.lax.dynamic_slice_in_dim(a, me * a.shape[0], b.shape[0], axis=1) @ b
        for step in range(1, n):
            b = send(b)
            total += jax.lax.dynamic_slice_in_dim(a, (me - step) % n * a.shape[0], b.shape[0], axis=1) @ b
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# The student mixed up the two rings: the sums travel, and each device's block of B stays where it is.
def ag_matmul_ring__wrong_sums_travel(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        total = jax.lax.dynamic_slice_in_dim(a, me * width, width, axis=1) @ b
        for step in range(1, n):
            total = send(total) + jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ b
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)
