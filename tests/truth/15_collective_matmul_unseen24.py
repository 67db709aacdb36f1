"""Answers to lesson 15, twenty-fourth batch, written by a reader of the notebook only."""

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


# ---- mlp_block


def mlp_block__right_down_then_up(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n, hidden, rows = jax.lax.axis_size("x"), [], x
        for step in range(n):  # block me + step
            hidden.append(jax.nn.gelu(rows @ w1))
            if step < n - 1:
                rows = send(rows, -1)
        y = hidden.pop() @ w2  # block me - 1, which goes up to its owner by the long way
        while hidden:
            part = hidden.pop() @ w2
            y = send(y) + part
        return y

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


# This student went through the list backwards as one should, but lets the sums move up as X does; on a ring of two that is the same.
def mlp_block__wrong_both_up(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden[-1] @ w2
        for h in reversed(hidden[:-1]):
            y = send(y) + h @ w2
        return y

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


# This student thought that gelu has to wait until the sum is finished, and applies it to Y.
def mlp_block__wrong_gelu_at_the_end(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = [x @ w1]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(x @ w1)
        y = hidden[-1] @ w2
        for h in hidden[-2::-1]:
            y = send(y, -1) + h @ w2
        return jax.nn.gelu(y)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


# This student made all parts of Y in one product and cut them from it, so that no product is left beside the second ring.
def mlp_block__wrong_parts_of_one_product(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n, height = jax.lax.axis_size("x"), x.shape[0]
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        parts = jnp.concatenate(hidden[::-1]) @ w2  # blocks me + 1, me + 2, ..., me
        y = parts[:height]
        for step in range(1, n):
            y = send(y, -1) + parts[step * height : (step + 1) * height]
        return y

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


# This student begins the sums with each device's own block, and so needs one more transfer to bring them home.
def mlp_block__wrong_one_more_send(x, w1, w2, *, mesh):
    def on_device(x, w1, w2):
        n = jax.lax.axis_size("x")
        hidden = [jax.nn.gelu(x @ w1)]
        for _ in range(n - 1):
            x = send(x)
            hidden.append(jax.nn.gelu(x @ w1))
        y = hidden[0] @ w2
        for h in hidden[1:]:
            y = send(y) + h @ w2
        return send(y)  # it stands one place below its owner

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(None, "x"), P("x")), out_specs=P("x"))(x, w1, w2)


# ---- bidirectional


def bidirectional__right_by_columns(a, b, *, mesh):
    def on_device(a, b):
        n, me, height = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def product(block, half):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height, axis=1) @ half

        up, down = jnp.split(b, 2, axis=1)
        left, right = product(me, up), product(me, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            left = left + product(me - step, up)
            right = right + product(me + step, down)
        return jnp.concatenate([left, right], axis=1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# This student thought that both halves at hand belong to the same block, that of the device `step` places below.
def bidirectional__wrong_same_block(a, b, *, mesh):
    def on_device(a, b):
        n, me, height = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]
        half = height // 2

        def product(block, begin, rows):
            start = block * height + begin
            return jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ rows

        up, down = b[:half], b[half:]
        c = product(me, 0, up) + product(me, half, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            block = (me - step) % n
            c = c + product(block, 0, up) + product(block, half, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# This student forgot that the columns for the second half of a block begin half a block later.
def bidirectional__wrong_no_offset(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height = b.shape[0]
        up, down = jnp.split(b, 2)

        def product(block, rows):
            columns = jax.lax.dynamic_slice_in_dim(a, block * height, rows.shape[0], axis=1)
            return columns @ rows

        c = product(me, up) + product(me, down)
        for step in range(1, n):
            up, down = send(up), send(down, -1)
            c += product((me - step) % n, up) + product((me + step) % n, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# This student sends whole blocks both ways until all have been seen: right values, but n - 1 transfers of whole blocks.
def bidirectional__wrong_whole_blocks(a, b, *, mesh):
    def on_device(a, b):
        n, me, height = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def product(block, rows):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height, axis=1) @ rows

        c, up, down = product(me, b), b, b
        for step in range(1, n // 2 + 1):
            up = send(up)
            c = c + product(me - step, up)
        for step in range(1, (n - 1) // 2 + 1):
            down = send(down, -1)
            c = c + product(me + step, down)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# This student cut the blocks in halves and sent both of them up, so that one direction of the links stays idle.
def bidirectional__wrong_both_up(a, b, *, mesh):
    def on_device(a, b):
        n, me, half = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0] // 2

        def product(step, second, rows):
            start = (me - step) % n * 2 * half + second * half
            return jax.lax.dynamic_slice_in_dim(a, start, half, axis=1) @ rows

        first, second = b[:half], b[half:]
        c = product(0, 0, first) + product(0, 1, second)
        for step in range(1, n):
            first, second = send(first), send(second)
            c = c + product(step, 0, first) + product(step, 1, second)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# ---- does_it_overlap

does_it_overlap__right_arrows = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# This student read the lines as an order: a product that is written behind a send waits for it.
does_it_overlap__wrong_lines_are_order = does_it_overlap__right_arrows | {
    "send_and_multiply": "none",
}

# This student thought that a loop is only a shorter way to write the same program.
does_it_overlap__wrong_loop_is_the_same = does_it_overlap__right_arrows | {
    "send_and_multiply_in_a_loop": "all",
}

# This student thought that the product before the loop runs beside the transfer of the first turn.
does_it_overlap__wrong_before_the_loop = does_it_overlap__right_arrows | {
    "send_and_multiply_in_a_loop": "some",
}

# This student thought that one product which waits for nothing may run beside all three transfers, and forgot that it counts once.
does_it_overlap__wrong_counts_thrice = does_it_overlap__right_arrows | {
    "first_one_then_the_rest": "all",
}
