"""Small cases: of most exercises there are some, and the arrays on them are easily read."""

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.exercises.case import Case
from grader.exercises.forms import ProgramExercise
from grader.exercises.small import SmallDraw, small_cases


def test_lengths_fit_the_mesh_and_differ():
    assert SmallDraw((2, 2), tiny=True).lengths(3, divisible_by=8) == (2, 4, 6)
    assert SmallDraw((4, 2), tiny=True).lengths(2, divisible_by=8) == (4, 8)
    assert SmallDraw((2, 2), tiny=False).lengths(2, divisible_by=8) == (8, 16)
    assert SmallDraw((2, 1), tiny=True).lengths(1, divisible_by=3) == (3,)


def test_entries_are_counted_on_and_two_arrays_begin_differently():
    draw = SmallDraw((2,), tiny=True)
    assert draw.values(2, 3).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert draw.values(3).tolist() == [5, 6, 7]
    large = draw.values(64)
    assert set(large) <= set(range(1, 10)) and large.dtype == np.float32


def test_the_least_data_comes_first_and_what_cannot_be_drawn_is_left_out():
    exercise = ProgramExercise("rows", 1, reference=np.sum, mesh_shapes=((4, 2), (8, 1)))

    @exercise.cases
    def _(draw):
        mesh = draw.mesh("x", "y")
        if mesh["x"] == 8:
            raise ValueError("too many")
        return Case({"a": draw.array(*draw.lengths(1, divisible_by=8), spec=P("x"))}, mesh)

    meshes = [(*case.mesh.values(), *case.arguments["a"].value.shape) for case in small_cases(exercise)]
    assert meshes == [(2, 2, 2), (4, 2, 4), (2, 1, 2), (4, 1, 4), (2, 2, 8), (4, 2, 8), (2, 1, 8), (4, 1, 8)]
