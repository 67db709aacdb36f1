"""Reading programs: every collective, its axes, its bytes, and how often it runs."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import grader
from grader.arrays.meshes import aval, make_mesh
from grader.programs.structure import ring_bytes

MESH = {"x": 4, "y": 2}


def report(body, spec=P("x", "y"), out=P(None), mesh=MESH):
    """The report on a shard_map of `body` over a 16 × 32 float32 array."""
    m = make_mesh(mesh)
    mapped = jax.shard_map(body, mesh=m, in_specs=spec, out_specs=out, check_vma=False)
    return grader.communication(mapped, aval((16, 32), jnp.float32, spec, m))


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
    found = only(report(body))
    assert (found.kind, found.axes, found.operand, found.bytes) == (kind, axes, (4, 16), BLOCK)
    assert found.bytes_sent == sent and found.times == 1


def test_a_program_with_a_shard_map_is_compiled_when_its_costs_are_asked_for(monkeypatch):
    compiled = []
    compile_it = jax.stages.Lowered.compile
    monkeypatch.setattr(jax.stages.Lowered, "compile", lambda *args: compiled.append(args) or compile_it(*args))
    found = report(lambda a: lax.psum(a, "x"))
    assert found.bytes_sent and not compiled
    assert found.flops and found.peak_bytes and len(compiled) == 1


def shift(axis, n):
    return lambda k, c: lax.ppermute(c, axis, [(i, (i + 1) % n) for i in range(n)])


def test_a_collective_in_a_loop_of_seven_counts_seven():
    found = only(report(lambda a: lax.fori_loop(0, 7, shift("x", 4), a)))
    assert (found.times, found.bytes_sent) == (7, 7 * BLOCK)


def test_loops_in_loops_and_called_functions_are_multiplied():
    def body(a):
        inner = jax.jit(lambda c: lax.fori_loop(1, 6, shift("x", 4), c))
        return lax.scan(lambda c, _: (inner(c), None), a, None, length=3)[0]

    assert only(report(body)).times == 15


@pytest.mark.parametrize(
    "body",
    [
        lambda a: lax.cond(lax.axis_index("x") == 0, lambda c: lax.psum(c, "y"), lambda c: c, a),
        lambda a: lax.while_loop(lambda c: c.sum() < 9, lambda c: lax.psum(c, "y"), a),
    ],
)
def test_what_is_known_only_at_run_time_is_not_counted_as_known(body):
    assert only(report(body)).times is None


def test_dtypes_take_their_bytes():
    found = only(report(lambda a: lax.psum(a.astype(jnp.bfloat16), "y")))
    assert (found.dtype, found.bytes) == ("bf16", BLOCK // 2)


def test_specs_and_manual_axes_are_read():
    (region,) = report(lambda a: lax.psum(a, "y"), out=P("x", None)).structure.manual
    assert region.axes == ("x", "y")
    assert region.in_specs == (P("x", "y"),)
    assert tuple(region.out_specs[0]) == ("x", None)


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, lambda f: jax.jit(lambda a: jax.jit(f)(a))])
def test_operands_that_do_not_lie_as_in_specs_say_are_counted(around):
    mesh = make_mesh(MESH)
    mapped = jax.shard_map(lambda a: a, mesh=mesh, in_specs=P(None, "y"), out_specs=P(None, "y"))
    found = only(grader.communication(around(mapped), aval((16, 32), jnp.float32, P("x", "y"), mesh)))
    assert found.implicit and found.kind == "all_gather" and found.axes == ("x",)
    assert found.bytes_sent == 3 * BLOCK


def test_what_lies_along_the_compilers_axes_stays_there():
    """Manual along x only: in_specs do not speak of y, so an array that is cut along y is not gathered."""
    mesh = make_mesh(MESH)
    given = aval((16, 32), jnp.float32, P("x", "y"), mesh)
    along_x = jax.shard_map(
        lambda a: a - lax.pmean(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}
    )
    assert only(grader.communication(along_x, given)).kind == "all_reduce"
    across = jax.shard_map(lambda a: a, mesh=mesh, in_specs=P(None, "x"), out_specs=P(None, "x"), axis_names={"x"})
    assert only(grader.communication(across, given)).implicit


def test_without_shard_map_the_compilers_choice_is_read():
    mesh = make_mesh(MESH)
    found = grader.communication(
        jnp.matmul, aval((16, 32), jnp.float32, P(None, "x"), mesh), aval((32, 24), jnp.float32, P("x", None), mesh)
    )
    assert found.by_compiler
    assert [(c.kind, c.axes) for c in found.collectives] == [("all_reduce", ("x",))]
    assert found.flops >= 2 * 16 * 8 * 24 and found.peak_bytes > 0


@pytest.mark.parametrize("axes", ["x", "y", ("x", "y"), ("y", "x")])
def test_an_exchange_that_the_compiler_chose_is_read_as_one(axes):
    mesh = make_mesh(MESH)
    n = math.prod(MESH[axis] for axis in axes)
    columns = jax.jit(lambda a: a * 2, out_shardings=NamedSharding(mesh, P(None, axes)))
    found = only(grader.communication(columns, aval((16, 32), jnp.float32, P(axes, None), mesh)))
    assert (found.kind, set(found.axes), found.operand) == ("all_to_all", set(axes), (16 // n, 32))
    assert found.bytes_sent == 16 * 32 * 4 // n * (n - 1) // n


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_groups_that_the_compiler_counts_in_another_order_are_read(axis):
    mesh = make_mesh({"x": 2, "y": 2, "z": 2})
    total = jax.jit(lambda a: a.sum(0), out_shardings=NamedSharding(mesh, P()))
    assert only(grader.communication(total, aval((8, 3), jnp.float32, P(axis), mesh))).axes == (axis,)


def test_flops_are_per_device_and_loops_count():
    body = lambda a: lax.fori_loop(0, 5, lambda k, c: (c @ c.T) @ c, a)  # noqa: E731
    assert report(body, out=P("x", "y")).flops >= 5 * (2 * 4 * 16 * 4 + 2 * 4 * 4 * 16)


def test_the_report_reads_well():
    assert repr(report(lambda a: lax.psum(a, "x"))).splitlines()[:4] == [
        "mesh: x=4 × y=2",
        "shard_map over x, y: P('x', 'y') → P(None, None)",
        "collectives (as written):",
        "  all_reduce of f32[4,16] over x: 384 B sent per device",
    ]


def test_a_plain_function_on_one_device_says_so():
    found = grader.communication(lambda a: a + 1, jnp.ones(3))
    assert "one device" in repr(found) and found.bytes_sent == 0


def test_nobody_sends_anything_to_itself():
    assert all(ring_bytes(kind, 100, 1) == 0 for kind in ("all_gather", "all_reduce", "collective_permute"))


def ring(a, b, *, first, looped=False):
    """Products of blocks of `a` that go round on 4 devices: all of them `first`, or one during each product."""
    there = [(k, (k + 1) % 4) for k in range(4)]
    if first:
        blocks = [a]
        for _ in range(3):
            blocks.append(lax.ppermute(blocks[-1], "x", there))
        return jnp.concatenate(blocks) @ b

    def step(_, carried):
        block, total = carried
        return lax.ppermute(block, "x", there), total + jnp.matmul(block, b)

    carried = (a, jnp.zeros((a.shape[0], b.shape[1])))
    if looped:
        return lax.fori_loop(0, 3, step, carried)[1]
    for k in range(3):
        carried = step(k, carried)
    return carried[1]


@pytest.mark.parametrize(
    "how, meanwhile",
    [
        ({"first": True}, [0, 0, 0]),
        ({"first": False}, [192, 192]),  # one product for each; the last block goes nowhere
        ({"first": False, "looped": True}, [192]),
    ],
)
def test_what_can_be_computed_during_a_transfer_is_counted(how, meanwhile):
    mesh = make_mesh({"x": 4})
    specs = P("x"), P(None, "x")
    mapped = jax.shard_map(
        functools.partial(ring, **how), mesh=mesh, in_specs=specs, out_specs=P(None, "x"), check_vma=False
    )
    found = grader.communication(
        mapped, aval((16, 8), jnp.float32, specs[0], mesh), aval((8, 12), jnp.float32, specs[1], mesh)
    )
    assert {c.kind for c in found.collectives} == {"collective_permute"}
    assert [c.meanwhile for c in found.collectives] == meanwhile


def moved(sizes, held, wanted):
    """What the compiler sends to lay a 16 × 24 float32 array otherwise."""
    mesh = make_mesh(sizes)

    def move(a):
        return lax.with_sharding_constraint(a, NamedSharding(mesh, wanted))

    return grader.communication(move, aval((16, 24), jnp.float32, held, mesh)).collectives


@pytest.mark.parametrize("sizes", [{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8, "y": 1}])
def test_an_all_to_all_that_the_compiler_chose_is_read_and_counted_once(sizes):
    (found,) = moved(sizes, P("x", None), P(None, "x"))
    n = sizes["x"]
    assert (found.kind, found.axes, found.group, found.bytes) == ("all_to_all", ("x",), n, 16 * 24 * 4 // n)
    assert found.bytes_sent == (n - 1) * found.bytes // n


def test_an_all_to_all_over_a_part_of_an_axis_is_read():
    exchanged, passed_on = moved(MESH, P("x", "y"), P("y", "x"))
    assert (exchanged.kind, exchanged.axes, exchanged.group) == ("all_to_all", ("x",), 2)
    assert (passed_on.kind, set(passed_on.axes)) == ("collective_permute", {"x", "y"})


def test_what_is_no_collective_is_an_error():
    with pytest.raises(ValueError, match="no collective 'all-gather'; there are all_reduce, all_gather"):
        ring_bytes("all-gather", 4, 8)
    assert ring_bytes("collective_permute", 4, 8) == 4 and ring_bytes("all_gather", 4, 1) == 0


@pytest.mark.parametrize("array", [np.ones(8, np.float32), jnp.ones(8)], ids=["NumPy", "jax.numpy"])
def test_arguments_that_are_on_no_mesh_are_told_where_they_belong(array):
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:4])
    total = jax.shard_map(lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    with pytest.raises(ValueError, match=r"a mesh of 4 devices, and its arguments are on 1\..* `put\(array, P"):
        grader.communication(total, array)


def test_roots_are_counted_however_they_are_written_and_those_of_lengths_are_none():
    ways = [
        lambda a: a * lax.rsqrt(a.sum(1, keepdims=True)),
        lambda a: a * a.sum(1, keepdims=True) ** -0.5,
        lambda a: a / jnp.sqrt(a.sum(1, keepdims=True)),
        lambda a: a * lax.rsqrt(a.sum(1, keepdims=True)) / jnp.sqrt(a.shape[1]) * 3.0**-0.5,
    ]
    assert [report(way, out=P("x", "y")).written.roots for way in ways] == [4, 4, 4, 4]
