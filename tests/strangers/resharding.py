"""Arrays that change their sharding under jit: constraints, out_shardings, reshard, on Auto and on Explicit meshes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, reshard
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, explicit, grid, put, sharded, stranger, values


@stranger(inserted={"all_gather x": 1})
def out_shardings_that_replicate():
    mesh = grid(x=8)
    full = jax.jit(lambda a: a * 2, out_shardings=NamedSharding(mesh, P()))
    return Call(mesh, full, sharded(mesh, P("x"), 16, 3))


@stranger(inserted={"all_to_all x": 1})
def out_shardings_along_the_other_dimension():
    mesh = grid(x=8)
    turned = jax.jit(lambda a: a + 1, out_shardings=NamedSharding(mesh, P(None, "x")))
    return Call(mesh, turned, sharded(mesh, P("x"), 16, 8))


# Each device slices its shard from the replicated array, so nothing is sent.
@stranger()
def out_shardings_of_a_replicated_array():
    mesh = grid(x=8)
    cosines = jax.jit(jnp.cos, out_shardings=NamedSharding(mesh, P("x")))
    return Call(mesh, cosines, sharded(mesh, P(), 16, 3))


@stranger()
def initialization_with_out_shardings():
    mesh = grid(x=8)

    def init(seed):
        return jax.random.normal(jax.random.key(seed), (16, 4))

    return Call(mesh, jax.jit(init, out_shardings=NamedSharding(mesh, P("x"))), put(mesh, P(), np.int32(7)))


@stranger()
def initialization_on_an_explicit_mesh():
    mesh = explicit(x=8)

    def init(seed):
        return {"w": jnp.full((16, 4), 0.5) * seed, "b": jnp.zeros(4)}

    shardings = {"w": NamedSharding(mesh, P("x")), "b": NamedSharding(mesh, P())}
    return Call(mesh, jax.jit(init, out_shardings=shardings), put(mesh, P(), np.float32(7)))


@stranger(flops=2 * 16 * 8 * 2, inserted={"all_gather x": 1})
def constraint_in_between():
    mesh = grid(x=4)

    @jax.jit
    def columns(a, w):
        full = lax.with_sharding_constraint(jnp.sin(a), NamedSharding(mesh, P()))
        return full @ w

    return Call(mesh, columns, sharded(mesh, P("x"), 16, 8), sharded(mesh, P(None, "x"), 8, 8))


# The second cumsum runs along a dimension that is not sharded, and the compiler gathers its operand all the same.
@stranger(inserted={"all_to_all x": 1, "all_gather x": 1})
def constraint_that_turns_rows_into_columns():
    mesh = grid(x=4)

    def turned(a):
        a = lax.with_sharding_constraint(jnp.cumsum(a, 1), NamedSharding(mesh, P(None, "x")))
        return jnp.cumsum(a, 0)

    return Call(mesh, turned, sharded(mesh, P("x"), 16, 8))


# A reduce-scatter would do, but the CPU's compiler makes an all-reduce and a slice.
@stranger(flops=2 * 8 * 2 * 6, inserted={"all_reduce x": 1})
def constraint_that_asks_for_a_reduce_scatter():
    mesh = grid(x=4)

    def scattered(a, b):
        return lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x")))

    return Call(mesh, scattered, sharded(mesh, P(None, "x"), 8, 8), sharded(mesh, P("x"), 8, 6))


@stranger(flops=2 * 4 * 8 * 6 + 2 * 4 * 6 * 4)
def explicit_matmuls_by_rows():
    mesh = explicit(x=4)

    def two(a, b, c):
        return jax.nn.relu(a @ b) @ c

    args = sharded(mesh, P("x", None), 16, 8), sharded(mesh, P(None, None), 8, 6), sharded(mesh, P(None, None), 6, 4)
    return Call(mesh, two, *args)


@stranger(flops=2 * 4 * 2 * 6, inserted={"all_reduce x": 1}, since=(0, 8))
def explicit_matmul_with_out_sharding():
    mesh = explicit(x=4)

    def product(a, b):
        return jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(mesh, P(None, None)))

    return Call(mesh, product, sharded(mesh, P(None, "x"), 4, 8), sharded(mesh, P("x", None), 8, 6))


@stranger(inserted={"all_gather x": 1})
def reshard_to_a_replicated_array():
    mesh = explicit(x=8)
    return Call(mesh, lambda a: reshard(a * 2, NamedSharding(mesh, P(None, None))), sharded(mesh, P("x", None), 16, 3))


@stranger(inserted={"all_gather y": 1})
def reshard_of_one_of_two_axes():
    mesh = explicit(x=4, y=2)
    rows = NamedSharding(mesh, P("x", None))
    return Call(mesh, lambda a: reshard(jnp.sin(a), rows), sharded(mesh, P("x", "y"), 8, 6))


@stranger(inserted={"all_to_all x": 1, "all_gather y": 1})
def reshard_to_the_other_dimension():
    mesh = explicit(x=4, y=2)
    return Call(mesh, lambda a: reshard(a, NamedSharding(mesh, P(None, "x"))), sharded(mesh, P("x", "y"), 8, 8))


@stranger(inserted={"collective_permute x,y": 1})
def reshard_to_swapped_axes():
    mesh = explicit(x=2, y=4)
    return Call(mesh, lambda a: reshard(a, NamedSharding(mesh, P(("y", "x")))), sharded(mesh, P(("x", "y")), 16, 3))


@stranger(inserted={"all_to_all x": 1})
def transpose_of_a_sharded_matrix():
    mesh = grid(x=4)

    def symmetric(a):
        return lax.with_sharding_constraint(a + a.T, NamedSharding(mesh, P("x")))

    return Call(mesh, symmetric, sharded(mesh, P("x"), 8, 8))


@stranger(flops=2 * 2 * 8 * 6, inserted={"all_gather x": 1})
def auto_axes_inside_an_explicit_mesh():
    mesh = explicit(x=4)

    @jax.sharding.auto_axes
    def inner(a, w):
        return a @ w

    def outer(a, w):
        return inner(a * 2, w, out_sharding=NamedSharding(mesh, P("x", None)))

    return Call(mesh, outer, sharded(mesh, P("x", None), 8, 8), sharded(mesh, P("x", None), 8, 6))


@stranger(inserted={"all_gather x": 1})
def spec_that_leaves_a_dimension_unconstrained():
    mesh = grid(x=4, y=2)

    def some(a):
        return lax.with_sharding_constraint(jnp.sin(a), NamedSharding(mesh, P(None, P.UNCONSTRAINED)))

    return Call(mesh, some, put(mesh, P("x", "y"), values(8, 8)))
