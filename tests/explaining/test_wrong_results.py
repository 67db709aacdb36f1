"""Nothing that was computed of a program's result is told more widely than it was computed."""

import numpy as np
import pytest
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.exercises import Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.findings.programs import PassedElsewhere


def heard(reference, case, answer, meshes=((4,),)):
    exercise = ProgramExercise("of_a_test", points=2, reference=reference, mesh_shapes=meshes)
    exercise.cases(case)
    cases = exercise.draw_cases(0)
    return explained(exercise, cases, collect(exercise.form, asks(exercise, cases), answer)).failure.findings


@pytest.mark.parametrize(("columns", "told"), [((3, 6), True), ((3,), False)])
def test_that_it_is_right_on_a_mesh_is_told_if_it_is_in_all_cases(columns, told):
    def cases(draw):
        for count in (3, 6):
            yield Case({"a": draw.array(16, count, spec=P("x"))}, draw.mesh("x", "y"), P("x"))

    def answer(a, *, mesh):
        return a * (1 if mesh.shape["x"] == 2 and a.shape[1] in columns else 3)

    found = heard(lambda a: a * 1, cases, answer, ((4, 2), (2, 4)))
    assert any(isinstance(one, PassedElsewhere) for one in found) is told


def test_a_whole_number_that_is_off_by_one_among_large_ones_is_found():
    def case(draw):
        return Case({"a": Array(np.array([10**6, 1, 2, 3], np.int32), P())}, draw.mesh("x"), P())

    wrong = heard(lambda a: a + 1, case, lambda a, *, mesh: a + jnp.array([1, 1, 2, 1]))[0]
    assert (wrong.index, wrong.expected, wrong.found) == ((2,), "3", "4")
