"""Who comes by where, and how often: read from a program's text, and never guessed."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh
from grader.jax_versions import quick_options
from grader.programs.program import trace
from grader.programs.structure import Collective, Structure
from grader.programs.walk import compiled_structure, structure

UP, DOWN = [(k, (k + 1) % 4) for k in range(4)], [(k, (k - 1) % 4) for k in range(4)]


def me(axis="x"):
    return lax.axis_index(axis)


def up(block):
    return lax.ppermute(block, "x", UP)


def read(body):
    mesh = make_mesh({"x": 4, "y": 2})
    mapped = jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    return structure(trace(mapped, aval((16,), jnp.float32, P("x"), mesh)))


def turning(limit, step=1, start=0):
    return lambda x: lax.while_loop(lambda c: c[0] < limit(), lambda c: (c[0] + step, up(c[1])), (start, x))[1]


def branch(condition):
    return lambda x: lax.cond(condition(x), lambda b: lax.psum(b, "x"), lambda b: b, x)


@pytest.mark.parametrize(
    "body, visits, waiting",
    [
        (branch(lambda x: me() == 0), (1, 1, 0, 0, 0, 0, 0, 0), (0, 2)),
        (branch(lambda x: (me() * 2 + 1 > 4) | (me("y") != 0)), (0, 1, 0, 1, 1, 1, 1, 1), (4, 0)),
        (branch(lambda x: jnp.array(True) & (me() != 1)), (1, 1, 0, 0, 1, 1, 1, 1), (0, 2)),
        (branch(lambda x: me("y") == 0), (1, 0) * 4, None),  # along x all or none come by
        (turning(lambda: me() + 1), (1, 1, 2, 2, 3, 3, 4, 4), (6, 0)),
        (turning(lambda: 2 * me("y") + 3, step=2), (2, 3) * 4, None),
        (
            lambda x: lax.cond(me() == 1, lambda b: lax.fori_loop(0, 5, lambda k, c: up(c), b), lambda b: b, x),
            (0, 0, 5, 5, 0, 0, 0, 0),
            (2, 0),
        ),
    ],
)
def test_how_often_each_device_comes_by_and_who_waits(body, visits, waiting):
    found = read(body)
    (collective,) = found.collectives
    assert collective.times is None and collective.visits == visits
    assert found.waiting(collective) == waiting


@pytest.mark.parametrize(
    "body",
    [
        branch(lambda x: x[0] > 0),
        lambda x: lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1] - me(), up(c[2])), (0, 9, x))[2],
        turning(lambda: lax.pmax(me() + 1, "x")),
        turning(lambda: jnp.int8(127), step=jnp.int8(100), start=jnp.int8(0)),
    ],
    ids=["a branch on data", "a limit that moves", "a limit from a collective", "a counter that turns over"],
)
def test_what_the_text_does_not_say_is_not_guessed(body):
    assert all(c.times is None and c.visits is None for c in read(body).collectives if c.kind != "all_reduce")
    assert any(c.times is None for c in read(body).collectives)


def test_a_function_called_twice_is_read_with_its_own_arguments():
    some = jax.jit(lambda x, k: lax.cond(k < 2, lambda b: lax.psum(b, "x"), lambda b: b, x))
    found = read(lambda x: some(x, me()) + some(x, 3 - me()))
    assert [c.visits for c in found.collectives] == [(1,) * 4 + (0,) * 4, (0,) * 4 + (1,) * 4]


@pytest.mark.parametrize(
    "body, steps",
    [
        (lambda x: x + 1, 0),
        (lambda x: up(up(x)), 2),
        (lambda x: up(x) + lax.ppermute(x, "x", DOWN), 1),
        (lambda x: up(x) + up(up(2 * x)), 2),
        (lambda x: lax.fori_loop(0, 3, lambda k, c: up(up(c)), x), 6),
        (lambda x: sum(lax.fori_loop(0, 3, lambda k, c: (up(c[0]), lax.ppermute(c[1], "x", DOWN)), (x, x))), 3),
        (lambda x: jax.jit(up)(x) + jax.jit(up)(x), 1),
        (lambda x: lax.ppermute(x, "x", [(k, k) for k in range(4)]), 0),  # to itself
    ],
)
def test_the_longest_chain_of_transfers_is_counted(body, steps):
    assert read(body).steps == steps


def well() -> dict:
    """XLA's options to compile as it does where nobody says anything."""
    return {option: True if value is False else 3 for option, value in quick_options().items()}


@pytest.mark.parametrize("options", [quick_options, well])
def test_turns_are_counted_where_the_compiler_has_fused_what_counts_them(options):
    mesh = make_mesh({"x": 4})
    turn = lambda w, _: (jnp.tanh(w @ w), w.sum())  # noqa: E731
    lowered = jax.jit(lambda w: lax.scan(turn, w, length=3)).lower(aval((8, 8), jnp.float32, P("x"), mesh))
    found = compiled_structure(lowered.compile(options()), {"x": 4}).collectives
    assert {c.times for c in found if c.kind == "all_gather"} == {3}


@pytest.mark.parametrize("said", [{"axes": ("z",)}, {"visits": (1, 2, 3)}, {"group": 3}, {"axes": ()}])
def test_a_structure_that_contradicts_itself_says_nothing(said):
    """It may come from a process that was tampered with."""
    known = {"axes": ("x",), "group": 4, "visits": (1, 0) * 4}
    odd = Collective("all_reduce", operand=(1,), dtype="f32", bytes=4, times=None, **{**known, **said})
    assert Structure({"x": 4, "y": 2}, (), (odd,), 0).waiting(odd) is None
