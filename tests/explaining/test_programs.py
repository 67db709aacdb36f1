"""What explains wrong results of a program: another program that gives them, whose part is missing, which are right."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.findings import arrays, programs
from grader.findings.programs import ResultPart, SharesCounted, StepChanged

SPECS = P(None, "x"), P("x", None), P()


def heard(exercise, answer):
    """The findings that explain why an answer misses a check."""
    cases = exercise.draw_cases(0)
    found = explained(exercise, cases, collect(exercise.form, asks(exercise, cases), answer))
    return found.failure.findings[1:]


def exercise(reference, case, mesh_shapes=((4, 2), (2, 4))):
    made = ProgramExercise("of_a_test", points=2, reference=reference, mesh_shapes=mesh_shapes)
    made.cases(case)
    return made


def in_numpy(a, w, bias):
    return np.maximum(a @ w + bias, 0)


def layer(body, reference=in_numpy):
    """What is heard of a layer whose matmul is sharded over x."""

    def case(draw):
        shapes = {"a": (6, 8), "w": (8, 4), "bias": (4,)}
        given = {name: draw.array(*shape, spec=spec) for (name, shape), spec in zip(shapes.items(), SPECS, strict=True)}
        return Case(given, draw.mesh("x", "y"), P())

    def answer(a, w, bias, *, mesh):
        return jax.shard_map(body, mesh=mesh, in_specs=SPECS, out_specs=P(), check_vma=False)(a, w, bias)

    return heard(exercise(reference, case), answer)


def matmul(a, w):
    return lax.psum(a @ w, "x")


@pytest.mark.parametrize("reference", [in_numpy, lambda a, w, bias: jax.nn.relu(a @ w + bias)])
@pytest.mark.parametrize(
    ("body", "change"),
    [
        (lambda a, w, bias: jnp.maximum(matmul(a, w), 0), StepChanged("left out", "add", "bias")),
        (lambda a, w, bias: jnp.maximum(matmul(a, w), 0) + bias, StepChanged("done last", "add", "bias")),
        (
            lambda a, w, bias: jnp.maximum(matmul(a, w) + lax.psum(bias, "x"), 0),
            StepChanged("once per device", "add", "bias", axes=("x",)),
        ),
        (
            lambda a, w, bias: jnp.maximum(lax.pmean(a @ w, "x") + bias, 0),
            StepChanged("divided by devices", "dot_general", axes=("x",)),
        ),
    ],
)
def test_the_step_that_is_changed_is_told(body, change, reference):
    assert layer(body, reference) == (change,)


def test_the_number_of_all_devices_is_not_told_if_a_sum_has_as_many_terms():
    found = layer(lambda a, w, bias: 8 * matmul(a, w) + bias, lambda a, w, bias: a @ w + bias)
    assert not any(isinstance(one, StepChanged) for one in found)


def without(where):
    """The matmul without the part of device 1 along x, in these rows."""

    def body(a, w, bias):
        missing = (lax.axis_index("x") == 1) & where(jnp.arange(6))
        return lax.psum(jnp.where(missing, 0.0, 1.0)[:, None] * (a @ w), "x")

    return body


@pytest.mark.parametrize(
    ("body", "shares"),
    [
        (without(lambda row: row >= 0), SharesCounted("a", 0, (2,), ())),
        (without(lambda row: row < 3), SharesCounted("a", 0, (2,), (), ((0, 3), (0, 4)))),
        (
            lambda a, w, bias: jnp.roll(matmul(a, w), 3, axis=0),
            SharesCounted("a", 0, (), (), ((0, 3), (0, 4)), ((3, 6), (0, 4))),
        ),
        (
            lambda a, w, bias: matmul(a, w).at[:3].set(0),
            SharesCounted("a", 0, (0, 2, 4, 6), (), ((0, 3), (0, 4))),
        ),
        (
            lambda a, w, bias: lax.psum(jnp.where(lax.axis_index("x") == 1, 3, 1) * (a @ w), "x"),
            SharesCounted("a", 0, (), ((2, 3),)),
        ),
    ],
)
def test_whose_part_is_missing_or_counts_again_is_told(body, shares):
    assert shares in layer(body, lambda a, w, bias: a @ w)


def test_one_factor_of_all_is_told_before_whose_part_counts():
    found = layer(lambda a, w, bias: 3 * matmul(a, w), lambda a, w, bias: a @ w)
    assert found == (arrays.OffByFactor(3.0, None),)
    found = layer(lambda a, w, bias: 4 * lax.pmean(a @ w, "x"), lambda a, w, bias: a @ w)
    assert found == (arrays.OffByFactor(2.0, None), programs.PassedElsewhere("values", (4, 2), (2, 4)))


def test_nothing_is_said_of_shares_if_the_result_is_no_sum_of_them():
    found = layer(lambda a, w, bias: 2 * lax.psum((a @ w) ** 2, "x"), lambda a, w, bias: (a @ w) ** 2)
    assert not any(isinstance(one, SharesCounted) for one in found)


def two_arrays(draw):
    return Case({name: Array(draw.values(8, 8), P()) for name in "vw"}, draw.mesh("x"), (P(), P()))


FIRST, SECOND = ResultPart("result[0]"), ResultPart("result[1]")


@pytest.mark.parametrize(
    "answer, finding",
    [
        (lambda v, w, *, mesh: (jnp.sin(v) * v**2, 2 * w), programs.RightParts((SECOND,), 0)),
    ],
)
def test_arrays_that_are_elsewhere_or_right_are_told(answer, finding):
    two = exercise(lambda v, w: (v + 1, 2 * w), two_arrays, mesh_shapes=((8,),))
    assert finding in heard(two, answer)


def test_the_wrong_one_of_several_results_is_told_of_alone():
    def case(draw):
        mask = Array((np.arange(8) < 5).astype(np.float32), P())
        return Case({"w": draw.array(8, spec=P()), "mask": mask}, draw.mesh("x", "y"), (P(), P()))

    def answer(w, mask, *, mesh):
        body = jax.value_and_grad(lambda w, mask: jnp.sum(w**3) / jnp.sum(mask))
        return jax.shard_map(body, mesh=mesh, in_specs=(P(), P()), out_specs=(P(), P()))(w, mask)

    both = exercise(jax.value_and_grad(lambda w, mask: jnp.sum(mask * w**3) / jnp.sum(mask)), case)
    assert heard(both, answer)[0] == StepChanged("left out", "mul", "mask", part=FIRST)


def test_an_argument_that_is_as_long_by_chance_is_not_told_if_the_shape_is_right_on_another_mesh():
    rows = exercise(
        lambda a: a.sum(axis=1), lambda draw: Case({"a": draw.array(8, 6, spec=P("x"))}, draw.mesh("x", "y"), P("x"))
    )

    def answer(a, *, mesh):
        out = P("x") if mesh.shape["x"] == 4 else P(("x", "y"))
        return jax.shard_map(lambda a: a.sum(axis=1), mesh=mesh, in_specs=P("x"), out_specs=out, check_vma=False)(a)

    found = heard(rows, answer)
    assert isinstance(found[0], arrays.WrongLengths) and programs.PassedElsewhere("shape", (4, 2), (2, 4)) in found


def test_a_limit_that_is_kept_on_another_mesh_is_told():
    def answer(a, *, mesh):
        there = P() if mesh.shape["x"] == 2 else P("x")
        return lax.with_sharding_constraint(2 * a, jax.sharding.NamedSharding(mesh, there))

    doubled = exercise(
        lambda a: 2 * a, lambda draw: Case({"a": draw.array(8, 8, spec=P("x"))}, draw.mesh("x", "y"), P("x"))
    )
    assert heard(doubled, answer) == (
        programs.AxesShard((programs.AxisShards("x", None, 0),)),
        programs.PassedElsewhere("sharding", (4, 2), (2, 4)),
    )
