"""Of a wrong program it is said whose numbers do not come in, or come in and should not; of a right one nothing."""

import functools

import jax
import pytest
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.judging.behaviour import Execution
from grader.judging.dependence import depends
from grader.judging.judge import judge
from grader.judging.plain_numbers import with_plain_numbers
from grader.judging.references import expected_results

mixed = ProgramExercise(
    "mixed_of_a_test",
    points=2,
    reference=lambda x, kinds: jnp.tanh(x).sum(0) * (1 + kinds.sum(1)).mean(),
    mesh_shapes=((4,),),
)


@mixed.cases
def _(draw):
    kinds = draw.rng.integers(0, 3, (8, 2))
    return Case({"x": draw.array(8, 6, spec=P("x")), "kinds": Array(kinds, P())}, draw.mesh("x"), P())


def said(tell, on_device, name="The result"):
    def answer(x, kinds, *, mesh):
        return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P()), out_specs=P(), check_vma=False)(x, kinds)

    case = mixed.draw_cases(seed=0)[0]
    (program,) = collect("program", asks(mixed, [case]), answer)
    return tell(Execution(program, case), functools.partial(expected_results, mixed), 0, name)


def right(x, kinds):
    return jax.lax.psum(jnp.tanh(x).sum(0), "x") * (1 + kinds.sum(1)).mean()


def of_the_first_two(x, kinds):
    mine = jnp.where(jax.lax.axis_index("x") < 2, jnp.tanh(x).sum(0), 0)
    return jax.lax.psum(mine, "x") * (1 + kinds.sum(1)).mean()


def first_kind_only(x, kinds):
    return jax.lax.psum(jnp.tanh(x).sum(0), "x") * (1 + 2 * kinds[:, 0]).mean()


@pytest.mark.parametrize(
    "on_device, words",
    [
        (of_the_first_two, "With other numbers in what devices 2, 3 hold of `x`, yours stays as it is on device 0"),
        (first_kind_only, "With other numbers in number 1 along dimension 1 of `kinds` (counted from 0), yours stays"),
    ],
)
def test_what_does_not_come_in_is_told(on_device, words):
    assert words in said(depends, on_device)


def test_of_a_right_program_nothing_is_said():
    assert said(depends, right) == ""


def test_with_ones_it_is_plain_what_is_due():
    heard = said(with_plain_numbers, lambda x, kinds: right(x, kinds) / 2 + jnp.sin(x[0, 0]) * 0)
    assert heard.startswith("With ones for `x` every entry should be ") and ", and yours is " in heard


def with_ones(reference, body):
    exercise = ProgramExercise("with_ones_of_a_test", points=1, reference=reference, mesh_shapes=((4,),))
    specs = P("x"), P()
    exercise.cases(
        lambda draw: Case({"a": draw.array(8, 6, spec=P("x")), "b": draw.array(6, spec=P())}, draw.mesh("x"), P("x"))
    )

    def answer(a, b, *, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x"))(a, b)

    (case,) = exercise.draw_cases(seed=0)[:1]
    (program,) = collect("program", asks(exercise, [case]), answer)
    return with_plain_numbers(Execution(program, case), functools.partial(expected_results, exercise), 0, "The result")


@pytest.mark.parametrize(
    ("reference", "body", "words"),
    [
        (lambda a, b: a * b, lambda a, b: a[:, ::-1] * b, ". Which of its numbers goes where?"),
        (lambda a, b: a * b, lambda a, b: a**2 * b, ", but not with 2.7 everywhere. Where does it matter how large"),
        (
            lambda a, b: jax.nn.softmax(a, axis=1) * b,
            lambda a, b: jax.nn.softmax(2 * a, axis=1) * b,
            ". Where does it matter that its numbers differ?",
        ),
    ],
)
def test_what_is_asked_where_it_is_right_with_ones_depends_on_what_else_it_is_right_with(reference, body, words):
    assert with_ones(reference, body).startswith(f"With ones for `a` yours would be right{words}")


def test_which_array_is_meant_is_said_only_where_there_are_several():
    def halved(x, kinds):
        return right(x, kinds) / 2 + jnp.sin(x[0, 0]) * 0

    assert "result" not in said(with_plain_numbers, halved) + said(depends, of_the_first_two)
    assert "(Result 1), and yours is" in said(with_plain_numbers, halved, "Result 1")
    assert "on device 0 (Result 1), and should" in said(depends, of_the_first_two, "Result 1")


weighed = ProgramExercise(
    "weighed_of_a_test",
    points=2,
    reference=lambda x, c, a: jnp.tanh(jnp.sin(x) @ jnp.cos(c)) + jnp.cos(a),
    mesh_shapes=((4, 2), (2, 4)),
)


@weighed.cases
def _(draw):
    given = {"x": draw.array(8, 6, spec=P("x")), "c": draw.array(6, spec=P()), "a": draw.array(8, spec=P("x"))}
    return Case(given, draw.mesh("x", "y"), P("x"))


def heard(body):
    def answer(x, c, a, *, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P(), P("x")), out_specs=P("x"))(x, c, a)

    cases = weighed.draw_cases(seed=0)
    return judge(weighed, cases, collect("program", asks(weighed, cases), answer)).words


def test_an_argument_on_which_nothing_depends_is_told():
    words = heard(lambda x, c, a: jnp.sinh(jnp.tan(x) @ jnp.cos(c[::-1])) ** 3)
    assert "hold of `a`, yours stays as it is on device 0" in words


def test_the_entries_on_which_nothing_depends_are_told_by_their_places():
    words = heard(lambda x, c, a: jnp.sinh(jnp.tan(x[:, :4]) @ jnp.cos(c[3::-1])) ** 3 * jnp.exp(a))
    assert "With other numbers in numbers 4, 5 along dimension 1 of `x` (counted from 0), yours stays as it is" in words


def test_nothing_is_said_where_all_of_it_comes_in():
    words = heard(lambda x, c, a: jnp.sinh(jnp.tan(x) @ jnp.cos(c[::-1])) ** 3 * jnp.exp(a))
    assert "With other numbers" not in words


@pytest.mark.parametrize(
    ("most", "which"), [(24, "any part of `x`, yours"), (3, "any part of `x` that was tried, yours")]
)
def test_of_the_parts_that_were_tried_alone_it_is_not_said_that_others_come_in(monkeypatch, most, which):
    monkeypatch.setattr("grader.judging.dependence.MOST_PROBED", most)
    words = said(depends, lambda x, kinds: right(jnp.ones_like(x), kinds))
    assert words.startswith(f"With other numbers in {which} stays as it is on device 0")


counted = ProgramExercise(
    "counted_of_a_test", points=2, reference=lambda x: (abs(x) > 4).sum(keepdims=True)[0], mesh_shapes=((4,),)
)


@counted.cases
def _(draw):
    return Case({"x": draw.array(8, 6, spec=P("x"))}, draw.mesh("x"), P())


def test_that_a_single_count_stays_as_it_is_may_be_chance():
    """This count is made of all numbers, and few changes show in it."""

    def answer(x, *, mesh):
        def on_device(x):
            return jax.lax.psum((x > 1000).sum(keepdims=True)[0], "x")

        return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P())(x)

    case = counted.draw_cases(seed=0)[0]
    (program,) = collect("program", asks(counted, [case]), answer)
    words = depends(Execution(program, case), functools.partial(expected_results, counted), 0, "The result")
    assert "stays as it is" not in words
