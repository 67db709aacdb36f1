"""Of a wrong program it is said on which entries of its arguments the result does not depend, and should."""

import jax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercises import Case, Exercise
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge

weighed = Exercise(
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
    assert "When other numbers stand in `a`, the result stays as it is." in words


def test_the_entries_on_which_nothing_depends_are_told_by_their_places():
    words = heard(lambda x, c, a: jnp.sinh(jnp.tan(x[:, :4]) @ jnp.cos(c[3::-1])) ** 3 * jnp.exp(a))
    assert "stand in `x`, at 4 to 5 along dimension 1 (counted from 0), the result stays as it is." in words


def test_nothing_is_said_where_all_of_it_comes_in():
    words = heard(lambda x, c, a: jnp.sinh(jnp.tan(x) @ jnp.cos(c[::-1])) ** 3 * jnp.exp(a))
    assert "When other numbers stand" not in words
