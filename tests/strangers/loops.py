"""Loops and branches around collectives and matmuls, of known and of unknown length."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, put, ring, sharded, stranger, values


@stranger(yours={"all_reduce x": 5}, replayable=True)
def psum_in_a_scan():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def smoothed(v):
        return lax.scan(lambda c, _: (c - lax.pmean(c, "x") / 2, None), v, length=5)[0]

    return Call(mesh, smoothed, sharded(mesh, P("x"), 8, 3))


@stranger(flops=5 * 2 * 2 * 4 * 4, yours={"all_reduce y": 5}, replayable=True)
def scan_of_tensor_parallel_layers():
    mesh = grid(x=4, y=2)

    @on(mesh, (P("x", None), P(None, None, "y"), P(None, "y")), P("x", None))
    def layers(v, up, down):
        def layer(h, weights):
            return h + lax.psum(jnp.tanh(h @ weights[0]) @ weights[1], "y"), None

        return lax.scan(layer, v, (up, down))[0]

    weights = [sharded(mesh, P(None, None, "y"), 5, 4, 4), sharded(mesh, P(None, "y"), 5, 4, 4)]
    return Call(mesh, layers, sharded(mesh, P("x", None), 8, 4), *weights)


@stranger(yours={"collective_permute x": 7}, replayable=True)
def fori_loop_around_a_ring():
    mesh = grid(x=8)

    @on(mesh, P("x"), P("x"))
    def total(v):
        def step(_, both):
            moving, so_far = both
            moving = lax.ppermute(moving, "x", ring(8))
            return moving, so_far + moving

        return lax.fori_loop(0, 7, step, (v, v))[1]

    return Call(mesh, total, sharded(mesh, P("x"), 16, 3))


@stranger(yours={"collective_permute x": 7}, replayable=True)
def the_same_ring_unrolled():
    mesh = grid(x=8)

    @on(mesh, P("x"), P("x"))
    def total(v):
        so_far = v
        for _ in range(7):
            v = lax.ppermute(v, "x", ring(8))
            so_far = so_far + v
        return so_far

    return Call(mesh, total, sharded(mesh, P("x"), 16, 3))


@stranger(yours={"collective_permute x": 6, "all_reduce x": 2}, replayable=True)
def a_loop_in_a_loop():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def nested(v):
        def outer(c, _):
            c = lax.fori_loop(0, 3, lambda _, b: jnp.sin(lax.ppermute(b, "x", ring(4))), c)
            return c - lax.pmean(c, "x"), None

        return lax.scan(outer, v, length=2)[0]

    return Call(mesh, nested, sharded(mesh, P("x"), 8, 3))


# A fori_loop whose bounds depend on the device is a while_loop, and its length is unknown.
@stranger(flops=None, replayable=True)
def fori_loop_as_long_as_the_device_index():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"))
    def powers(v, w):
        return lax.fori_loop(0, lax.axis_index("x") + 1, lambda _, c: c @ w, v)

    return Call(mesh, powers, sharded(mesh, P("x"), 8, 3), sharded(mesh, P(), 3, 3))


# XLA does not see the end of it, so the collective counts once.
@stranger(yours={"all_reduce x": 1}, replayable=True)
def fori_loop_with_a_bound_that_is_an_argument():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"))
    def smoothed(v, times):
        return lax.fori_loop(0, times, lambda _, c: c - lax.pmean(c, "x") / 2, v)

    return Call(mesh, smoothed, sharded(mesh, P("x"), 8, 3), put(mesh, P(), np.int32(4)))


# One sum in the condition, one permute in the body.
@stranger(yours={"all_reduce x": 1, "collective_permute x": 1}, replayable=True)
def while_loop_until_all_agree():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def settled(v):
        def step(c):
            return (c + lax.ppermute(c, "x", ring(4))) / 2

        return lax.while_loop(lambda c: lax.pmax(jnp.abs(c).max(), "x") > 0.9, step, v)

    return Call(mesh, settled, sharded(mesh, P("x"), 8, 3))


# The same with a counter: XLA finds that the loop runs six times.
@stranger(yours={"all_reduce x": 6}, replayable=True)
def while_loop_with_a_counter():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def counted(v):
        def step(both):
            k, c = both
            return k + 1, c + lax.psum(c, "x") / 8

        return lax.while_loop(lambda both: both[0] < 6, step, (0, v))[1]

    return Call(mesh, counted, sharded(mesh, P("x"), 8, 3))


@stranger(yours={"all_gather x": 1, "all_reduce x": 3}, replayable=True)
def a_gather_before_the_loop_that_uses_it():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def hoisted(v):
        full = lax.all_gather(v, "x", tiled=True)
        return lax.fori_loop(0, 3, lambda k, c: c + lax.psum(c * full[k], "x"), v)

    return Call(mesh, hoisted, sharded(mesh, P("x"), 8, 3))


# XLA moves the gather out of the loop, because it is the same in each iteration. It runs once.
@stranger(flops=4 * 2 * 3 * 3 * 3, yours={"all_gather x": 1}, replayable=True)
def a_gather_in_the_loop_that_could_be_before_it():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P("x")), P("x"))
    def not_hoisted(v, w):
        return lax.fori_loop(0, 4, lambda k, c: c @ lax.all_gather(w, "x", tiled=True)[:3], v)

    return Call(mesh, not_hoisted, sharded(mesh, P("x"), 12, 3), sharded(mesh, P("x"), 4, 3))


# An unused result of an iteration: the sum for it is removed, and the loop stays.
@stranger(yours={"all_gather x": 3}, replayable=True)
def scan_with_results_that_nobody_uses():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def half_used(v):
        def step(c, _):
            c = jnp.sin(lax.all_gather(c, "x").sum(0))
            return c, lax.psum(c, "x")

        return lax.scan(step, v, length=3)[0]

    return Call(mesh, half_used, sharded(mesh, P("x"), 8, 3))


# XLA unrolls nothing here, but JAX writes both halves of each iteration.
@stranger(flops=6 * 2 * 2 * 4 * 4, yours={"collective_permute x": 6}, replayable=True)
def scan_unrolled_by_two():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"))
    def unrolled(v, w):
        return lax.scan(lambda c, _: (lax.ppermute(c @ w, "x", ring(4)), None), v, length=6, unroll=2)[0]

    return Call(mesh, unrolled, sharded(mesh, P("x"), 8, 4), sharded(mesh, P(), 4, 4))


# XLA replaces a loop of one iteration by its body.
@stranger(flops=2 * 2 * 4 * 4, yours={"all_reduce x": 1}, replayable=True)
def scan_of_length_one():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P("x")), P("x"))
    def once(v, w):
        return lax.scan(lambda c, w: (c + lax.psum(c @ w, "x"), None), v, w)[0]

    return Call(mesh, once, sharded(mesh, P("x"), 8, 4), sharded(mesh, P("x"), 4, 4, 4))


# A loop that never runs is removed.
@stranger(replayable=True)
def fori_loop_without_iterations():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def never(v):
        return lax.fori_loop(3, 3, lambda _, c: lax.psum(c, "x") + c, v)

    return Call(mesh, never, sharded(mesh, P("x"), 8, 4))


@stranger(yours={"all_reduce x": 4}, replayable=True)
def scan_backward_over_the_sharded_dimension():
    mesh = grid(x=4)

    @on(mesh, P(None, "x"), P())
    def reverse(v):
        return lax.scan(lambda c, row: (c + row, lax.psum(c * row, "x")), 0 * v[0], v, reverse=True)[1]

    return Call(mesh, reverse, sharded(mesh, P(None, "x"), 4, 8))


@stranger(flops=3 * 2 * 2 * 4 * 4, yours={"all_reduce x": 3}, replayable=True)
def lax_map_over_microbatches():
    mesh = grid(x=4)

    @on(mesh, (P(None, None, "x"), P("x")), P())
    def products(batches, w):
        return lax.map(lambda v: lax.psum(v @ w, "x"), batches)

    return Call(mesh, products, sharded(mesh, P(None, None, "x"), 3, 2, 16), sharded(mesh, P("x"), 16, 4))


# associative_scan is unrolled by JAX: no loop.
@stranger(yours={"all_gather x": 1}, replayable=True)
def prefix_sums_over_devices():
    mesh = grid(x=8)

    @on(mesh, P("x"), P("x"))
    def prefix(v):
        inside = lax.associative_scan(jnp.add, v)
        totals = lax.all_gather(inside[-1], "x")
        before = jnp.where(jnp.arange(8)[:, None] < lax.axis_index("x"), totals, 0).sum(0)
        return inside + before

    return Call(mesh, prefix, sharded(mesh, P("x"), 32, 2))


# Power iteration with the compiler's matmul: in the loop it gathers the vector, and sums over rows for the norm.
@stranger(flops=5 * 2 * 2 * 8, inserted={"all_gather x": 5, "all_reduce x": 5})
def power_iteration_under_jit():
    mesh = grid(x=4)

    @jax.jit
    def iterate(a, v):
        def step(_, v):
            v = a @ v
            return v / jnp.linalg.norm(v)

        return lax.fori_loop(0, 5, step, v)

    return Call(mesh, iterate, sharded(mesh, P("x"), 8, 8), put(mesh, P("x"), values(8) + 0.1))
