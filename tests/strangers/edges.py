"""Edge cases for a reader of compiled text: nested loops and branches, callbacks, pmap, uneven shards."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, reshard
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, explicit, grid, on, put, ring, sharded, stranger, values


# No device receives anything, so every device gets zeros.
@stranger(yours={"collective_permute": 1}, replayable=True)
def ppermute_without_pairs():
    mesh = grid(x=4)
    zeros = on(mesh, P("x"), P("x"))(lambda v: v + lax.ppermute(v, "x", []))
    return Call(mesh, zeros, sharded(mesh, P("x"), 8, 4))


@stranger(yours={"collective_permute": 1}, replayable=True)
def ppermute_to_oneself():
    mesh = grid(x=4)
    same = on(mesh, P("x"), P("x"))(lambda v: v + lax.ppermute(v, "x", ring(4, 0)))
    return Call(mesh, same, sharded(mesh, P("x"), 8, 4))


# Groups of 3 and of 5: the devices of the second send more.
@stranger(yours={"all_reduce x": 1}, replayable=True)
def psum_in_unequal_groups():
    mesh = grid(x=8)

    @on(mesh, P("x"), P("x"), check_vma=False)
    def grouped(v):
        return lax.psum(v, "x", axis_index_groups=[[0, 1, 2], [3, 4, 5, 6, 7]])

    return Call(mesh, grouped, sharded(mesh, P("x"), 16, 4))


@stranger(yours={"all_reduce x": 30}, replayable=True)
def psum_of_thirty_arrays():
    mesh = grid(x=8)
    sums = on(mesh, P("x"), P())(lambda v: lax.psum([v * k for k in range(30)], "x"))
    return Call(mesh, sums, sharded(mesh, P("x"), 16, 4))


# Constants: JAX multiplies a number itself, and XLA an array.
@stranger(replayable=True, since=(0, 10))
def psum_of_constants():
    mesh = grid(x=4)
    scaled = on(mesh, P("x"), P("x"))(lambda v: v * lax.psum(2.5, "x") + lax.psum(jnp.ones(4), "x"))
    return Call(mesh, scaled, sharded(mesh, P("x"), 8, 4))


# A barrier keeps two equal sums apart.
@stranger(yours={"all_reduce x": 2}, replayable=True)
def a_barrier_between_equal_psums():
    mesh = grid(x=4)

    @on(mesh, P("x"), P(), check_vma=False)
    def two(v):
        total, v = lax.optimization_barrier((lax.psum(v, "x"), v))
        return total + lax.psum(v, "x")

    return Call(mesh, two, sharded(mesh, P("x"), 8, 4))


# Device 0 sends two rows in one branch, and one in the other; device 2 only in that one.
@stranger(yours={"collective_permute x": 2}, replayable=True)
def branches_in_which_other_devices_send():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"), check_vma=False)
    def switched(v, which):
        def one(v):
            return lax.ppermute(v, "x", [(0, 1)])

        def two(v):
            return lax.ppermute(v[:1], "x", [(0, 1), (2, 3)]) + v

        return lax.switch(which, [one, two, lambda v: v], v)

    return Call(mesh, switched, sharded(mesh, P("x"), 8, 4), put(mesh, P(), np.int32(1)))


# Only one column of the mesh reaches the psum, but every device of that column does.
@stranger(yours={"all_reduce x": 1}, replayable=True)
def a_psum_in_a_branch_of_one_column():
    mesh = grid(x=4, y=2)

    @on(mesh, P("x", "y"), P("x", "y"), check_vma=False)
    def some(v):
        return lax.cond(lax.axis_index("y") == 0, lambda v: lax.psum(v, "x"), lambda v: -v, v)

    return Call(mesh, some, sharded(mesh, P("x", "y"), 8, 4))


@stranger(yours={"all_reduce x": 1, "all_reduce y": 1, "collective_permute y": 1}, replayable=True)
def a_cond_in_a_cond():
    mesh = grid(x=4, y=2)

    @on(mesh, (P("x", "y"), P(), P()), P("x", "y"), check_vma=False)
    def nested(v, first, second):
        def inner(v):
            return lax.cond(second > 0, lambda v: lax.psum(v, "x"), lambda v: lax.ppermute(v, "y", ring(2)), v)

        return lax.cond(first > 0, inner, lambda v: lax.psum(v, "y"), v)

    flags = [put(mesh, P(), np.float32(1)) for _ in range(2)]
    return Call(mesh, nested, sharded(mesh, P("x", "y"), 8, 4), *flags)


@stranger(yours={"all_reduce x": 3, "all_gather x": 3}, replayable=True)
def collectives_in_branches_in_a_scan():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"), check_vma=False)
    def steps(v, flags):
        def step(c, flag):
            centered = lambda c: c - lax.pmean(c, "x")  # noqa: E731
            return lax.cond(flag > 0, centered, lambda c: lax.all_gather(c, "x").max(0), c), None

        return lax.scan(step, v, flags)[0]

    return Call(mesh, steps, sharded(mesh, P("x"), 8, 4), put(mesh, P(), np.array([1, -1, 1], np.float32)))


# A loop of unknown length counts once, with its largest branch.
@stranger(flops=2 * 2 * 4 * 4, yours={"all_reduce x": 2}, replayable=True)
def a_matmul_in_a_branch_of_a_while_loop():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"), check_vma=False)
    def settled(v, w):
        def step(c):
            return lax.cond(lax.psum(c.sum(), "x") > 0, lambda c: c @ w * 0.1, lambda c: c * 0.1, c)

        return lax.while_loop(lambda c: lax.pmax(jnp.abs(c).max(), "x") > 0.5, step, v)

    return Call(mesh, settled, sharded(mesh, P("x"), 8, 4), sharded(mesh, P(), 4, 4))


@stranger(yours={"all_reduce x": 1, "collective_permute x": 2}, replayable=True)
def permutes_in_branches_of_a_while_loop():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"), check_vma=False)
    def settled(v, flag):
        def step(c):
            one = lambda c: lax.ppermute(c, "x", [(0, 1)]) * 0.1  # noqa: E731
            return lax.cond(flag > 0, one, lambda c: lax.ppermute(c[:1], "x", [(0, 1), (2, 3)]) + c * 0.1, c)

        return lax.while_loop(lambda c: lax.pmax(jnp.abs(c).max(), "x") > 0.5, step, v)

    return Call(mesh, settled, sharded(mesh, P("x"), 8, 4), put(mesh, P(), np.float32(1)))


# Three loops of unknown length: a collective in them counts once.
@stranger(yours={"all_reduce x": 2}, replayable=True)
def a_while_loop_in_a_scan():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def steps(v):
        def step(c, _):
            more = lambda c: lax.pmax(jnp.abs(c).max(), "x") > 0.5  # noqa: E731
            return 2 * lax.while_loop(more, lambda c: c / 2 + lax.psum(c, "x") / 100, c), None

        return lax.scan(step, v, length=3)[0]

    return Call(mesh, steps, sharded(mesh, P("x"), 8, 4))


@stranger(yours={"all_reduce x": 2}, replayable=True)
def a_scan_in_a_while_loop():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"))
    def settled(v):
        def step(c):
            return lax.scan(lambda c, _: (c / 2 + lax.psum(c, "x") / 100, None), c, length=3)[0]

        return lax.while_loop(lambda c: lax.pmax(jnp.abs(c).max(), "x") > 0.5, step, v)

    return Call(mesh, settled, sharded(mesh, P("x"), 8, 4))


# Under vmap both branches run, and the results are chosen from.
@stranger(flops=2 * (2 * 2 * 4 * 4), replayable=True)
def a_cond_under_vmap():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P()), P("x"), check_vma=False)
    def rows(v, w):
        return jax.vmap(lambda r: lax.cond(r.sum() > 0, lambda r: r @ w, lambda r: jnp.sin(r) @ w.T, r))(v)

    return Call(mesh, rows, sharded(mesh, P("x"), 8, 4), sharded(mesh, P(), 4, 4))


# XLA turns both into elementwise multiplications, which are no FLOPs of matmuls.
@stranger(yours={"all_reduce x": 1}, replayable=True)
def outer_and_inner_products_of_vectors():
    mesh = grid(x=4)

    @on(mesh, (P("x"), P("x")), (P("x"), P()))
    def both(a, b):
        return jnp.outer(a, b), lax.psum(a @ b, "x")

    return Call(mesh, both, sharded(mesh, P("x"), 8), sharded(mesh, P("x"), 8))


@stranger(flops=2 * 2 * 4, replayable=True)
def a_matrix_times_a_vector():
    mesh = grid(x=4)
    return Call(mesh, on(mesh, (P("x"), P()), P("x"))(jnp.dot), sharded(mesh, P("x"), 8, 4), sharded(mesh, P(), 4))


# On a CPU, each device multiplies all of its rows by the weights of all 3 groups.
@stranger(flops=3 * (2 * 4 * 6 * 5), replayable=True)
def ragged_dot_of_each_device():
    mesh = grid(x=4)
    product = on(mesh, (P("x"), P(), P("x")), P("x"))(lax.ragged_dot)
    sizes = put(mesh, P("x"), np.array([1, 2, 1] * 4, np.int32))
    return Call(mesh, product, sharded(mesh, P("x"), 16, 6), sharded(mesh, P(), 3, 6, 5), sizes)


# 10 rows on 4 devices: three for each, except for the last one. An uneven result has to be gathered.
@stranger(flops=2 * 3 * 4 * 4, inserted={"all_gather x": 1})
def rows_that_cannot_be_sharded_evenly():
    mesh = grid(x=4)

    def uneven(a, w):
        return lax.with_sharding_constraint(jnp.sin(a)[:10], NamedSharding(mesh, P("x"))) @ w

    return Call(mesh, uneven, sharded(mesh, P(), 12, 4), sharded(mesh, P(), 4, 4))


@stranger(yours={"all_reduce x": 1})
def a_callback_to_python():
    mesh = grid(x=4)

    @on(mesh, P("x"), P(), check_vma=False)
    def total(v):
        doubled = jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(v.shape, v.dtype), v)
        return lax.psum(doubled, "x")

    return Call(mesh, total, sharded(mesh, P("x"), 8, 4))


@stranger(yours={"collective_permute x": 1})
def a_print_in_between():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"), check_vma=False)
    def shifted(v):
        jax.debug.print("{}", v[0, 0])
        return lax.ppermute(v, "x", ring(4))

    return Call(mesh, shifted, sharded(mesh, P("x"), 8, 4))


# Factorizations are calls of LAPACK, whose FLOPs do not count.
@stranger(flops=2 * 4 * 4 * 4, yours={"all_gather x": 2}, replayable=True)
def factorizations():
    mesh = grid(x=4)

    @on(mesh, P("x"), P("x"), check_vma=False)
    def factors(v):
        lower = jnp.linalg.cholesky(v @ v.T + 4 * jnp.eye(4))
        triangles = lax.all_gather(jnp.linalg.qr(v, mode="r"), "x", tiled=True)
        return jnp.abs(jnp.linalg.qr(triangles, mode="r")) + lax.all_gather(lower, "x").mean(0)

    return Call(mesh, factors, sharded(mesh, P("x"), 16, 4))


# The transform itself has no matmuls.
@stranger(yours={"all_to_all x": 1})
def a_fourier_transform_in_two_dimensions():
    mesh = grid(x=4)

    @on(mesh, P("x"), P(None, "x"))
    def transformed(v):
        return jnp.fft.fft(lax.all_to_all(jnp.fft.fft(v), "x", 1, 0, tiled=True), axis=0)

    return Call(mesh, transformed, sharded(mesh, P("x"), 8, 8))


@stranger(flops=2 * 3 * 2 * 5, yours={"all_gather i": 1}, since=(0, 10))
def pmap_on_some_devices():
    mesh = grid(i=4)
    mapped = jax.pmap(lambda v, w: lax.all_gather(v @ w, "i"), "i", in_axes=(0, None), devices=list(mesh.devices))
    return Call(mesh, mapped, values(4, 3, 2), values(2, 5))


@stranger(inserted={"all_gather x": 1}, under=True)
def a_bare_spec_under_a_mesh_that_is_set():
    mesh = grid(x=4)
    return Call(mesh, lambda a: lax.with_sharding_constraint(jnp.sin(a), P(None)), sharded(mesh, P("x"), 8, 4))


@stranger(yours={"all_reduce x": 1}, under=True, replayable=True)
def shard_map_under_a_mesh_that_is_set():
    mesh = grid(x=4)

    def total(a):
        return jax.shard_map(lambda v: lax.psum(v, "x"), in_specs=P("x"), out_specs=P())(a)

    return Call(mesh, total, sharded(mesh, P("x"), 8, 4))


# Partial sums, which are then reduced to rows. XLA has no reduce-scatter for that on a CPU.
@stranger(flops=2 * 8 * 2 * 8, inserted={"all_reduce x": 1}, under=True, since=(0, 10))
def an_unreduced_matmul():
    mesh = explicit(x=4)

    def product(a, b):
        parts = jnp.einsum("ij,jk->ik", a, b, out_sharding=P(None, None, unreduced={"x"}))
        return reshard(parts, P("x", None))

    return Call(mesh, product, sharded(mesh, P(None, "x"), 8, 8), sharded(mesh, P("x", None), 8, 8))
