"""The report on programs as people have them: what runs, on whose behalf, and what it comes to."""

import functools
import json
import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import grader
from grader.arrays.meshes import aval, make_mesh, put
from grader.hlo.lowering import NoReport
from grader.hlo.written import reconciled, written_in

MESH = {"x": 4, "y": 2}
GRID, ROW = make_mesh(MESH), make_mesh({"x": 8})
ARRAY = aval((16, 32), jnp.float32, P("x", "y"), GRID)


def only(found):
    (collective,) = found.collectives
    return collective


def mapped(body, in_specs=P("x", "y"), out_specs=P(), mesh=GRID, **options):
    return jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **{"check_vma": False, **options})


SUMMED = mapped(lambda v: lax.psum(v, "x"))


def mixed(a, c, e):
    """A matmul left to the compiler, a sum written by hand, and an array that a shard_map wants in full."""
    whole = mapped(lambda v: 2 * v, P(), mesh=ROW)
    total = mapped(lambda v: lax.psum(v, "x"), P("x"), mesh=ROW)
    return a @ c, total(e), whole(jnp.tanh(e))


@functools.cache
def report_on_the_mixture():
    shapes = {(64, 128): P(None, "x"), (128, 64): P("x", None), (64, 16): P("x")}
    return grader.communication(mixed, *(aval(shape, jnp.float32, spec, ROW) for shape, spec in shapes.items()))


def test_a_shard_map_hides_nothing_that_the_compiler_adds():
    found = {(c.kind, c.operand): c for c in report_on_the_mixture().collectives}
    assert {key: c.yours for key, c in found.items()} == {
        ("all_reduce", (64, 64)): False,
        ("all_reduce", (8, 16)): True,
        ("all_gather", (8, 16)): False,
    }
    assert [c.bytes_sent for c in found.values()].count(28672) == 1
    assert report_on_the_mixture().bytes_sent == 28672 + 896 + 3584


def test_each_says_the_line_that_it_serves():
    found = {(c.kind, c.operand): c for c in report_on_the_mixture().collectives}
    start = mixed.__code__.co_firstlineno
    yours, product = found["all_reduce", (8, 16)], found["all_reduce", (64, 64)]
    assert (yours.place.line, product.place.line) == (start + 3, start + 4)
    assert yours.owner == f"yours at test_report.py:{start + 3}"
    assert product.owner == f"the compiler's, for dot_general at test_report.py:{start + 4}"


def test_the_sums_of_a_gradient_say_that_they_are_of_the_backward_pass():
    loss = lambda w, x: ((x @ w) ** 2).sum()  # noqa: E731
    args = aval((16, 4), jnp.float32, P(), ROW), aval((32, 16), jnp.float32, P("x"), ROW)
    found = grader.communication(jax.value_and_grad(loss), *args)
    assert {(math.prod(c.operand), c.backward) for c in found.collectives} == {(1, False), (64, True)}
    assert "the compiler's, for dot_general, backward at test_report.py:" in repr(found)


def test_flops_count_loops_and_what_one_device_computes():
    def layers(w, x):
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)[0]

    found = grader.communication(
        layers, aval((24, 64, 64), jnp.float32, P(), GRID), aval((32, 64), jnp.float32, P("x"), GRID)
    )
    assert found.flops == 24 * 2 * 8 * 64 * 64


def test_axes_that_shard_map_leaves_to_the_compiler_are_read_too():
    def layer(x, w1, w2):
        return lax.pmean(jnp.maximum(x @ w1, 0) @ w2, "x")

    partly = mapped(layer, (P("x"), P(), P()), axis_names={"x"}, check_vma=True)
    shapes = {(16, 32): P("x"), (32, 64): P(None, "y"), (64, 32): P("y")}
    args = (aval(shape, jnp.float32, spec, GRID) for shape, spec in shapes.items())
    found = grader.communication(jax.jit(partly), *args)
    assert {(c.axes, c.yours, c.operation) for c in found.collectives} == {
        (("x",), True, "psum_invariant"),
        (("y",), False, "dot_general"),
    }
    assert found.flops == 2 * (4 * 32 * 32) * 2


def test_results_that_are_made_where_they_belong_need_no_gather():
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    init = jax.jit(lambda a: jnp.sin(a), out_shardings=NamedSharding(mesh, P("x")))
    replicated = jax.ShapeDtypeStruct((8, 64), jnp.float32, sharding=NamedSharding(mesh, P()))
    assert grader.communication(init, replicated).collectives == ()


def test_a_branch_counts_its_largest_in_every_iteration():
    def body(c, _):
        return lax.cond(c[0, 0] > 0, lambda: c @ c, lambda: c + 1), None

    given = aval((32, 32), jnp.float32, P(), GRID)
    found = grader.communication(lambda a: lax.scan(body, a, None, length=10)[0], given)
    assert found.flops == 10 * 2 * 32**3 and "at most 655,360 FLOPs in matmuls" in repr(found)


def test_what_the_data_decides_is_not_shown_as_known():
    until = lambda a: lax.while_loop(lambda c: c.sum() < 9, lambda c: lax.psum(c, "y"), a)  # noqa: E731
    found = grader.communication(mapped(until, out_specs=P("x", "y")), ARRAY)
    assert only(found).times is None and "× ?: at least 0 B sent per device (256 if each loop" in repr(found)
    with pytest.raises(AssertionError, match="at most 1,000,000 bytes sent .*; found at least 0 bytes sent .* .256 if"):
        found.assert_at_most(bytes=1_000_000)


@jax.tree_util.register_dataclass
@dataclass
class State:
    weights: Any
    step: Any


class Batch(NamedTuple):
    x: Any
    y: Any


def step(state, batch, *, rate, times):
    loss = lambda w: ((batch.x @ w - batch.y) ** 2).mean()  # noqa: E731
    weights = state.weights
    for _ in range(times):
        weights = weights - rate * jax.grad(loss)(weights)
    return State(weights, state.step + 1)


def test_whatever_jit_takes_is_taken():
    state = State(jnp.ones((4, 3)), np.int32(0))
    batch = Batch(*(put(np.ones((16, columns), np.float32), P("x"), ROW) for columns in (4, 3)))
    jitted = jax.jit(step, static_argnames="times", donate_argnums=0)
    found = grader.communication(jitted, state, batch, rate=0.1, times=2)
    assert [(c.kind, c.axes) for c in found.collectives] == [("all_reduce", ("x",))] * 2
    lowered = jitted.lower(state, batch, rate=0.1, times=2)
    for stage in (lowered, lowered.compile()):
        assert grader.communication(stage).bytes_sent == found.bytes_sent
        assert [c.place for c in grader.communication(stage).collectives] == [c.place for c in found.collectives]


def test_compiled_text_is_read_from_a_string_and_from_a_file(tmp_path):
    text = jax.jit(SUMMED).lower(ARRAY).compile().as_text()
    (tmp_path / "step.txt").write_text(text)
    for given in (text, str(tmp_path / "step.txt"), tmp_path / "step.txt"):
        (found,) = grader.communication(given, mesh_axes=MESH).collectives
        assert (found.axes, found.yours, found.bytes_sent) == (("x",), True, 384)
    assert grader.communication(text).bytes_sent == 384


@pytest.mark.parametrize("array", [np.ones((16, 32), np.float32), jnp.ones((16, 32))], ids=["NumPy", "jax.numpy"])
def test_arrays_that_are_on_no_mesh_yet_are_taken(array):
    assert only(grader.communication(SUMMED, array)).bytes_sent == 384


@pytest.mark.parametrize(
    "given, told",
    [
        ((5,), "expected a function, .* found int"),
        (("no/such/file",), "expected HLO text or the path of a file with it; 'no/such/file'"),
        (
            (
                jnp.sin,
                jax.ShapeDtypeStruct((8,), jnp.float32, sharding=NamedSharding(AbstractMesh((8,), ("x",)), P("x"))),
            ),
            'AbstractMesh .*on="v5e:2x4"',
        ),
    ],
)
def test_what_cannot_be_compiled_is_told_in_one_sentence(given, told):
    with pytest.raises(NoReport, match=told):
        grader.communication(*given)


def test_what_does_not_go_together_is_told():
    compiled = jax.jit(SUMMED).lower(ARRAY).compile()
    for args, options, told in (
        ((compiled, ARRAY), {}, "takes no arguments; found arguments"),
        ((compiled,), {"mesh": GRID}, "takes no arguments; found `mesh=`"),
        ((compiled,), {"on": "v5e:2x4"}, "pass its function"),
        ((compiled.as_text(),), {"mesh_axes": {"x": 16}}, "has 16 devices, and the program was compiled for 8"),
        ((compiled.as_text(),), {"mesh_axes": 8}, "expected the sizes of a mesh's axes"),
        ((compiled.as_text().replace("all-reduce(%", "all-reduce(%no"),), {}, "breaks off"),
        (("",), {}, "found an empty string"),
        ((jnp.sin, ARRAY), {"on": 3}, "`on` names a pod"),
    ):
        with pytest.raises(ValueError, match=told):
            grader.communication(*args, **options)


def test_a_text_without_names_says_so():
    text = jax.jit(SUMMED).lower(ARRAY).compile().as_text()
    found = grader.communication(re.sub(r", metadata=\{[^}]*\}", "", text).replace("'x'", "'axis_0'"))
    assert found.bytes_sent == 384 and only(found).owner == "not named in the text"
    assert repr(found).startswith("mesh: 8 devices, whose axes `mesh_axes=` names")


def test_a_collective_that_the_cpu_lacks_is_told_with_what_to_do():
    def exchange(v):
        ones = jnp.ones(8, jnp.int32)
        starts = jnp.arange(8, dtype=jnp.int32)
        return lax.ragged_all_to_all(v, v, starts, ones, starts, ones, axis_name="x")

    with pytest.raises(NoReport, match='does not take this program: .*ragged.*on="v5e:2x4"'):
        grader.communication(mapped(exchange, P("x"), P("x"), ROW), jnp.ones((64, 4)))


def test_what_was_written_and_does_not_run_is_shown():
    def twice(v):
        return lax.psum(v, "x") + lax.psum(v, "x")

    found = grader.communication(mapped(twice, out_specs=P(None, "y"), check_vma=True), ARRAY)
    assert len(found.collectives) == len(found.removed) == 1
    assert "written, but not run: all_reduce of f32[4,16] over x (test_report.py:" in repr(found)


def test_what_the_compiler_makes_several_of_says_so():
    (written,) = written_in(jax.jit(SUMMED).trace(ARRAY).jaxpr)
    one = only(grader.communication(SUMMED, ARRAY))
    (first, second), left = reconciled((one, one), (written,))
    assert (first.is_split, second.is_split, second.yours, left) == (False, True, True, ())
    assert second.about.endswith("; one of several that the compiler made of it")


def test_a_sum_in_bfloat16_says_what_the_cpu_makes_of_it():
    total = mapped(lambda v: lax.psum(v, "x"), P("x"))
    found = only(grader.communication(total, aval((16, 32), jnp.bfloat16, P("x"), GRID)))
    assert (found.shape, found.written) == ("f32[4,32]", "bf16[4,32]")
    assert "written as bf16[4,32]" in str(found)


def test_the_report_reads_well():
    lines = repr(grader.communication(SUMMED, ARRAY)).splitlines()
    assert lines[0] == "mesh: x=4 × y=2, compiled for CPU"
    assert lines[1].startswith("collectives (as the CPU's compiler chose")
    assert lines[2].startswith("  all_reduce of f32[4,16] over x: 384 B sent per device (yours at test_report.py:")
    assert lines[3].startswith("per device: 384 B sent, 0 FLOPs in matmuls, 0 elementwise, ")


def test_a_plain_function_on_one_device_says_so():
    found = grader.communication(lambda a: a + 1, jnp.ones(3))
    assert "one device" in repr(found) and found.bytes_sent == 0 and found.elementwise_flops == 3


def test_it_is_a_table_in_a_notebook_and_data_in_a_build():
    found = report_on_the_mixture()
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + len(found.collectives) and "dot_general" in page
    data = json.loads(found.to_json())
    assert data["bytes_sent"] == found.bytes_sent and data["flops"] == found.flops
    assert {c["kind"] for c in data["collectives"]} == {"all_reduce", "all_gather"}
    assert [c["bytes_sent"] for c in data["collectives"]] == [c.bytes_sent for c in found.collectives]


def test_the_daily_questions():
    found = report_on_the_mixture()
    assert [c.bytes_sent for c in found.by_bytes] == [28672, 3584, 896]
    assert found.bytes_along == {"x": found.bytes_sent}
    found.assert_no("all_to_all")
    found.assert_at_most(bytes=found.bytes_sent, flops=found.flops, peak_bytes=found.peak_bytes, collectives=3)


@pytest.mark.parametrize(
    "claim, told",
    [
        (lambda r: r.assert_no("all_gather", axis="x"), r"expected no all_gather along x; found:\n  all_gather of"),
        (
            lambda r: r.assert_at_most(bytes=1000),
            r"at most 1,000 bytes .*; found 33,152 bytes sent by the busiest device:\n  all_reduce of f32\[64,64\]",
        ),
        (lambda r: r.assert_at_most(flops=1), "at most 1 FLOPs in matmuls; found"),
        (lambda r: r.assert_at_most(peak_bytes=1), "at most 1 bytes of peak memory; found"),
        (lambda r: r.assert_at_most(collectives=1), "at most 1 collectives; found 3"),
    ],
)
def test_a_claim_that_does_not_hold_names_the_line(claim, told):
    with pytest.raises(AssertionError, match=f"(?s){told}"):
        claim(report_on_the_mixture())


def test_a_claim_with_a_misspelled_name_is_no_claim():
    for claim in (lambda r: r.assert_no("all-reduce"), lambda r: r.assert_no(axis="modle")):
        with pytest.raises(ValueError, match="expected .*: (all_reduce, |x;)"):
            claim(report_on_the_mixture())
    with pytest.raises(TypeError, match="expected a number, the most bytes sent by the busiest device; found '5'"):
        report_on_the_mixture().assert_at_most(bytes="5")


def test_bytes_along_an_axis_are_those_of_one_branch():
    sides = [lambda v: v, lambda v: lax.psum(v, "x"), lambda v: lax.psum(lax.psum(v, "x") * 2, "x")]
    given = aval((), jnp.int32, P(), GRID), aval((16, 32), jnp.float32, P("y"), GRID)
    found = grader.communication(mapped(lambda k, v: lax.switch(k, sides, v), (P(), P("y")), P("y")), *given)
    assert found.bytes_along == {"x": found.bytes_sent} == {"x": 2 * 2 * 8 * 32 * 4 * 3 // 4}
    found.assert_at_most(collectives=2)


class Layer:
    @functools.partial(jax.jit, static_argnums=0)
    def apply(self, x):
        return x.sum(0)


def test_a_jitted_method_is_taken():
    rows = aval((16, 4), jnp.float32, P("x"), ROW)
    assert only(grader.communication(Layer().apply, rows)).kind == "all_reduce"


def test_two_reports_are_compared():
    programs = SUMMED, mapped(lambda v: lax.psum(v, ("x", "y")))
    one, both = (grader.communication(program, ARRAY) for program in programs)
    change = both - one
    assert ([c.axes for c in change.gone], [c.axes for c in change.new]) == ([("x",)], [("x", "y")])
    assert change.bytes_sent == both.bytes_sent - one.bytes_sent == 448 - 384
    assert "per device: 384 B sent → 448 B sent (+64)" in repr(change)
    assert "the same collectives" in repr(one - one)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_groups_that_the_compiler_counts_in_another_order_are_read(axis):
    mesh = make_mesh({"x": 2, "y": 2, "z": 2})
    total = jax.jit(lambda a: a.sum(0), out_shardings=NamedSharding(mesh, P()))
    assert only(grader.communication(total, aval((8, 3), jnp.float32, P(axis), mesh))).axes == (axis,)


def moved(sizes, held, wanted):
    """What the compiler sends to lay a 16 × 24 float32 array otherwise."""
    mesh = make_mesh(sizes)

    def move(a):
        return lax.with_sharding_constraint(a, NamedSharding(mesh, wanted))

    return grader.communication(move, aval((16, 24), jnp.float32, held, mesh)).collectives


EXCHANGES = [
    *((MESH, axes) for axes in ("x", "y", ("x", "y"), ("y", "x"))),
    ({"x": 2, "y": 4}, "x"),
    ({"x": 8, "y": 1}, "x"),
]


@pytest.mark.parametrize("sizes, axes", EXCHANGES)
def test_an_all_to_all_that_the_compiler_chose_is_read_and_counted_once(sizes, axes):
    (found,) = moved(sizes, P(axes, None), P(None, axes))
    n = math.prod(sizes[axis] for axis in axes)
    assert (found.kind, set(found.axes), found.group, found.operand) == ("all_to_all", set(axes), n, (16 // n, 24))
    assert found.bytes == 16 * 24 * 4 // n and found.bytes_sent == (n - 1) * found.bytes // n


def test_an_all_to_all_over_a_part_of_an_axis_is_read():
    exchanged, passed_on = moved(MESH, P("x", "y"), P("y", "x"))
    assert (exchanged.kind, exchanged.axes, exchanged.group) == ("all_to_all", ("x",), 2)
    assert (passed_on.kind, set(passed_on.axes)) == ("collective_permute", {"x", "y"})
