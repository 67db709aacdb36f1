"""What every device holds in the end is what JAX computes; and where devices wait, nothing hangs."""

from __future__ import annotations

import functools
import itertools
import linecache
import re
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from answering import ROOT, answered, asked
from jax import lax
from jax.sharding import PartitionSpec as P
from rota import LONG, in_turn, parts, taking_turns

import grader
from grader.arrays.laid import holds_arrays
from grader.arrays.meshes import make_mesh, put
from grader.arrays.numbers import close, same_numbers
from grader.exercises.forms import ProgramExercise
from grader.jax_versions import option_set, varying
from grader.lessons import EXERCISES
from grader.programs.program import with_gradient
from grader.replays.lockstep import Lockstep, Reach
from grader.replays.page import Replay
from grader.replays.watch import BY_COMPILER, playback_within
from grader.watching import watchable

MESH = {"x": 4, "y": 2}
GRID = np.arange(1.0, 65.0, dtype=np.float32).reshape(8, 8)
ROUND = [(k, (k + 1) % 4) for k in range(4)]
playback = functools.partial(playback_within, Reach())


def mapped(body, spec=P("x", "y"), out=P("x", "y"), **options):
    mesh = make_mesh(MESH)
    return jax.shard_map(body, **{"mesh": mesh, "in_specs": spec, "out_specs": out, "check_vma": False, **options})


def assert_as_jax_has_it(fn, *args):
    found, expected = playback(fn, *args), jax.jit(fn)(*args)
    assert found.ended == ""
    assert jax.tree.structure(found.result) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found.result), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        assert same_numbers(np.asarray(one), np.asarray(other))
    return found


@pytest.mark.parametrize(
    "body, out",
    [
        (lambda a: lax.psum(a, ("x", "y")), P()),
        (lambda a: lax.pmean(a.astype(jnp.bfloat16), "y"), P("x")),
        (lambda a: lax.pmax((a * 3).astype(jnp.int32), "x") - lax.pmin(a.astype(jnp.int32), "y"), P("x", "y")),
        (lambda a: lax.all_gather(a, ("y", "x"), axis=1).reshape(2, -1), P("x", "y")),
        (lambda a: lax.all_gather(a, "x", tiled=True), P(None, "y")),
        (lambda a: lax.psum_scatter(a, "y", scatter_dimension=1, tiled=True), P("x", "y")),
        (lambda a: lax.psum_scatter(a.reshape(2, 4), "y"), P(("x", "y"))),
        (lambda a: lax.ppermute(a, "x", ROUND[:-1]), P("x", "y")),
        (lambda a: lax.all_to_all(a, "y", 1, 0, tiled=True), P("x", "y")),
        (lambda a: lax.all_to_all(a.reshape(2, 2, 2), "y", 1, 0).reshape(2, 4), P("x", "y")),
        (lambda a: a + lax.axis_index(("x", "y")) + lax.axis_size("x"), P("x", "y")),
        (lambda a: jax.vmap(lambda row: lax.psum(row, "x"))(a), P(None, "y")),
        (lambda a: jax.random.normal(jax.random.fold_in(jax.random.key(1), lax.axis_index("y")), (2, 2)), P("x", "y")),
        (lambda a: jnp.where(lax.psum(a > 20, "x") > 1, a, 0), P("x", "y")),
        (lambda a: jax.checkpoint(lambda v: jnp.sin(lax.psum(v, "x")))(a), P(None, "y")),
        (lambda a: lax.fori_loop(0, lax.axis_index("x") + 1, lambda k, v: 2 * v, a), P("x", "y")),
        (lambda a: lax.scan(lambda c, row: (c + row, lax.psum(row, "y")), a[0], a, reverse=True)[1], P("x", "y")),
        (lambda a: lax.cond(lax.axis_index("y") == 0, lambda v: lax.psum(v, "x"), lambda v: -v, a), P("x", "y")),
        (lambda a: lax.switch(lax.axis_index("x"), [jnp.sin, jnp.cos, jnp.abs], a), P("x", "y")),
        (lambda a: {"two": (a, lax.psum(a, "y"))}, {"two": (P("x", "y"), P("x"))}),
    ],
)
def test_each_collective_and_each_part_of_a_program_gives_what_jax_gives(body, out):
    assert_as_jax_has_it(mapped(body, out=out), GRID)


@jax.custom_vjp
def _summed_on_the_way_back(x):
    return x


_summed_on_the_way_back.defvjp(lambda x: (x, None), lambda _, g: (varying(lax.psum(g, "x"), "x"),))


@pytest.mark.parametrize("check", [False, True])
def test_gradients_go_forward_and_then_back(check):
    def loss(a):
        local = lambda v: lax.pmean(jnp.tanh(_summed_on_the_way_back(v)).sum(), ("x", "y"))  # noqa: E731
        return mapped(local, out=P(), check_vma=check)(a)

    ways = [frame.backward for frame in assert_as_jax_has_it(jax.value_and_grad(loss), GRID / 64).frames]
    assert set(ways) == {False, True} and ways == sorted(ways)


def test_axes_that_are_left_to_the_compiler_and_a_shard_map_inside_another():
    def inner(a):
        return 2 * lax.psum(a, "y")

    def outer(a):
        a = lax.psum(a, "x")
        return jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(a)

    partly = jax.jit(mapped(outer, P("x"), P(), axis_names={"x"}, check_vma=True))
    assert_as_jax_has_it(partly, GRID)
    assert_as_jax_has_it(lambda a: lax.scan(lambda total, row: (total + partly(a), row), 0 * a[:2, :4], a)[0], GRID)


def test_a_mesh_of_three_axes():
    mesh = make_mesh({"x": 2, "y": 2, "z": 2})
    body = lambda a: lax.psum(a, ("z", "x")) + lax.axis_index("y")  # noqa: E731
    assert_as_jax_has_it(jax.shard_map(body, mesh=mesh, in_specs=P(("z", "x"), "y"), out_specs=P(None, "y")), GRID)


EVERY = [(k, (3 * k + 1) % 8) for k in range(8)]
REFUSES = "jax_raise_on_ppermute_sort_diff"  # since JAX 0.11.1: an option, on by default


@pytest.fixture
def any_order():
    """JAX takes the axes of a ppermute in any order."""
    with option_set(REFUSES, False):
        yield


@pytest.mark.parametrize("axes", [("x", "y"), ("y", "x")])
@pytest.mark.parametrize(
    "body",
    [
        lambda a, axes: lax.ppermute(a, axes, EVERY),
        lambda a, axes: lax.ppermute(a, axes, EVERY[:3]),
        lambda a, axes: lax.pshuffle(a, axes, [source for source, _ in EVERY]),
        lambda a, axes: lax.all_gather(a, axes, tiled=True),
        lambda a, axes: lax.psum_scatter(jnp.repeat(a, 8, 0) * jnp.arange(8.0)[:, None], axes, tiled=True),
        lambda a, axes: lax.all_to_all(a, axes, 1, 0, tiled=True),
        lambda a, axes: a + lax.axis_index(axes),
    ],
)
def test_along_several_axes_devices_have_the_order_that_jax_gives_them(body, axes, any_order):
    over_both = mapped(lambda a: body(a, axes), P(("x", "y")), P(("x", "y")))
    assert_as_jax_has_it(over_both, GRID)


def test_devices_along_several_axes_of_three_have_the_order_that_jax_gives_them(any_order):
    mesh = make_mesh({"x": 2, "y": 2, "z": 2})
    for axes in itertools.permutations("xyz", 2):
        body = lambda a, axes=axes: lax.ppermute(a, axes, ROUND) + 100 * lax.axis_index(axes)  # noqa: E731
        specs = {"in_specs": P(("x", "y", "z")), "out_specs": P(("x", "y", "z"))}
        assert_as_jax_has_it(jax.shard_map(body, mesh=mesh, check_vma=False, **specs), GRID)


@pytest.mark.skipif(not hasattr(jax.config, REFUSES), reason="this JAX takes the axes of a ppermute in any order")
def test_an_order_of_axes_that_jax_refuses_is_named():
    found = grader.replay(mapped(lambda a: lax.ppermute(a, ("y", "x"), EVERY)), GRID)
    assert found.facts.ended == "This JAX refuses ppermute over y, x: name the axes in the mesh's order."


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.int32])
@pytest.mark.parametrize("collective", [lax.pmax, lax.pmin])
def test_a_maximum_of_what_is_no_number_is_that_of_jax_on_cpus(collective, dtype):
    """Every pattern of NaN on four devices, in a column each; of integers, every pattern of -1."""
    patterns = np.array(list(itertools.product([False, True], repeat=4))).T
    odd = np.nan if dtype != np.int32 else -1
    values = np.where(patterns, odd, np.arange(4.0)[:, None] - 2).astype(dtype)
    over_x = functools.partial(collective, axis_name="x")
    assert_as_jax_has_it(mapped(over_x, P("x"), P("x")), values)
    alone = jax.shard_map(over_x, mesh=make_mesh({"x": 1}), in_specs=P(), out_specs=P(), check_vma=False)
    assert_as_jax_has_it(alone, values)


def _ragged(a):
    me, ones = lax.axis_index("x"), jnp.ones(4, jnp.int32)
    return lax.ragged_all_to_all(a, 0 * a, jnp.arange(4), ones, me * ones, ones, axis_name="x")


@pytest.mark.parametrize(
    "body, expected, sent",
    [
        (_ragged, np.arange(16.0).reshape(4, 4).T.ravel(), 16),
        (lambda a: lax.pbroadcast(a, "x", 2), np.tile(np.arange(8.0, 12.0), 4), 16),
    ],
)
def test_what_simulated_devices_cannot_do_is_worked_out_all_the_same(body, expected, sent):
    found = playback(mapped(body, P("x"), P("x")), np.arange(16.0, dtype=np.float32))
    assert found.result.tolist() == expected.tolist()
    assert [f.transfer.bytes_sent for f in found.frames if f.transfer] == [sent]


@pytest.mark.parametrize(
    "body, said",
    [
        (
            lambda a: lax.cond(lax.axis_index("x") == 0, lambda v: lax.psum(v, "x"), lambda v: v, a),
            "Device 0 stands in psum over x in line {}; devices 2, 4, 6 never come there.",
        ),
        (
            lambda a: lax.while_loop(
                lambda s: s[0] < lax.axis_index("x") + 1,
                lambda s: (s[0] + 1, lax.ppermute(s[1], "x", ROUND)),
                (0, a),
            )[1],
            "Devices 2, 4, 6 stand in ppermute over x in line {}; device 0 never comes there.",
        ),
    ],
)
def test_of_devices_that_wait_it_is_said_who_stands_where_and_who_never_comes(body, said):
    found = playback(mapped(body, P("x"), P("x")), GRID)
    (frame,) = [f for f in found.frames if f.waits]
    assert found.result is None
    assert said.format(frame.place.first) in found.ended
    assert "ppermute" in linecache.getline(__file__, frame.place.first) or "psum" in said


def test_a_group_that_is_complete_waits_for_nobody():
    body = lambda a: lax.cond(lax.axis_index("y") == 0, lambda v: lax.psum(v, "x"), lambda v: v, a)  # noqa: E731
    sent = [f.transfer for f in playback(mapped(body), GRID).frames if f.transfer]
    assert [one.groups for one in sent] == [((0, 2, 4, 6),)]


@pytest.mark.parametrize(
    "limit, said",
    [
        ({"max_lines": 5}, "Stopped after 5 lines. "),
        ({"max_seconds": 0}, "Stopped after 0 s. "),
        ({"max_elements": 10}, "Stopped before an array of shape (8, 8): that is more than 10 elements. "),
        ({"max_elements": 100}, "an array of shape (2, 16) on 8 devices: that is more than 100 elements. "),
    ],
)
def test_at_a_limit_a_replay_names_the_argument_that_raises_it(limit, said):
    body = lambda a: lax.fori_loop(0, 9, lambda k, v: jnp.concatenate([lax.ppermute(v, "x", ROUND)] * 4, 1)[:, :4], a)  # noqa: E731
    found = grader.replay(mapped(body), GRID, **limit)
    assert said in found.facts.ended and found.result is None
    assert f"raise `{next(iter(limit))}` of `grader.replay`" in found.facts.ended


def test_limits_can_be_raised_and_time_stays_bounded():
    many = mapped(lambda a: lax.fori_loop(0, 500, lambda k, v: lax.ppermute(v, "x", ROUND), a))
    large = mapped(lambda a: jnp.broadcast_to(a.sum(), (1 << 20, 1))[:1, 0], out=P("x"))
    assert grader.replay(many, GRID).result is None and grader.replay(large, GRID).result is None
    assert close(grader.replay(many, GRID, max_lines=2000, max_seconds=60).result, np.asarray(jax.jit(many)(GRID)))
    assert close(grader.replay(large, GRID, max_elements=1 << 23).result, np.asarray(jax.jit(large)(GRID)))
    with pytest.raises(ValueError, match="max_seconds should be between 0 and 600"):
        grader.replay(many, GRID, max_seconds=np.inf)


def test_what_cannot_be_worked_out_ends_with_what_was_seen_until_then():
    """A solver whose parts send: JAX solves it on devices, and here it is not taken apart."""

    def body(a):
        doubled = 2 * a
        return lax.custom_linear_solve(lambda v: lax.psum(v, "x") + v, doubled, lambda matvec, b: matvec(b))

    found = playback(mapped(body, P("x"), P("x")), GRID)
    line = found.frames[-1].place.first + 1
    due = f"Stopped before custom_linear_solve in line {line}: `grader.replay` can't carry out this operation."
    assert found.ended == due
    assert [frame.arrays[0].name for frame in found.frames] == ["a", "doubled"]


@pytest.mark.parametrize(
    "body, error, said",
    [
        (lambda a: lax.psum(a, "z"), "AssertionError|NameError", "names an axis"),
        (lambda a: a @ a, "TypeError", "have to bring blocks together first?"),
        (lambda a: a[nowhere], "NameError", ""),  # noqa: F821
    ],
)
def test_what_jax_refuses_is_raised_with_its_meaning_and_with_the_authors_lines_alone(body, error, said):
    with pytest.raises(Exception) as raised:
        grader.replay(mapped(body), GRID)
    assert re.fullmatch(error, raised.typename)
    told = "".join(traceback.format_exception(raised.value))
    assert said in told
    assert str(ROOT / "grader") not in told and told.count(__file__) == 2


def test_an_error_of_our_own_keeps_its_lines(monkeypatch):
    monkeypatch.setattr(Lockstep, "run", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        grader.replay(mapped(lambda a: a), GRID)
    assert str(ROOT / "grader") in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_an_array_of_numpy_has_the_type_that_jax_gives_it(dtype):
    assert_as_jax_has_it(mapped(lambda a: a), GRID.astype(dtype))


def test_empty_arrays_are_seen():
    assert_as_jax_has_it(mapped(lambda a: a, P("x"), P("x")), np.zeros((4, 0), np.float32))
    assert "float32[1,0]" in str(grader.replay(mapped(lambda a: a, P("x"), P("x")), np.zeros((4, 0), np.float32)))


def test_what_is_too_large_from_the_start_is_said():
    found = Replay("sum", playback_within(Reach(entries=10), mapped(lambda a: a), GRID))
    assert "more than 10 elements" in str(found) and "more than 10 elements" in found._repr_html_()


def test_a_program_that_is_left_to_the_compiler_is_told_what_else_there_is():
    told = grader.replay(lambda a: a @ a, GRID)
    assert "no shard_map" in str(told) and "`grader.communication(fn, *args)`" in told._repr_html_()
    assert close(told.result, GRID @ GRID)


def test_bytes_are_those_of_the_report():
    body = lambda a: lax.psum(lax.all_to_all(lax.all_gather(a, "x"), "y", 2, 1, tiled=True), "y")  # noqa: E731
    fn = mapped(body, out=P(None, "x"))
    report = grader.communication(fn, put(GRID, P("x", "y"), make_mesh(MESH)))
    sent = [f.transfer for f in playback(fn, GRID).frames if f.transfer]
    told = [(c.kind, c.axes, c.bytes_sent) for c in report.collectives]
    assert [(one.kind, one.axes, one.bytes_sent) for one in sent] == told


def test_values_may_be_typed_as_varying():
    assert_as_jax_has_it(mapped(lambda a: varying(lax.psum(a, "x"), "x"), check_vma=True), GRID)


# Exercises: whoever solves them, or makes one of the known mistakes.


def answers():
    for lesson in sorted(p.stem for p in (ROOT / "solutions").glob("*/*.md") if p.stem == p.parent.name):
        for name in asked(lesson):
            exercise = EXERCISES[name]
            if isinstance(exercise, ProgramExercise) and not exercise.by_compiler:
                for mistake in (None, *exercise.mistakes):
                    number = f"{lesson}-{name}-{mistake.name if mistake else 'solved'}"
                    yield number, (lesson, exercise, mistake)


ANSWERS = list(answers())
A_DAY = 10
TRIED = [
    pytest.param(*answer, id=number, marks=in_turn(place, parts(len(ANSWERS), A_DAY)))
    for place, (number, answer) in enumerate(ANSWERS)
]


def laid(argument, mesh):
    return jax.tree.map(lambda a: put(a.value, a.spec, mesh), argument)


@pytest.mark.parametrize("lesson, exercise, mistake", TRIED)
def test_an_answer_to_an_exercise_ends_as_jax_computes_it(lesson, exercise, mistake):
    case = exercise.draw_cases(7)[0]
    mesh = make_mesh(case.mesh, explicit=case.explicit)
    arrays = [laid(a, mesh) for a in case.arguments.values() if holds_arrays(a)]
    fixed = {name: a for name, a in case.arguments.items() if not holds_arrays(a)}
    work = mistake.wrong if mistake else answered("solutions", lesson)[exercise.name]
    fn = functools.partial(work, **fixed, mesh=mesh)
    if case.cotangents is not None:
        fn = with_gradient(fn, len(arrays))
        arrays.append(laid(case.cotangents, mesh))
    try:
        jax.eval_shape(fn, *arrays)
    except Exception:
        pytest.skip("JAX refuses to trace it") if mistake else pytest.fail("a solution that cannot be traced")
    found = playback(fn, *arrays)
    if found.ended.startswith(("Nobody goes on", "ppermute sends")):
        assert mistake  # on devices it would wait for ever, or be refused
        return
    if found.ended.startswith("Stopped after"):
        pytest.skip("too long to be watched to its end")
    assert found.ended in ("", BY_COMPILER)
    for one, other in zip(jax.tree.leaves(found.result), jax.tree.leaves(jax.jit(fn)(*arrays)), strict=True):
        assert close(np.nan_to_num(np.asarray(one)), np.nan_to_num(np.asarray(other)))


@taking_turns(3, LONG)
def test_a_notebook_with_ten_replays_stays_under_two_megabytes():
    """Of answers to lesson 11, whose gradients have the most lines."""
    solved = answered("solutions", "11_gradients")
    names = [name for name in asked("11_gradients") if watchable(EXERCISES[name])]
    sizes = [len(grader.watch(name, solved[name])._repr_html_()) for name in names[:5]]
    assert len(sizes) == 5 and 2 * sum(sizes) < 2_000_000


def test_the_names_of_a_tuple_are_those_of_its_arrays():
    def turn(k, carry):
        total, last = carry
        return total + last, 2 * last

    def body(a):
        total, last = lax.fori_loop(0, 2, turn, (a, a))
        carry, _ = lax.scan(lambda carry, k: (turn(k, carry), None), (total, last), None, length=2)
        return carry[0] + carry[1]

    named = [[array.name for array in frame.arrays] for frame in playback(mapped(body), GRID).frames]
    assert named.count(["total", "last"]) == 1 and named.count(["", ""]) == 1


def test_no_line_of_ours_is_shown_and_what_comes_in_on_the_way_back_has_no_name():
    def body(w, block):
        return lax.psum(jnp.sum(w * block), ("x", "y"))

    def loss(w, block):
        return mapped(body, (P(), P("x", "y")), P(), check_vma=True)(w, block)

    direct = playback(mapped(body, (P(), P("x", "y")), P(), check_vma=True), np.float32(2) * np.ones(1), GRID)
    assert {frame.place.file for frame in direct.frames if frame.place} == {__file__}
    frames = playback(jax.grad(loss), jnp.float32(2), GRID).frames
    first = {
        frame.backward: [array.name for array in frame.arrays] for frame in reversed(frames) if "come in" in frame.note
    }
    assert first == {False: ["w", "block"], True: ["", ""]}


def test_an_argument_may_be_called_as_ours_are():
    def fn(a, *, reach, fn):
        return mapped(lambda v: reach * v + fn)(a)

    assert close(grader.replay(fn, GRID, reach=2, fn=1).result, 2 * GRID + 1)
