"""Branches: by device, by data, with unequal matmuls, with collectives in them, and inside of loops."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, put, ring, sharded, stranger


@stranger(flops=2 * 2 * 8 * 4, yours={"all_reduce x": 1}, replayable=True)
def cond_by_device_index():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P(), check_vma=False)
    def first_works(v, w):
        part = lax.cond(lax.axis_index("x") == 0, lambda a: a @ w, lambda a: jnp.zeros((2, 4)), v)
        return lax.psum(part, "x")

    return Call(mesh, first_works, sharded(mesh, P("x"), 8, 8), sharded(mesh, P(), 8, 4))


# Each branch has a matmul: of 8 × 4, or two of 8 × 8. The larger counts.
@stranger(flops=2 * 2 * 8 * 8 * 2, replayable=True)
def cond_with_unequal_branches():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P(), P()), P("x"), check_vma=False)
    def unequal(v, small, large):
        def little(a):
            return jnp.pad(a @ small, ((0, 0), (0, 4)))

        return lax.cond(lax.axis_index("x") < 2, little, lambda a: (a @ large) @ large, v)

    return Call(mesh, unequal, sharded(mesh, P("x"), 8, 8), sharded(mesh, P(), 8, 4), sharded(mesh, P(), 8, 8))


# All devices take the same branch, so both may have collectives. At most one of them runs.
@stranger(yours={"all_reduce x": 1, "all_gather x": 1}, replayable=True)
def cond_by_data_with_a_collective_in_each_branch():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"), check_vma=False)
    def either(v, flag):
        def gathered(a):
            return a - lax.all_gather(a, "x").max(0)

        return lax.cond(flag > 0, gathered, lambda a: a - lax.pmean(a, "x"), v)

    return Call(mesh, either, sharded(mesh, P("x"), 8, 3), put(mesh, P(), np.float32(1)))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def cond_whose_predicate_is_a_sum():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def clipped(v):
        norm = jnp.sqrt(lax.psum((v**2).sum(), "x"))
        return lax.cond(norm > 1, lambda a: a / norm, lambda a: a, v)

    return Call(mesh, clipped, sharded(mesh, P("x"), 8, 3))


# Three branches: the permutes of the last count for the bytes, 2 × 8 × 3 for the FLOPs.
@stranger(flops=2 * 2 * 8 * 3, yours={"collective_permute x": 3}, replayable=True)
def switch_between_three():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P(), P()), P("x"), check_vma=False)
    def switched(v, w, which):
        def once(a):
            return lax.ppermute(a, "x", ring(4))

        def twice(a):
            return jnp.sin(lax.ppermute(jnp.cos(lax.ppermute(a, "x", ring(4))), "x", ring(4, 2)))

        return lax.switch(which, [lambda a: jnp.pad(a @ w, ((0, 0), (0, 5))), once, twice], v)

    return Call(mesh, switched, sharded(mesh, P("x"), 8, 8), sharded(mesh, P(), 8, 3), put(mesh, P(), np.int32(1)))


# In each of the ten iterations one device multiplies, and the busiest might do so in all of them.
@stranger(flops=10 * 2 * 2 * 4 * 4, replayable=True)
def cond_in_a_scan():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"), check_vma=False)
    def in_turn(v, w):
        me = lax.axis_index("x")

        def step(c, k):
            return lax.cond(k % 4 == me, lambda a: jnp.tanh(a @ w), lambda a: a, c), None

        return lax.scan(step, v, jnp.arange(10))[0]

    return Call(mesh, in_turn, sharded(mesh, P("x"), 8, 4), sharded(mesh, P(), 4, 4))
