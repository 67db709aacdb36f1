"""Programs on Explicit meshes: traced with types, judged on Auto ones, and explained."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import NamedSharding, reshard
from jax.sharding import PartitionSpec as P

from grader.exercises.as_json import question_from_json, to_json
from grader.exercises.case import Case
from grader.exercises.collecting import asks, collect
from grader.exercises.errors import meaning
from grader.exercises.forms import ProgramExercise
from grader.exercises.limits import Move, Moves
from grader.explaining.explained import explained
from grader.findings.problems import ErrorMeaning, Refusal

LEFT, RIGHT = P(None, "x"), P("x", None)


def exercise(out=P(), moves=None):
    made = ProgramExercise("product", points=4, reference=lambda a, b: a @ b, by_compiler=True)

    @made.cases
    def _(draw):
        mesh = draw.mesh("x", "y")
        i, j, k = draw.lengths(3, divisible_by=8)
        arrays = {"a": draw.array(i, j, spec=LEFT), "b": draw.array(j, k, spec=RIGHT)}
        return Case(arrays, mesh, out, limits=[Moves((Move("all_reduce", ("x",), (i, k)),))], explicit=True)

    @made.mistake
    def gathered(a, b, *, mesh):
        """Both were gathered."""
        whole = NamedSharding(mesh, P())
        return reshard(a, whole) @ reshard(b, whole)

    @made.mistake
    def unfinished(a, b, *, mesh):
        """The sum was not made."""
        return jnp.dot(a, b, out_sharding=NamedSharding(mesh, P(unreduced={"x"})))

    return made


def verdict(answer, made=None):
    made = made or exercise()
    cases = made.draw_cases(0, thorough=True)
    return explained(made, cases, collect(made.form, question_from_json(to_json(asks(made, cases))), answer))


def product(out):
    return lambda a, b, *, mesh: jnp.dot(a, b, out_sharding=NamedSharding(mesh, out))


@pytest.mark.parametrize("out", [P(), P("x", None), P(None, "x"), P(None, "y"), P("y", "x")])
def test_a_result_lies_as_its_type_says_on_every_mesh(out):
    made = exercise(out)
    found = verdict(product(out), made)
    assert [o.check for o in found.outcomes if o.passed][:4] == ["runs", "shape", "values", "sharding"]


def test_the_function_sees_types():
    seen = set()

    def look(a, b, *, mesh):
        seen.add(str(jax.typeof(a)).split("@")[1])
        return product(P())(a, b, mesh=mesh)

    assert verdict(look).passed and seen == {"x]"}


def test_a_program_left_to_the_compiler_is_named_by_what_it_sends():
    def otherwise(a, b, *, mesh):
        whole = NamedSharding(mesh, P(None, None))
        return jnp.einsum("ij,jk->ik", reshard(a, whole), reshard(b, whole))

    assert verdict(otherwise).mistake == "gathered"
    assert verdict(product(P())).passed


def test_two_programs_that_are_refused_alike_are_the_same():
    def otherwise(a, b, *, mesh):
        return jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(mesh, P(None, None, unreduced={"x"})))

    found = verdict(otherwise)
    assert found.points == 0
    assert found.mistake == "unfinished"


@pytest.mark.skipif(jax.__version_info__ < (0, 8), reason="JAX 0.7 does not run it")
def test_a_sum_that_is_not_made_is_told_as_what_it_is_and_not_as_an_error():
    def otherwise(a, b, *, mesh):
        return jnp.einsum("ij,jk->ik", a, b, out_sharding=NamedSharding(mesh, P(None, None, unreduced={"x"})))

    assert verdict(otherwise).failure.findings[0] == Refusal("unreduced", ("x",))


@pytest.mark.parametrize(
    "answer, name",
    [
        (lambda a, b, *, mesh: a @ b, "contracted"),
        (lambda a, b, *, mesh: jnp.dot(a, b, out_sharding=P()), "no mesh"),
        (lambda a, b, *, mesh: a.T @ a, "two dimensions"),
        (lambda a, b, *, mesh: b[0], "along sharded"),
        (lambda a, b, *, mesh: jax.lax.scan(lambda c, row: (c + row.sum(), None), 0.0, b)[0], "along sharded"),
        (lambda a, b, *, mesh: jax.lax.with_sharding_constraint(a, NamedSharding(mesh, P("x"))), "constraint"),
        (lambda a, b, *, mesh: jax.sharding.auto_axes(jnp.add)(a, a), "no out_sharding"),
        (lambda a, b, *, mesh: jnp.cos(product(P(unreduced={"x"}))(a, b, mesh=mesh)), "unreduced"),
    ],
)
def test_errors_of_types_have_a_meaning(answer, name):
    made = exercise()
    (problem,) = collect(made.form, asks(made, made.draw_cases())[:1], answer)
    assert meaning(problem) == ErrorMeaning(name)
