"""Right answers to 15_collective_matmul, each spelled differently from the lesson's model solution.

All of them must earn full marks: the judge sees what a program does, not how it is written.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P


def ring_map(mesh, *ins):
    return partial(jax.shard_map, mesh=mesh, in_specs=ins, out_specs=P("x", None), check_vma=False)


def pairs(n, by):
    return [(k, (k + by) % n) for k in range(n)]


def ag_matmul_ring__down(a, b, *, mesh):
    """The blocks move down, so what a device holds came from above; the columns are an array of blocks."""
    n = mesh.shape["x"]

    @ring_map(mesh, P("x"), P("x"))
    def go(rows, block):
        cut = rows.reshape(rows.shape[0], n, -1)
        me, total = lax.axis_index("x"), 0
        for k in range(n):
            if k:
                block = lax.ppermute(block, "x", pairs(n, -1))
            total = total + jnp.take(cut, (me + k) % n, axis=1) @ block
        return total

    return go(a, b)


def ag_matmul_ring__jitted_step(a, b, *, mesh):
    """Each step is a function compiled by itself: a call in the program is what it calls."""
    n = mesh.shape["x"]

    @jax.jit
    def step(carry, number):
        block, total, rows = carry
        block = lax.ppermute(block, "x", pairs(n, 1))
        start = (lax.axis_index("x") - number) % n * block.shape[0]
        return block, total + lax.dynamic_slice_in_dim(rows, start, block.shape[0], axis=1) @ block, rows

    @ring_map(mesh, P("x"), P("x"))
    def go(rows, block):
        own = lax.dynamic_slice_in_dim(rows, lax.axis_index("x") * block.shape[0], block.shape[0], axis=1) @ block
        carry = block, own, rows
        for number in range(1, n):
            carry = step(carry, number)
        return carry[1]

    return go(a, b)


def rs_matmul_ring__up(a, b, *, mesh):
    """The sums move up, and begin with the block of the neighbour below."""
    n = mesh.shape["x"]

    @ring_map(mesh, P(None, "x"), P("x"))
    def go(columns, rows):
        cut = columns.reshape(n, -1, columns.shape[1])
        total = cut[lax.axis_index("x") - 1] @ rows
        for k in range(2, n + 1):
            total = lax.ppermute(total, "x", pairs(n, 1)) + cut[lax.axis_index("x") - k] @ rows
        return total

    return go(a, b)


def rs_matmul_ring__in_a_loop(a, b, *, mesh):
    n = mesh.shape["x"]

    @ring_map(mesh, P(None, "x"), P("x"))
    def go(columns, rows):
        me, height = lax.axis_index("x"), columns.shape[0] // n

        def part(k):
            return jnp.einsum("ij,jk->ik", lax.dynamic_slice_in_dim(columns, (me + k) % n * height, height), rows)

        return lax.fori_loop(2, n + 1, lambda k, total: lax.ppermute(total, "x", pairs(n, -1)) + part(k), part(1))

    return go(a, b)


def with_fori_loop__scan(a, b, *, mesh):
    """A scan that carries the place of the block too, and gathers nothing."""
    n = mesh.shape["x"]

    @ring_map(mesh, P("x"), P("x"))
    def go(rows, block):
        height = block.shape[0]

        def product(block, place):
            return lax.dynamic_slice_in_dim(rows, place * height, height, axis=1) @ block

        def turn(carry, _):
            total, block, place = carry
            return (total + product(block, place), lax.ppermute(block, "x", pairs(n, 1)), (place - 1) % n), None

        start = jnp.zeros((rows.shape[0], block.shape[1])), block, lax.axis_index("x")
        (total, block, place), _ = lax.scan(turn, start, None, length=n - 1)
        return total + product(block, place)

    return go(a, b)


def with_fori_loop__checked(a, b, *, mesh):
    """Zeros that vary because what they are made of varies; the blocks move down."""
    n = mesh.shape["x"]

    def go(rows, block):
        def product(k, block):
            start = (lax.axis_index("x") + k) % n * block.shape[0]
            return lax.dynamic_slice_in_dim(rows, start, block.shape[0], axis=1) @ block

        def turn(k, carry):
            return lax.ppermute(carry[0], "x", pairs(n, -1)), carry[1] + product(k, carry[0])

        zeros = rows[:, :1] * block[:1] * 0
        block, total = lax.fori_loop(0, n - 1, turn, (block, zeros))
        return total + product(n - 1, block)

    return jax.shard_map(go, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=P("x"))(a, b)


def bidirectional__two_loops_in_one(a, b, *, mesh):
    """Both rings in one loop; the halves are rows 0 and 1 of an array."""
    n = mesh.shape["x"]

    @ring_map(mesh, P("x"), P("x"))
    def go(rows, block):
        me, cut = lax.axis_index("x"), rows.reshape(rows.shape[0], n, 2, -1)

        def product(k, first, second):
            return cut[:, (me - k) % n, 0] @ first + cut[:, (me + k) % n, 1] @ second

        def turn(k, carry):
            total, first, second = carry
            return (
                total + product(k, first, second),
                lax.ppermute(first, "x", pairs(n, 1)),
                lax.ppermute(second, "x", pairs(n, -1)),
            )

        first, second = jnp.split(block, 2)
        zeros = jnp.zeros((rows.shape[0], block.shape[1]))
        total, first, second = lax.fori_loop(0, n - 1, turn, (zeros, first, second))
        return total + product(n - 1, first, second)

    return go(a, b)


def bidirectional__down_first(a, b, *, mesh):
    """The first half goes down, the second half up, each product by itself."""
    n = mesh.shape["x"]

    @ring_map(mesh, P("x"), P("x"))
    def go(rows, block):
        me, half, parts = lax.axis_index("x"), block.shape[0] // 2, []
        for which, by in ((0, -1), (1, 1)):
            held = block[which * half : (which + 1) * half]
            for k in range(n):
                held = lax.ppermute(held, "x", pairs(n, by)) if k else held
                start = (2 * ((me - by * k) % n) + which) * half
                parts.append(lax.dynamic_slice_in_dim(rows, start, half, axis=1) @ held)
        return sum(parts)

    return go(a, b)


def mlp_block__both_down(x, w1, w2, *, mesh):
    """X and the sums move the same way: the hidden blocks from the second on, the own one last."""
    n = mesh.shape["x"]

    @ring_map(mesh, P("x"), P(None, "x"), P("x"))
    def go(x, w1, w2):
        blocks = [x]
        for _ in range(n - 1):
            blocks.append(lax.ppermute(blocks[-1], "x", pairs(n, -1)))
        hidden = [jax.nn.gelu(block @ w1) for block in blocks]
        total = hidden[1] @ w2
        for block in [*hidden[2:], hidden[0]]:
            total = lax.ppermute(total, "x", pairs(n, -1)) + block @ w2
        return total

    return go(x, w1, w2)


def mlp_block__fused(x, w1, w2, *, mesh):
    """One ring for both: as soon as a block of X has come, its part of Y joins the sum that follows it."""
    n = mesh.shape["x"]

    @ring_map(mesh, P("x"), P(None, "x"), P("x"))
    def go(x, w1, w2):
        own = jax.nn.gelu(x @ w1) @ w2
        total = None
        for _ in range(1, n):
            x = lax.ppermute(x, "x", pairs(n, -1))
            part = jax.nn.gelu(x @ w1) @ w2
            total = part if total is None else lax.ppermute(total, "x", pairs(n, -1)) + part
        return lax.ppermute(total, "x", pairs(n, -1)) + own

    return go(x, w1, w2)


def ring_time__step_by_step(n, matmul, transfer):
    overlapped = matmul
    for _ in range(n - 1):
        overlapped += matmul if matmul > transfer else transfer
    return {"overlapped": overlapped, "apart": n * matmul + n * transfer - transfer}
