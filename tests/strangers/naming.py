"""Names that mislead: scopes and functions named like collectives, and two collectives of one name."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, sharded, stranger


# A user's name that looks like one of JAX. The compiler inserts the all-reduce for the matmul, and XLA merges it with
# the author's.
@stranger(flops=2 * 8 * 2 * 8, yours={"all_reduce x": 1}, inserted={"all_reduce x": 1}, replayable=True)
def a_scope_named_psum_around_a_matmul():
    mesh = grid(x=8)

    def both(a, c):
        with jax.named_scope("psum"):
            product = a @ c
        return product, on(mesh, P(None, "x"), P())(lambda v: lax.psum(v, "x"))(a)

    return Call(mesh, both, sharded(mesh, P(None, "x"), 8, 16), sharded(mesh, P("x"), 16, 8))


@stranger(flops=2 * 8 * 2 * 8, yours={"all_reduce x": 1}, inserted={"all_reduce x": 1}, replayable=True)
def scopes_that_say_the_opposite():
    mesh = grid(x=8)

    def both(a, c):
        with jax.named_scope("shard_map"), jax.named_scope("psum"):
            product = a @ c
        with jax.named_scope("dot_general"):
            total = on(mesh, P(None, "x"), P())(lambda v: lax.psum(v, "x"))(a)
        return product, total

    return Call(mesh, both, sharded(mesh, P(None, "x"), 8, 16), sharded(mesh, P("x"), 16, 8))


# Colons and parentheses in names. XLA also uses them, between the names of a merged instruction.
@stranger(flops=2 * (2 * 8 * 2 * 8), yours={"all_reduce x": 1}, inserted={"all_reduce x": 2}, replayable=True)
def a_scope_with_a_colon():
    mesh = grid(x=8)

    def three(a, c):
        with jax.named_scope("block:0"):
            total = on(mesh, P(None, "x"), P())(lambda v: lax.psum(v, "x"))(a)
        return a @ c, total, jnp.sin(a) @ c

    return Call(mesh, three, sharded(mesh, P(None, "x"), 8, 16), sharded(mesh, P("x"), 16, 8))


@stranger(yours={"all_reduce x": 2}, replayable=True)
def scopes_with_colons_and_parentheses():
    mesh = grid(x=4)

    @on(mesh, P("x"), P())
    def two(v):
        with jax.named_scope("block(0):attention"):
            first = lax.psum(v, "x")
        with jax.named_scope("mlp/(1:2)"):
            return first, lax.psum(v * 2, "x")

    return Call(mesh, two, sharded(mesh, P("x"), 8, 4))


@stranger(flops=2 * 4 * 2 * 6, inserted={"all_reduce x": 1})
def a_function_named_psum():
    mesh = grid(x=4)

    def psum(a, b):
        return a @ b

    return Call(mesh, psum, sharded(mesh, P(None, "x"), 4, 8), sharded(mesh, P("x"), 8, 6))


@stranger(inserted={"all_gather x": 1})
def a_jitted_function_named_all_gather():
    mesh = grid(x=4)

    @jax.jit
    def all_gather(v):
        return lax.with_sharding_constraint(v, NamedSharding(mesh, P()))

    return Call(mesh, lambda v: jnp.sin(all_gather(v)), sharded(mesh, P("x"), 8, 4))


# The compiler gathers the operand along model, and its collective has the name of the author's.
@stranger(yours={"all_to_all data": 1}, inserted={"all_gather model": 1}, replayable=True)
def all_to_all_of_a_dimension_that_is_also_sharded():
    mesh = grid(data=2, model=4)

    @on(mesh, P("data"), P("data"), axis_names={"data"})
    def turned(v):
        return lax.all_to_all(v, "data", 1, 0, tiled=True)

    return Call(mesh, jax.jit(turned), sharded(mesh, P("data", "model"), 8, 8))


@stranger(yours={"all_gather data": 1}, inserted={"all_gather model": 1}, replayable=True)
def all_gather_of_a_dimension_that_is_also_sharded():
    mesh = grid(data=2, model=4)

    @on(mesh, P("data"), P(), axis_names={"data"}, check_vma=False)
    def gathered(v):
        return lax.all_gather(v, "data", axis=1, tiled=True)

    return Call(mesh, jax.jit(gathered), sharded(mesh, P("data", "model"), 8, 8))


# Sums along both axes, one after the other: each its own.
@stranger(yours={"all_reduce data": 1}, inserted={"all_reduce model": 1}, replayable=True)
def psum_of_a_sum_over_an_automatic_axis():
    mesh = grid(data=2, model=4)
    total = on(mesh, P("data"), P(), axis_names={"data"})(lambda v: lax.psum(v.sum(1), "data"))
    return Call(mesh, jax.jit(total), sharded(mesh, P("data", "model"), 8, 8))


# The same matmul twice, once with the author's sum and once with the compiler's. The backward pass needs no sums.
@stranger(flops=5 * (2 * 8 * 2 * 8), yours={"all_reduce x": 1}, inserted={"all_reduce x": 1}, replayable=True)
def a_gradient_through_both():
    mesh = grid(x=8)

    def loss(a, b):
        by_hand = on(mesh, (P(None, "x"), P("x")), P())(lambda a, b: lax.psum(a @ b, "x"))
        return (by_hand(a, b) ** 2).sum() + (a @ b).mean()

    gradient = jax.value_and_grad(loss, (0, 1))
    return Call(mesh, gradient, sharded(mesh, P(None, "x"), 8, 16), sharded(mesh, P("x"), 16, 8))
