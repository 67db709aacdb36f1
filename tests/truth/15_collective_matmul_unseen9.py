"""Answers to lesson 15, ninth batch, written by a reader of the notebook only."""

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


# ---- does_it_overlap

does_it_overlap__right_by_answer = {
    name: answer
    for answer, names in {
        "all": ("multiply_and_send", "send_and_multiply"),
        "some": ("first_one_then_the_rest",),
        "none": ("gather_first", "ring_then_multiply", "send_and_multiply_in_a_loop"),
    }.items()
    for name in names
}

# Thought: in the loop the product before it (of the device's own block) runs beside the first transfer, and only the turns' own products have to wait.
does_it_overlap__wrong_product_before_the_loop = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "some",
    "first_one_then_the_rest": "some",
}

# Thought: the product of the own block needs nothing of any transfer, so in the last program all three transfers have a product beside them.
does_it_overlap__wrong_one_product_for_all = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "all",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "all",
}

# Thought: "all" needs every product to have its transfer, and where there are four products and three transfers one product always stands alone.
does_it_overlap__wrong_four_and_three = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "some",
    "send_and_multiply": "some",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "some",
}

# Thought: whoever sends first and multiplies what came has to wait in each step, written out or in a loop, and the last program multiplies the rest at the end.
does_it_overlap__wrong_waits_for_what_came = {
    "gather_first": "none",
    "ring_then_multiply": "none",
    "multiply_and_send": "all",
    "send_and_multiply": "none",
    "send_and_multiply_in_a_loop": "none",
    "first_one_then_the_rest": "none",
}


# ---- with_fori_loop


def with_fori_loop__right_down_the_ring(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width = b.shape[0]

        def met(step, block):
            first = (me + step) % n * width
            return jax.lax.dynamic_slice_in_dim(a, first, width, axis=1) @ block

        def turn(step, carry):
            block, total = carry
            return send(block, by=-1), total + met(step, block)

        zeros = varying(jnp.zeros((a.shape[0], b.shape[1]), jnp.result_type(a, b)))
        last, total = jax.lax.fori_loop(0, n - 1, turn, (b, zeros))
        return total + met(n - 1, last)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: blocks that move down come from above in the order of their numbers, but the formula with the minus is the one of the table, so it stays.
def with_fori_loop__wrong_down_with_minus(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def product(step, block):
            return jax.lax.dynamic_slice_in_dim(a, (me - step) % n * width, width, axis=1) @ block

        def turn(step, carry):
            total, block = carry
            return total + product(step, block), send(block, -1)

        start = varying(jnp.zeros((a.shape[0], b.shape[1]), a.dtype))
        total, block = jax.lax.fori_loop(0, n - 1, turn, (start, b))
        return total + product(n - 1, block)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# Thought: `fitting` of part 4 is what finds the columns, so I take it over, and three turns as there.
def with_fori_loop__wrong_fitting_of_four(a, b, *, mesh):
    def fitting(a, b, step):
        start = (jax.lax.axis_index("x") - step) % 4 * b.shape[0]
        return jax.lax.dynamic_slice_in_dim(a, start, b.shape[0], axis=1)

    def on_device(a, b):
        def turn(step, carry):
            total, block = carry
            return total + fitting(a, block, step) @ block, send(block)

        total = varying(jnp.zeros((a.shape[0], b.shape[1]), a.dtype))
        total, block = jax.lax.fori_loop(0, 3, turn, (total, b))
        return total + fitting(a, block, 3) @ block

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# Thought: as with prefetch in lesson 14 the loop should be handed the next block already, so the first transfer is made before the loop.
def with_fori_loop__wrong_one_ahead(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def product(step, block):
            start = (me - step) % n * width
            return jax.lax.dynamic_slice_in_dim(a, start, width, axis=1) @ block

        def turn(step, carry):
            total, here, coming = carry
            return total + product(step, here), coming, send(coming)

        start = varying(jnp.zeros((a.shape[0], b.shape[1]), a.dtype))
        total, here, coming = jax.lax.fori_loop(0, n - 2, turn, (start, b, send(b)))
        return total + product(n - 2, here) + product(n - 1, coming)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# Thought: the loop is there for the transfers; each turn files the block where it belongs, and one large product runs better than n small ones.
def with_fori_loop__wrong_loop_collects(a, b, *, mesh):
    def on_device(a, b):
        n, me, width = jax.lax.axis_size("x"), jax.lax.axis_index("x"), b.shape[0]

        def file_away(whole, block, step):
            return jax.lax.dynamic_update_slice_in_dim(whole, block, (me - step) % n * width, axis=0)

        def turn(step, carry):
            whole, block = carry
            return file_away(whole, block, step), send(block)

        nothing = varying(jnp.zeros((n * width, b.shape[1]), b.dtype))
        whole, last = jax.lax.fori_loop(0, n - 1, turn, (nothing, b))
        return a @ file_away(whole, last, n - 1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


# ---- rs_matmul_ring


def rs_matmul_ring__right_add_then_send(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        strips = a.reshape(n, a.shape[0] // n, a.shape[1])

        def part(step):
            strip = jax.lax.dynamic_index_in_dim(strips, (me - 1 - step) % n, axis=0, keepdims=False)
            return strip @ b

        coming = None
        for step in range(n - 1):
            full = part(step) if coming is None else coming + part(step)
            coming = send(full)
        return part(n - 1) if coming is None else coming + part(n - 1)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: everybody begins with what it has at hand, its own block; at the end the sum for block d + 1 is here, so one more transfer brings it home.
def rs_matmul_ring__wrong_brought_home(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height = a.shape[0] // n

        def part(block):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height, axis=0) @ b

        c = part(me)
        for step in range(1, n):
            c = send(c) + part(me - step)
        return send(c)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: the worked example makes the same C, it only cuts the other dimension, and out_specs tells JAX how it is cut.
def rs_matmul_ring__wrong_columns_of_c(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        width = b.shape[1] // n

        def part(step):
            block = (me + 1 + step) % n
            return a @ jax.lax.dynamic_slice_in_dim(b, block * width, width, axis=1)

        c = part(0)
        for step in range(1, n):
            c = send(c, by=-1) + part(step)
        return c

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P(None, "x"))(a, b)


# Thought: each device keeps the sum for its own block at home, and in every step the part for a neighbour's block is sent to it and added there.
def rs_matmul_ring__wrong_parts_travel(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        height = a.shape[0] // n

        def part(block):
            return jax.lax.dynamic_slice_in_dim(a, block % n * height, height, axis=0) @ b

        total = part(me)
        for step in range(1, n):
            total = total + send(part(me + step))
        return total

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)


# Thought: a device has a part of every block of C, so the sum that goes round is that of all of C, and at the end each takes its own rows.
def rs_matmul_ring__wrong_whole_c_goes_round(a, b, *, mesh):
    def on_device(a, b):
        n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
        own = a @ b
        total = own
        for _ in range(n - 1):
            total = send(total) + own
        height = own.shape[0] // n
        return jax.lax.dynamic_slice_in_dim(total, me * height, height, axis=0)

    return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None))(a, b)
