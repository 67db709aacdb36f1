"""Repairs: a program whose collectives are left out, run elsewhere or put in, against one that was written so."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.arrays.meshes import aval, make_mesh
from grader.programs.execution import execute, results_with
from grader.programs.program import trace
from grader.programs.repairs import Repair, repairs_of
from grader.programs.walk import structure

MESH = {"x": 4, "y": 2}
A = Array(np.arange(1, 33, dtype=np.float32).reshape(8, 4) / 7, P("x", "y"))
B = Array(np.arange(5, 29, dtype=np.float32).reshape(4, 6) / 3, P("y"))


def product(*, bring=lambda part: part, end=lambda total: total, first=lambda block: block):
    """A product of matrices with what is done to the blocks, to the partial sums, and at the end."""

    def body(a, b):
        return end(bring(first(a) @ b))

    def fn(a, b):
        return jax.shard_map(body, mesh=make_mesh(MESH), in_specs=(A.spec, B.spec), out_specs=P("x"), check_vma=False)(
            a, b
        )

    mesh = make_mesh(MESH)
    return trace(fn, *(aval(a.value.shape, a.value.dtype, a.spec, mesh) for a in (A, B)))


def later(**how):
    """The same, traced once a test asks for it: whoever collects the tests would else trace eighty programs."""
    return functools.partial(product, **how)


def around(block, step):
    return lax.ppermute(block, "x", [(d, (d + step) % 4) for d in range(4)])


def three_times(block):
    return lax.fori_loop(0, 3, lambda _, block: around(block, 1), block)


def along(*axes):
    return lambda part: lax.psum(part, axes)


PAIRS = [
    (
        later(bring=along("y"), end=along("x")),
        later(bring=along("y")),
        Repair("all_reduce", 1, "leave out", ("x",)),
    ),
    (later(bring=along("x")), later(bring=along("y")), Repair("all_reduce", 0, "run along", ("x",), ("y",))),
    (later(), later(bring=along("y")), Repair("product", 0, "sum", (), ("y",))),
    (
        later(end=jax.nn.relu),
        later(end=lambda p: lax.pmean(jax.nn.relu(p), "y")),
        Repair("result", 0, "mean", (), ("y",)),
    ),
    (later(bring=along("y")), later(bring=lambda p: lax.pmean(p, "y")), Repair("all_reduce", 0, "average", ("y",))),
    (later(bring=lambda p: lax.pmean(p, "y")), later(bring=along("y")), Repair("all_reduce", 0, "add up", ("y",))),
    (later(bring=lambda p: lax.pmax(p, "y")), later(bring=along("y")), Repair("all_reduce", 0, "total", ("y",))),
    (later(bring=along("y")), later(bring=lambda p: lax.pmax(p, "y")), Repair("all_reduce", 0, "largest", ("y",))),
    (
        later(first=lambda a: around(a, 1)),
        later(first=lambda a: around(a, -1)),
        Repair("collective_permute", 0, "turn round", ("x",)),
    ),
    (
        later(first=three_times),
        later(first=lambda a: lax.fori_loop(0, 3, lambda _, a: around(a, -1), a)),
        Repair("collective_permute", 0, "turn round", ("x",)),
    ),
    (
        later(bring=lambda p: lax.all_gather(p, ("x", "y"))[3]),
        later(bring=lambda p: lax.all_gather(p, ("y", "x"))[3]),
        Repair("all_gather", 0, "run along", ("x", "y"), ("y", "x")),
    ),
]


def rows_of(axis, more=0, round_=False):
    """The row of a block that has a device's number along an axis."""

    def first(block):
        k = lax.axis_index(axis) + more
        return lax.dynamic_slice_in_dim(block, k % 2 if round_ else k, 1, 0)

    return first


def turns(count):
    """As many turns, without a collective in them."""
    return lambda total: lax.fori_loop(0, count, lambda i, a: a / 2 + i, total)


STEPS = [
    (lax.neg, lambda p: p, Repair("change of sign", 0, "skip")),
    (lambda p: jnp.minimum(p, 9), lambda p: jnp.maximum(p, 9), Repair("elementwise minimum", 0, "other")),
    (lambda p: p * 3, lambda p: p / 3, Repair("multiplication", 0, "other")),
    (lambda p: p - 3, lambda p: 3 - p, Repair("subtraction", 0, "turn about")),
    (lambda p: p + 3, lambda p: p, Repair("addition", 0, "keep first")),
    (lambda p: 3 - p, lambda p: p, Repair("subtraction", 0, "keep second")),
    (lambda p: jnp.where(p > 20, p, 2 * p), lambda p: jnp.where(p > 20, 2 * p, p), Repair("`where`", 0, "turn about")),
    (lambda p: p * (p > 20), lambda p: p * (p < 20), Repair("comparison", 0, "turn about")),
    (lambda p: p * (p == p[0]), lambda p: p * (p != p[0]), Repair("comparison", 0, "opposite")),
    (lambda p: p * (p > p[0]), lambda p: p * (p >= p[0]), Repair("comparison", 0, "or equal")),
    (
        lambda p: jnp.concatenate([p[:1], p[1:]]),
        lambda p: jnp.concatenate([p[1:], p[:1]]),
        Repair("`concatenate`", 0, "turn about"),
    ),
    (lambda p: p[:1], lambda p: p[1:], Repair("slice", 0, "one more")),
    (lambda p: p[1:], lambda p: p[:1], Repair("slice", 0, "one less")),
    (rows_of("y", -1), rows_of("y"), Repair("axis_index", 0, "one more", ("y",))),
    (rows_of("y", 1), rows_of("y"), Repair("axis_index", 0, "one less", ("y",))),
    (rows_of("y"), rows_of("y", 1, True), Repair("axis_index", 0, "one further", ("y",))),
    (rows_of("y"), rows_of("y", 1, True), Repair("axis_index", 0, "one back", ("y",))),
    (rows_of("x"), rows_of("y"), Repair("axis_index", 0, "other axis", ("x",), ("y",))),
    (turns(3), turns(4), Repair("comparison", 0, "one more")),
    (turns(3), turns(4), Repair("comparison", 0, "or equal")),
    (turns(3), turns(2), Repair("comparison", 0, "one less")),
    (lambda p: around(p, 1), lambda p: around(p, 2), Repair("collective_permute", 0, "one further", ("x",), ("x",))),
    (lambda p: around(p, 1), lambda p: p, Repair("collective_permute", 0, "one back", ("x",), ("x",))),
    (lambda p: p - 20, lambda p: jax.nn.relu(p - 20), Repair("result", 0, "relu")),
    (lambda p: p, jnp.square, Repair("result", 0, "the square")),
    (lambda p: jnp.square(p), jnp.abs, Repair("result", 0, "the square root")),
    (lambda p: p, lambda p: -p, Repair("result", 0, "the other sign")),
    (lambda p: p, lambda p: 2 * p, Repair("result", 0, "twice")),
    (lambda p: p, lambda p: p / 2, Repair("result", 0, "half")),
    (lambda p: p * 3 * 5, lambda p: p / 3 / 5, Repair("multiplication", 0, "other", every=True)),
    (
        lambda p: jax.nn.relu(jax.nn.relu(p) - 20),
        lambda p: jnp.minimum(jnp.minimum(p, 0) - 20, 0),
        Repair("elementwise maximum", 0, "other", every=True),
    ),
    (
        lambda p: around(p, 1) + 2 * around(around(p, 1), 1),
        lambda p: around(p, -1) + 2 * around(around(p, -1), -1),
        Repair("collective_permute", 0, "turn round", ("x",), every=True),
    ),
    (lambda p: p, lambda p: p / 2**0.5, Repair("product", 0, "over the root")),
    (lambda p: p[:, :2], lambda p: p[:, :2].T, Repair("result", 0, "transposed")),
]
PAIRS += [(later(end=one), later(end=other), repair) for one, other, repair in STEPS]


def blocks(results):
    return [block for result in results for block in result.blocks.values]


@pytest.mark.parametrize("program, other, repair", PAIRS, ids=[f"{e.way} {e.kind}" for _, _, e in PAIRS])
def test_an_edited_program_does_what_one_does_that_was_written_so(program, other, repair):
    program, other = program(), other()
    assert repair in repairs_of(program)
    found = blocks(results_with([repair], program, MESH, [A, B], [P("x")])[0])
    due = blocks(execute(other, MESH, [A, B], [P("x")], structure(other)).results)
    before = blocks(execute(program, MESH, [A, B], [P("x")], structure(program)).results)
    assert all(np.allclose(one, other, rtol=1e-5) for one, other in zip(found, due, strict=True))
    assert not all(np.array_equal(one, other) for one, other in zip(before, due, strict=True))


def test_many_are_compiled_at_once_and_do_not_meet():
    program = product(bring=along("y"), end=lambda p: jax.nn.relu(jax.nn.relu(p) - 9))
    repairs = repairs_of(program)
    together = results_with(repairs, program, MESH, [A, B], [P("x")])
    for repair, found in zip(repairs, together, strict=True):
        (alone,) = results_with([repair], program, MESH, [A, B], [P("x")])
        assert all(map(np.array_equal, blocks(found), blocks(alone)))


def test_no_change_lets_a_loop_run_for_ever_or_a_device_wait():
    """The counter of a loop is left as it is; where a collective stands in a loop, so are all whole numbers; and all
    steps where a loop ends by a float."""
    kinds = lambda end: {repair.kind for repair in repairs_of(product(end=end))}  # noqa: E731
    assert "addition of whole numbers" not in kinds(turns(3)) and "comparison" in kinds(turns(3))
    assert "comparison" not in kinds(three_times)
    until = lambda p: lax.while_loop(lambda a: a[0, 0] > 1, lambda a: a / 2, p)  # noqa: E731
    assert "division" in kinds(lambda p: p / 3) and not {"division", "comparison"} & kinds(until)


def test_a_division_by_a_constant_is_not_turned_about():
    """As that of a mean: turned about, it may undo another mistake."""
    ways = lambda end: {(one.kind, one.way) for one in repairs_of(product(end=end))}  # noqa: E731
    assert ("division", "turn about") not in ways(lambda p: p / 24)
    assert ("division", "turn about") in ways(lambda p: 24 / p) & ways(lambda p: p / p[0])


def test_the_likeliest_comes_first_and_a_long_program_has_none():
    changes = [repair.way for repair in repairs_of(product(bring=along("y")))]
    assert changes[0] == "leave out" and changes.index("run along") < changes.index("average") < changes.index("sum")

    def often(part):
        for _ in range(25):
            part = lax.psum(part, "y")
        return part

    assert repairs_of(product(bring=often)) == ()


def test_a_step_that_is_called_twice_and_compiled_by_itself_is_left_out_once():
    """(It is one operation at two sites: whoever asks anything of it after it is gone ends the process.)"""
    step = jax.jit(lambda total: lax.psum(total, "x") / 2)
    made = product(bring=along("y"), end=lambda total: step(step(total)))
    repair = next(one for one in repairs_of(made) if one.way == "leave out" and one.every)
    ((found,),) = results_with([repair], made, MESH, [A, B], [P("x")])
    (wanted,) = execute(
        halves := product(bring=along("y"), end=lambda total: total / 4), MESH, [A, B], [P("x")], structure(halves)
    ).results
    for block, due in zip(found.blocks.values, wanted.blocks.values, strict=True):
        np.testing.assert_allclose(block, due, rtol=1e-6)
