"""Of a wrong program it is said which argument would have to be nothing but zeros for it to be right."""

import jax
import pytest
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercises import Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge

stack = ProgramExercise(
    "stack_of_a_test",
    points=2,
    reference=lambda x, v, w: (x + jnp.tanh(x @ v)) + jnp.sin(jnp.tanh((x + jnp.tanh(x @ v)) @ w)),
    mesh_shapes=((4, 2), (2, 4)),
)


@stack.cases
def _(draw):
    given = {"x": draw.array(8, 4, spec=P("x")), "v": draw.array(4, 4, spec=P()), "w": draw.array(4, 4, spec=P())}
    return Case(given, draw.mesh("x", "y"), P("x"))


def heard(second):
    def answer(x, v, w, *, mesh):
        def on_device(x, v, w):
            h = x + jnp.tanh(x @ v)
            return h + second(h, w)

        return jax.shard_map(on_device, mesh=mesh, in_specs=(P("x"), P(), P()), out_specs=P("x"))(x, v, w)

    cases = stack.draw_cases(seed=0)
    return judge(stack, cases, collect("program", asks(stack, cases), answer)).words


@pytest.mark.parametrize(
    "second",
    [
        lambda h, w: jnp.sinh(jnp.roll(jnp.tanh(h @ w), 1, axis=1) * jnp.roll(h, 2, axis=1)),
        lambda h, w: jnp.sin(jnp.tan(h[:, ::-1] @ w) ** 3),
    ],
)
def test_the_argument_of_the_wrong_term_is_told(second):
    assert "With zeros for `w` yours would be right." in heard(second)


def test_an_argument_that_does_not_come_in_is_told_before_those_that_do():
    """With zeros for `x` it would be right; but what is wrong is that `w` is nowhere."""
    layer = ProgramExercise(
        "layer_of_a_test", points=2, reference=lambda x, w, b: jnp.tanh(x @ w + b), mesh_shapes=((4, 2),)
    )

    @layer.cases
    def _(draw):
        given = {"x": draw.array(8, 4, spec=P("x")), "w": draw.array(4, 4, spec=P()), "b": draw.array(4, spec=P())}
        return Case(given, draw.mesh("x", "y"), P("x"))

    def answer(x, w, b, *, mesh):
        return jnp.tanh(jnp.sinh(x[:, ::-1]) * x + b)

    cases = layer.draw_cases(seed=0)
    words = judge(layer, cases, collect("program", asks(layer, cases), answer)).words
    assert "With zeros for `w` yours stays as it is, and should change." in words


def test_nothing_is_said_where_zeros_are_of_no_help():
    assert "yours would be right" not in heard(lambda h, w: 1 + jnp.cos(jnp.tan(h[:, ::-1] @ w) ** 3))
