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
from grader.arrays.meshes import aval, make_mesh
from grader.hlo.lowering import NoReport
from grader.hlo.written import reconciled, written_in

MESH = {"x": 4, "y": 2}


def only(found):
    (collective,) = found.collectives
    return collective


def summed(mesh, over="x"):
    return jax.shard_map(lambda v: lax.psum(v, over), mesh=mesh, in_specs=P("x", "y"), out_specs=P(), check_vma=False)


def mixed(a, c, e, *, mesh):
    """A matmul left to the compiler, a sum written by hand, and an array that a shard_map wants in full."""
    whole = jax.shard_map(lambda v: 2 * v, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
    total = jax.shard_map(lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    return a @ c, total(e), whole(jnp.tanh(e))


@functools.cache
def report_on_the_mixture():
    mesh = make_mesh({"x": 8})
    args = (
        aval((64, 128), jnp.float32, P(None, "x"), mesh),
        aval((128, 64), jnp.float32, P("x", None), mesh),
        aval((64, 16), jnp.float32, P("x"), mesh),
    )
    return grader.communication(functools.partial(mixed, mesh=mesh), *args)


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
    mesh = make_mesh({"x": 8})
    loss = lambda w, x: ((x @ w) ** 2).sum()  # noqa: E731
    args = aval((16, 4), jnp.float32, P(), mesh), aval((32, 16), jnp.float32, P("x"), mesh)
    found = grader.communication(jax.value_and_grad(loss), *args)
    assert {(math.prod(c.operand), c.backward) for c in found.collectives} == {(1, False), (64, True)}
    assert "the compiler's, for dot_general, backward at test_report.py:" in repr(found)


def test_flops_count_loops_and_what_one_device_computes():
    mesh = make_mesh(MESH)

    def layers(w, x):
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)[0]

    found = grader.communication(
        layers, aval((24, 64, 64), jnp.float32, P(), mesh), aval((32, 64), jnp.float32, P("x"), mesh)
    )
    assert found.flops == 24 * 2 * 8 * 64 * 64


def test_axes_that_shard_map_leaves_to_the_compiler_are_read_too():
    mesh = make_mesh(MESH)

    def layer(x, w1, w2):
        return lax.pmean(jnp.maximum(x @ w1, 0) @ w2, "x")

    mapped = jax.shard_map(layer, mesh=mesh, in_specs=(P("x"), P(), P()), out_specs=P(), axis_names={"x"})
    args = aval((16, 32), jnp.float32, P("x"), mesh), aval((32, 64), jnp.float32, P(None, "y"), mesh)
    found = grader.communication(jax.jit(mapped), *args, aval((64, 32), jnp.float32, P("y"), mesh))
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
    mesh = make_mesh(MESH)

    def body(c, _):
        return lax.cond(c[0, 0] > 0, lambda: c @ c, lambda: c + 1), None

    found = grader.communication(
        lambda a: lax.scan(body, a, None, length=10)[0], aval((32, 32), jnp.float32, P(), mesh)
    )
    assert found.flops == 10 * 2 * 32**3 and "at most 655,360 FLOPs in matmuls" in repr(found)


def test_what_the_data_decides_is_not_shown_as_known():
    mesh = make_mesh(MESH)
    until = lambda a: lax.while_loop(lambda c: c.sum() < 9, lambda c: lax.psum(c, "y"), a)  # noqa: E731
    mapped = jax.shard_map(until, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False)
    found = grader.communication(mapped, aval((16, 32), jnp.float32, P("x", "y"), mesh))
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
    mesh = make_mesh({"x": 8})
    state = State(jnp.ones((4, 3)), np.int32(0))
    rows = NamedSharding(mesh, P("x"))
    batch = Batch(
        jax.device_put(np.ones((16, 4), np.float32), rows), jax.device_put(np.ones((16, 3), np.float32), rows)
    )
    jitted = jax.jit(step, static_argnames="times", donate_argnums=0)
    found = grader.communication(jitted, state, batch, rate=0.1, times=2)
    assert [(c.kind, c.axes) for c in found.collectives] == [("all_reduce", ("x",))] * 2
    lowered = jitted.lower(state, batch, rate=0.1, times=2)
    for stage in (lowered, lowered.compile()):
        assert grader.communication(stage).bytes_sent == found.bytes_sent
        assert [c.place for c in grader.communication(stage).collectives] == [c.place for c in found.collectives]


def test_compiled_text_is_read_from_a_string_and_from_a_file(tmp_path):
    mesh = make_mesh(MESH)
    text = jax.jit(summed(mesh)).lower(aval((16, 32), jnp.float32, P("x", "y"), mesh)).compile().as_text()
    (tmp_path / "step.txt").write_text(text)
    for given in (text, str(tmp_path / "step.txt"), tmp_path / "step.txt"):
        (found,) = grader.communication(given, mesh_axes=MESH).collectives
        assert (found.axes, found.yours, found.bytes_sent) == (("x",), True, 384)
    assert grader.communication(text).bytes_sent == 384


@pytest.mark.parametrize("array", [np.ones((16, 32), np.float32), jnp.ones((16, 32))], ids=["NumPy", "jax.numpy"])
def test_arrays_that_are_on_no_mesh_yet_are_taken(array):
    assert only(grader.communication(summed(make_mesh(MESH)), array)).bytes_sent == 384


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
    mesh = make_mesh(MESH)
    arrays = aval((16, 32), jnp.float32, P("x", "y"), mesh)
    compiled = jax.jit(summed(mesh)).lower(arrays).compile()
    for args, options, told in (
        ((compiled, arrays), {}, "takes no arguments; found arguments"),
        ((compiled,), {"mesh": mesh}, "takes no arguments; found `mesh=`"),
        ((compiled,), {"on": "v5e:2x4"}, "pass its function"),
        ((compiled.as_text(),), {"mesh_axes": {"x": 16}}, "has 16 devices, and the program was compiled for 8"),
        ((compiled.as_text(),), {"mesh_axes": 8}, "expected the sizes of a mesh's axes"),
        ((compiled.as_text().replace("all-reduce(%", "all-reduce(%no"),), {}, "breaks off"),
        (("",), {}, "found an empty string"),
        ((jnp.sin, arrays), {"on": 3}, "`on` names a pod"),
    ):
        with pytest.raises(ValueError, match=told):
            grader.communication(*args, **options)


def test_a_text_without_names_says_so():
    mesh = make_mesh(MESH)
    text = jax.jit(summed(mesh)).lower(aval((16, 32), jnp.float32, P("x", "y"), mesh)).compile().as_text()
    found = grader.communication(re.sub(r", metadata=\{[^}]*\}", "", text).replace("'x'", "'axis_0'"))
    assert found.bytes_sent == 384 and only(found).owner == "not named in the text"
    assert repr(found).startswith("mesh: 8 devices, whose axes `mesh_axes=` names")


def test_a_collective_that_the_cpu_lacks_is_told_with_what_to_do():
    mesh = make_mesh({"x": 8})

    def exchange(v):
        ones = jnp.ones(8, jnp.int32)
        starts = jnp.arange(8, dtype=jnp.int32)
        return lax.ragged_all_to_all(v, v, starts, ones, starts, ones, axis_name="x")

    mapped = jax.shard_map(exchange, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    with pytest.raises(NoReport, match='does not take this program: .*ragged.*on="v5e:2x4"'):
        grader.communication(mapped, jnp.ones((64, 4)))


def test_what_was_written_and_does_not_run_is_shown():
    mesh = make_mesh(MESH)

    def twice(v):
        return lax.psum(v, "x") + lax.psum(v, "x")

    mapped = jax.shard_map(twice, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
    found = grader.communication(mapped, aval((16, 32), jnp.float32, P("x", "y"), mesh))
    assert len(found.collectives) == len(found.removed) == 1
    assert "written, but not run: all_reduce of f32[4,16] over x (test_report.py:" in repr(found)


def test_what_the_compiler_makes_several_of_says_so():
    mesh = make_mesh(MESH)
    given = aval((16, 32), jnp.float32, P("x", "y"), mesh)
    mapped = jax.shard_map(lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
    (written,) = written_in(jax.jit(mapped).trace(given).jaxpr)
    one = only(grader.communication(mapped, given))
    (first, second), left = reconciled((one, one), (written,))
    assert (first.is_split, second.is_split, second.yours, left) == (False, True, True, ())
    assert second.about.endswith("; one of several that the compiler made of it")


def test_a_sum_in_bfloat16_says_what_the_cpu_makes_of_it():
    mesh = make_mesh(MESH)
    mapped = jax.shard_map(lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    found = only(grader.communication(mapped, aval((16, 32), jnp.bfloat16, P("x"), mesh)))
    assert (found.shape, found.written) == ("f32[4,32]", "bf16[4,32]")
    assert "written as bf16[4,32]" in str(found)


def test_the_report_reads_well():
    mesh = make_mesh(MESH)
    lines = repr(grader.communication(summed(mesh), aval((16, 32), jnp.float32, P("x", "y"), mesh))).splitlines()
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
    mesh = make_mesh(MESH)
    sides = [lambda v: v, lambda v: lax.psum(v, "x"), lambda v: lax.psum(lax.psum(v, "x") * 2, "x")]
    mapped = jax.shard_map(
        lambda k, v: lax.switch(k, sides, v), mesh=mesh, in_specs=(P(), P("y")), out_specs=P("y"), check_vma=False
    )
    given = aval((), jnp.int32, P(), mesh), aval((16, 32), jnp.float32, P("y"), mesh)
    found = grader.communication(mapped, *given)
    assert found.bytes_along == {"x": found.bytes_sent} == {"x": 2 * 2 * 8 * 32 * 4 * 3 // 4}
    found.assert_at_most(collectives=2)


class Layer:
    @functools.partial(jax.jit, static_argnums=0)
    def apply(self, x):
        return x.sum(0)


def test_a_jitted_method_is_taken():
    rows = aval((16, 4), jnp.float32, P("x"), make_mesh({"x": 8}))
    assert only(grader.communication(Layer().apply, rows)).kind == "all_reduce"


def test_two_reports_are_compared():
    mesh = make_mesh(MESH)
    arrays = aval((16, 32), jnp.float32, P("x", "y"), mesh)
    one, both = (grader.communication(summed(mesh, over), arrays) for over in ("x", ("x", "y")))
    change = both - one
    assert ([c.axes for c in change.gone], [c.axes for c in change.new]) == ([("x",)], [("x", "y")])
    assert change.bytes_sent == both.bytes_sent - one.bytes_sent == 448 - 384
    assert "per device: 384 B sent → 448 B sent (+64)" in repr(change)
    assert "the same collectives" in repr(one - one)


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
