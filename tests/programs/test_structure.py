"""Reading programs: every collective, its axes, its bytes, and how often it runs."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh
from grader.programs.collectives import ring_bytes
from grader.programs.program import trace
from grader.programs.walk import structure

MESH = {"x": 4, "y": 2}


def written(fn, *args):
    """The structure of a program as it is written."""
    return structure(trace(fn, *args))


def read(body, spec=P("x", "y"), out=P(None), mesh=MESH):
    """The structure of a shard_map of `body` over a 16 × 32 float32 array."""
    m = make_mesh(mesh)
    mapped = jax.shard_map(body, mesh=m, in_specs=spec, out_specs=out, check_vma=False)
    return written(mapped, aval((16, 32), jnp.float32, spec, m))


def only(found):
    (collective,) = found.collectives
    return collective


BLOCK = 4 * 16 * 4  # a block of 4 × 16 float32, in bytes


@pytest.mark.parametrize(
    "body, kind, axes, sent",
    [
        (lambda a: lax.psum(a, "x"), "all_reduce", ("x",), 2 * BLOCK * 3 // 4),
        (lambda a: lax.psum(a, "y"), "all_reduce", ("y",), BLOCK),
        (lambda a: lax.psum(a, ("x", "y")), "all_reduce", ("x", "y"), 2 * BLOCK * 7 // 8),
        (lambda a: lax.pmax(a, "y"), "all_reduce", ("y",), BLOCK),
        (lambda a: lax.all_gather(a, "x", tiled=True), "all_gather", ("x",), 3 * BLOCK),
        (lambda a: lax.psum_scatter(a, "x", tiled=True), "reduce_scatter", ("x",), BLOCK * 3 // 4),
        (lambda a: lax.all_to_all(a, "x", 1, 0, tiled=True), "all_to_all", ("x",), BLOCK * 3 // 4),
        (lambda a: lax.ppermute(a, "y", [(0, 1), (1, 0)]), "collective_permute", ("y",), BLOCK),
    ],
)
def test_kind_axes_and_bytes_of_each_collective(body, kind, axes, sent):
    found = only(read(body))
    assert (found.kind, found.axes, found.operand, found.bytes) == (kind, axes, (4, 16), BLOCK)
    assert found.bytes_sent == sent and found.times == 1


def shift(axis, n):
    return lambda k, c: lax.ppermute(c, axis, [(i, (i + 1) % n) for i in range(n)])


def test_a_collective_in_a_loop_of_seven_counts_seven():
    found = only(read(lambda a: lax.fori_loop(0, 7, shift("x", 4), a)))
    assert (found.times, found.bytes_sent) == (7, 7 * BLOCK)


def test_loops_in_loops_and_called_functions_are_multiplied():
    def body(a):
        inner = jax.jit(lambda c: lax.fori_loop(1, 6, shift("x", 4), c))
        return lax.scan(lambda c, _: (inner(c), None), a, None, length=3)[0]

    assert only(read(body)).times == 15


@pytest.mark.parametrize(
    "body",
    [
        lambda a: lax.cond(lax.axis_index("x") == 0, lambda c: lax.psum(c, "y"), lambda c: c, a),
        lambda a: lax.while_loop(lambda c: c.sum() < 9, lambda c: lax.psum(c, "y"), a),
    ],
)
def test_what_is_known_only_at_run_time_is_not_counted_as_known(body):
    assert only(read(body)).times is None


def test_dtypes_take_their_bytes():
    found = only(read(lambda a: lax.psum(a.astype(jnp.bfloat16), "y")))
    assert (found.dtype, found.bytes) == ("bf16", BLOCK // 2)


def test_specs_and_manual_axes_are_read():
    (region,) = read(lambda a: lax.psum(a, "y"), out=P("x", None)).manual
    assert region.axes == ("x", "y")
    assert region.in_specs == (P("x", "y"),)
    assert tuple(region.out_specs[0]) == ("x", None)


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, lambda f: jax.jit(lambda a: jax.jit(f)(a))])
def test_operands_that_do_not_lie_as_in_specs_say_are_counted(around):
    mesh = make_mesh(MESH)
    mapped = jax.shard_map(lambda a: a, mesh=mesh, in_specs=P(None, "y"), out_specs=P(None, "y"))
    found = only(written(around(mapped), aval((16, 32), jnp.float32, P("x", "y"), mesh)))
    assert found.implicit and found.kind == "all_gather" and found.axes == ("x",)
    assert found.bytes_sent == 3 * BLOCK


def test_what_lies_along_the_compilers_axes_stays_there():
    """Manual along x only: in_specs do not speak of y, so an array that is cut along y is not gathered."""
    mesh = make_mesh(MESH)
    given = aval((16, 32), jnp.float32, P("x", "y"), mesh)
    along_x = jax.shard_map(
        lambda a: a - lax.pmean(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )
    assert only(written(along_x, given)).kind == "all_reduce"
    across = jax.shard_map(lambda a: a, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"), axis_names={"x"})
    assert only(written(across, given)).implicit


def test_flops_are_per_device_and_loops_count():
    body = lambda a: lax.fori_loop(0, 5, lambda k, c: (c @ c.T) @ c, a)  # noqa: E731
    assert read(body, out=P("x", "y")).dot_flops == 5 * (2 * 4 * 16 * 4 + 2 * 4 * 4 * 16)


def test_what_is_no_collective_is_an_error():
    with pytest.raises(ValueError, match="no collective 'all-gather'; there are all_reduce, all_gather"):
        ring_bytes("all-gather", 4, 8)


def test_nobody_sends_anything_to_itself():
    assert all(ring_bytes(kind, 100, 1) == 0 for kind in ("all_gather", "all_reduce", "collective_permute"))


def test_roots_are_counted_however_they_are_written_and_those_of_lengths_are_none():
    ways = [
        lambda a: a * lax.rsqrt(a.sum(1, keepdims=True)),
        lambda a: a * a.sum(1, keepdims=True) ** -0.5,
        lambda a: a / jnp.sqrt(a.sum(1, keepdims=True)),
        lambda a: a * lax.rsqrt(a.sum(1, keepdims=True)) / jnp.sqrt(a.shape[1]) * 3.0**-0.5,
    ]
    assert [read(way, out=P("x", "y")).roots for way in ways] == [4, 4, 4, 4]
