"""Each collective of `jax.lax` by itself, as JAX's own tests of shard_map try them."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from strangers.registry import Call, grid, on, ring, sharded, stranger


@stranger(yours={"all_reduce x": 1}, replayable=True)
def psum_along_one_axis():
    mesh = grid(x=4, y=2)
    total = on(mesh, P("x", "y"), P(None, "y"))(lambda v: lax.psum(v, "x"))
    return Call(mesh, total, sharded(mesh, P("x", "y"), 8, 6))


@stranger(yours={"all_reduce x,y": 1}, replayable=True)
def psum_along_both_axes():
    mesh = grid(x=4, y=2)
    total = on(mesh, P("x", "y"), P())(lambda v: lax.psum(v, ("y", "x")))
    return Call(mesh, total, sharded(mesh, P("x", "y"), 8, 6))


@stranger(yours={"all_reduce x": 1, "all_reduce y": 1}, replayable=True)
def psum_one_axis_after_the_other():
    mesh = grid(x=4, y=2)
    total = on(mesh, P("x", "y"), P())(lambda v: lax.psum(lax.psum(v, "x"), "y"))
    return Call(mesh, total, sharded(mesh, P("x", "y"), 8, 6))


@stranger(yours={"all_reduce b": 1, "all_reduce a,c": 1}, replayable=True)
def psums_in_three_dimensions():
    mesh = grid(a=2, b=2, c=2)

    @on(mesh, P("a", "b", "c"), (P("a", None, "c"), P(None, "b")))
    def sums(v):
        return lax.psum(v, "b"), lax.psum(jnp.sin(v), ("a", "c"))

    return Call(mesh, sums, sharded(mesh, P("a", "b", "c"), 4, 4, 4))


# XLA sends both in one instruction, which counts as two.
@stranger(yours={"all_reduce x": 2}, replayable=True)
def two_independent_psums():
    mesh = grid(x=8)
    sums = on(mesh, P("x"), P())(lambda v: (lax.psum(v, "x"), lax.psum(v * v, "x")))
    return Call(mesh, sums, sharded(mesh, P("x"), 16, 3))


# XLA sees that it is the same sum.
@stranger(yours={"all_reduce x": 1}, replayable=True)
def the_same_psum_written_twice():
    mesh = grid(x=8)
    doubled = on(mesh, P("x"), P())(lambda v: lax.psum(v, "x") + jnp.cos(lax.psum(v, "x")))
    return Call(mesh, doubled, sharded(mesh, P("x"), 16, 3))


# A float and an integer: psum of one, pmean of the other.
@stranger(yours={"all_reduce x": 2}, replayable=True)
def psum_and_pmean():
    mesh = grid(x=4)

    @on(mesh, P("x"), (P(), P()))
    def both(v):
        return lax.psum((v * 4).astype(jnp.int32), "x"), lax.pmean(v, "x")

    return Call(mesh, both, sharded(mesh, P("x"), 8, 3))


@stranger(yours={"all_reduce x": 1, "all_reduce y": 1}, replayable=True)
def pmax_and_pmin():
    mesh = grid(x=2, y=4)
    span = on(mesh, P("x", "y"), P())(lambda v: lax.pmax(lax.pmin(v, "y").sum(0), "x"))
    return Call(mesh, span, sharded(mesh, P("x", "y"), 4, 8))


# JAX computes the size of an axis when it traces.
@stranger(replayable=True)
def the_size_and_the_index_of_an_axis():
    mesh = grid(x=4, y=2)

    @on(mesh, P("x", "y"), P("x", "y"))
    def scaled(v):
        return v * lax.psum(1, ("x", "y")) + lax.axis_index("x")

    return Call(mesh, scaled, sharded(mesh, P("x", "y"), 8, 6))


@stranger(yours={"all_gather x": 1}, replayable=True)
def all_gather_of_rows():
    mesh = grid(x=8)
    full = on(mesh, P("x"), P(None), check_vma=False)(lambda v: lax.all_gather(v, "x", tiled=True))
    return Call(mesh, full, sharded(mesh, P("x"), 16, 5))


@stranger(yours={"all_gather y": 1}, replayable=True)
def all_gather_of_columns_on_a_new_dimension():
    mesh = grid(x=2, y=4)
    full = on(mesh, P("x", "y"), P("x", "y"))(lambda v: lax.all_gather(v, "y", axis=1).mean(2))
    return Call(mesh, full, sharded(mesh, P("x", "y"), 4, 8))


@stranger(yours={"all_gather x,y": 1}, replayable=True)
def all_gather_along_both_axes():
    mesh = grid(x=2, y=4)
    full = on(mesh, P(("x", "y")), P(None), check_vma=False)(lambda v: lax.all_gather(v, ("x", "y"), tiled=True))
    return Call(mesh, full, sharded(mesh, P(("x", "y")), 16, 3))


@stranger(yours={"all_gather x": 1}, since=(0, 10, 0), replayable=True)
def all_gather_to_an_invarying_array():
    mesh = grid(x=4)
    full = on(mesh, P("x"), P(None))(lambda v: lax.all_gather(v, "x", tiled=True, to="invarying"))
    return Call(mesh, full, sharded(mesh, P("x"), 8, 5))


@stranger(yours={"reduce_scatter x": 1}, replayable=True)
def psum_scatter_tiled():
    mesh = grid(x=4, y=2)

    @on(mesh, P(None, "y"), P("x", "y"), check_vma=False)
    def scattered(v):
        return lax.psum_scatter(v * (1 + lax.axis_index("x")), "x", tiled=True)

    return Call(mesh, scattered, sharded(mesh, P(None, "y"), 8, 6))


@stranger(yours={"reduce_scatter x": 1}, replayable=True)
def psum_scatter_of_slices():
    mesh = grid(x=8)
    scattered = on(mesh, P(None, "x"), P("x"))(lambda v: lax.psum_scatter(v, "x", scatter_dimension=0))
    return Call(mesh, scattered, sharded(mesh, P(None, "x"), 8, 16))


@stranger(yours={"reduce_scatter y": 1, "all_gather y": 1}, replayable=True)
def an_all_reduce_by_hand():
    mesh = grid(x=2, y=4)

    @on(mesh, P("x", "y"), P("x", "y"))
    def by_hand(v):
        return lax.all_gather(lax.psum_scatter(v, "y", tiled=True), "y", tiled=True)

    return Call(mesh, by_hand, sharded(mesh, P("x", "y"), 8, 8))


@stranger(yours={"all_to_all x": 1}, replayable=True)
def all_to_all_from_rows_to_columns():
    mesh = grid(x=8)
    turned = on(mesh, P("x"), P(None, "x"))(lambda v: lax.all_to_all(v, "x", 1, 0, tiled=True))
    return Call(mesh, turned, sharded(mesh, P("x"), 16, 8))


@stranger(yours={"all_to_all y": 1}, replayable=True)
def all_to_all_of_slices():
    mesh = grid(x=2, y=4)
    turned = on(mesh, P("x", None, "y"), P("x", "y"))(lambda v: lax.all_to_all(v, "y", 1, 2))
    return Call(mesh, turned, sharded(mesh, P("x", None, "y"), 2, 4, 8))


@stranger(yours={"all_to_all x,y": 1}, replayable=True)
def all_to_all_along_both_axes():
    mesh = grid(x=2, y=4)

    @on(mesh, P(None, ("x", "y")), P(("x", "y")))
    def turned(v):
        return lax.all_to_all(v, ("x", "y"), 0, 1, tiled=True)

    return Call(mesh, turned, sharded(mesh, P(None, ("x", "y")), 8, 16))


@stranger(yours={"all_to_all x": 1}, replayable=True)
def pswapaxes_of_a_block():
    mesh = grid(x=4)
    swapped = on(mesh, P("x"), P("x"))(lambda v: lax.pswapaxes(v[0], "x", 0)[None])
    return Call(mesh, swapped, sharded(mesh, P("x"), 4, 4, 3))


@stranger(yours={"collective_permute x": 1}, replayable=True)
def ppermute_around_a_ring():
    mesh = grid(x=8)
    shifted = on(mesh, P("x"), P("x"))(lambda v: lax.ppermute(v, "x", ring(8)))
    return Call(mesh, shifted, sharded(mesh, P("x"), 16, 3))


@stranger(yours={"collective_permute y": 1}, replayable=True)
def ppermute_along_the_second_axis():
    mesh = grid(x=2, y=4)
    shifted = on(mesh, P("x", "y"), P("x", "y"))(lambda v: lax.ppermute(v, "y", ring(4, 3)))
    return Call(mesh, shifted, sharded(mesh, P("x", "y"), 4, 8))


# Only device 2 sends.
@stranger(yours={"collective_permute x": 1}, replayable=True)
def ppermute_of_one_pair():
    mesh = grid(x=8)
    one = on(mesh, P("x"), P("x"))(lambda v: lax.ppermute(v, "x", [(2, 5)]))
    return Call(mesh, one, sharded(mesh, P("x"), 16, 3))


# Devices 0 and 1 swap; 2 keeps its block; 3 gets zeros.
@stranger(yours={"collective_permute x": 1}, replayable=True)
def ppermute_with_a_self_send():
    mesh = grid(x=4, y=2)
    some = on(mesh, P("x", "y"), P("x", "y"))(lambda v: lax.ppermute(v, "x", [(0, 1), (1, 0), (2, 2)]))
    return Call(mesh, some, sharded(mesh, P("x", "y"), 8, 4))


@stranger(yours={"collective_permute x": 3}, replayable=True)
def halos_from_both_sides_and_a_reversal():
    mesh = grid(x=8)

    @on(mesh, P("x"), P("x"))
    def stencil(v):
        left = lax.ppermute(v[-1:], "x", [(k, k + 1) for k in range(7)])
        right = lax.ppermute(v[:1], "x", [(k + 1, k) for k in range(7)])
        mirrored = lax.ppermute(v, "x", [(k, 7 - k) for k in range(8)])
        padded = jnp.concatenate([left, v, right])
        return padded[:-2] - 2 * padded[1:-1] + padded[2:] + mirrored

    return Call(mesh, stencil, sharded(mesh, P("x"), 32, 3))


# A ring through all devices of the mesh.
@stranger(yours={"collective_permute x,y": 1}, replayable=True)
def ppermute_along_both_axes():
    mesh = grid(x=2, y=4)
    shifted = on(mesh, P("x", "y"), P("x", "y"))(lambda v: lax.ppermute(v, ("x", "y"), ring(8)))
    return Call(mesh, shifted, sharded(mesh, P("x", "y"), 4, 8))


@stranger(yours={"collective_permute x": 1}, replayable=True)
def pshuffle_of_neighbors():
    mesh = grid(x=4)
    shuffled = on(mesh, P("x"), P("x"))(lambda v: lax.pshuffle(v, "x", [1, 0, 3, 2]))
    return Call(mesh, shuffled, sharded(mesh, P("x"), 8, 3))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def psum_in_groups_of_an_axis():
    mesh = grid(x=8)

    @on(mesh, P("x"), P("x"), check_vma=False)
    def grouped(v):
        return lax.psum(v, "x", axis_index_groups=[[0, 3, 4, 5], [1, 2, 6, 7]])

    return Call(mesh, grouped, sharded(mesh, P("x"), 16, 3))


@stranger(yours={"all_gather x": 1, "reduce_scatter x": 1}, replayable=True)
def gather_and_scatter_in_groups():
    mesh = grid(x=8)
    pairs = [[0, 4], [1, 5], [2, 6], [3, 7]]

    @on(mesh, P("x"), P("x"), check_vma=False)
    def grouped(v):
        both = lax.all_gather(v, "x", axis_index_groups=pairs, tiled=True)
        return lax.psum_scatter(jnp.sin(both), "x", axis_index_groups=pairs, tiled=True)

    return Call(mesh, grouped, sharded(mesh, P("x"), 16, 3))


@stranger(yours={"all_to_all x": 1}, replayable=True)
def all_to_all_in_groups():
    mesh = grid(x=8)
    halves = [[0, 1, 2, 3], [4, 5, 6, 7]]

    @on(mesh, P("x"), P("x"), check_vma=False)
    def grouped(v):
        return lax.all_to_all(v, "x", 1, 0, axis_index_groups=halves, tiled=True)

    return Call(mesh, grouped, sharded(mesh, P("x"), 8, 8))


@stranger(yours={"all_reduce x": 1}, replayable=True)
def a_mesh_with_axes_of_size_one():
    mesh = grid(w=1, x=4, z=1)
    total = on(mesh, P(("w", "x"), "z"), P(None, "z"))(lambda v: lax.psum(v, ("w", "x")))
    return Call(mesh, total, sharded(mesh, P("x", "z"), 8, 3))


# Nothing is sent along an axis of size 1, but XLA keeps the instructions.
@stranger(yours={"collective_permute": 1, "all_gather": 1, "reduce_scatter": 1}, replayable=True)
def collectives_along_an_axis_of_size_one():
    mesh = grid(x=4, z=1)

    @on(mesh, P("x", "z"), P("x", "z"))
    def nothing(v):
        return lax.all_gather(lax.ppermute(v, "z", [(0, 0)]), "z", tiled=True) + lax.psum_scatter(v, "z", tiled=True)

    return Call(mesh, nothing, sharded(mesh, P("x", "z"), 8, 3))


# vmap over a collective: still one, of all rows together.
@stranger(yours={"all_reduce x": 1, "collective_permute x": 1}, replayable=True)
def collectives_under_vmap():
    mesh = grid(x=4)

    @on(mesh, P(None, "x"), P(None, "x"))
    def rows(v):
        return jax.vmap(lambda row: lax.ppermute(row, "x", ring(4)) - lax.pmean(row, "x"))(v)

    return Call(mesh, rows, sharded(mesh, P(None, "x"), 6, 8))


# XLA removes the unused sum.
@stranger(yours={"all_reduce x": 1}, replayable=True)
def a_psum_whose_result_is_not_used():
    mesh = grid(x=4)

    @on(mesh, P("x"), P())
    def used(v):
        lax.psum(v * 3, "x")
        return lax.psum(v, "x")

    return Call(mesh, used, sharded(mesh, P("x"), 8, 3))


# XLA still gathers all rows, although one would do.
@stranger(yours={"all_gather x": 1}, replayable=True)
def a_gather_of_which_one_row_is_used():
    mesh = grid(x=4)
    first = on(mesh, P("x"), P("x"))(lambda v: v - lax.all_gather(v, "x")[0])
    return Call(mesh, first, sharded(mesh, P("x"), 8, 3))
