"""Of a single number it is said what it is of the blocks of an argument."""

import jax
import pytest
from jax import lax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercises import Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge

spread = ProgramExercise(
    "spread_of_a_test",
    points=2,
    reference=lambda x: jnp.sqrt(jnp.mean((x - jnp.mean(x)) ** 2)),
    mesh_shapes=((4, 2), (2, 4)),
)


@spread.cases
def _(draw):
    return Case({"x": draw.array(24, spec=P("x"))}, draw.mesh("x", "y"), P())


def heard(body):
    def answer(x, *, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)

    cases = spread.draw_cases(seed=0)
    return judge(spread, cases, collect("program", asks(spread, cases), answer)).words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda x: lax.pmax(jnp.mean(x), "x"), "It is the largest of the means of the blocks of `x`."),
        (lambda x: lax.pmean(jnp.max(x), "x"), "It is the mean of the largest entries of the blocks of `x`."),
    ],
)
def test_it_is_told_what_it_is_of_the_blocks(body, words):
    assert words in heard(body)


def test_nothing_is_said_of_another_number():
    assert "of the blocks of" not in heard(lambda x: lax.pmax(jnp.mean(jnp.sin(x)), "x"))
