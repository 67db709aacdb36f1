"""What is said of a wrong shape."""

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge
from grader.judging.shapes import Shaped, counts_of, shape_evidence, shape_relations

MESH = {"x": 4, "y": 2}


@pytest.mark.parametrize(
    ("found", "due", "words"),
    [
        ((32, 16), (16, 32), "It has the shape of the transpose: its dimensions stand in the opposite order."),
        ((2, 4, 3), (4, 3, 2), "The dimensions are as long as they should be, but they stand in another order."),
        (
            (24, 64),
            (24, 16),
            "Dimension 1 is as long as it should be, times the number of devices along x.",
        ),
        (
            (4, 24),
            (16, 24),
            "Dimension 0 is as long as it should be, divided by the number of devices along x.",
        ),
        ((8, 6), (16, 6), "Dimension 0 is as long as it should be, divided by the number of devices along y."),
        ((6, 10), (12, 10), "Dimension 0 is as long as it should be, divided by the number of devices along y."),
        ((6, 7), (3, 7), "Dimension 0 is as long as it should be, times the number of devices along y."),
        ((24, 7), (32, 7), "Dimension 0 is as long as if the number of devices along x were one less."),
        ((40, 7), (32, 7), "Dimension 0 is as long as if the number of devices along x were one more."),
        ((11, 5), (3, 5), "Dimension 0 is as long as dimension 1 of `w`."),
        ((4, 5, 7), (5, 7), "Dimension 0 is one too many: its length is the number of devices along x, and the others"),
        ((5, 1, 7), (5, 7), "Dimension 1 is one too many, of length 1, and the others are as long as they should be."),
        ((7,), (1, 7), "Dimension 0 is missing, which should be of length 1."),
        ((5,), (5, 7), "Dimension 1 is missing, and the others are as long as they should be."),
        ((96,), (4, 24), "It has as many entries as are due, all in one dimension."),
        ((9, 11), (5,), "It has the shape of `w`, as it was given."),
        ((25, 25), (25, 14), "Dimension 1 is as long as dimension 0 should be."),
        ((9, 10, 13), (5,), ""),
        ((7, 30), (10, 21), "It has as many entries as are due, but its dimensions have other lengths."),
        ((), (5, 7), "It is a single number, without any dimension."),
    ],
)
def test_what_a_wrong_shape_has_to_do_with_the_right_one(found, due, words):
    said = next(shape_relations(Shaped(found, due, counts_of(MESH), {"w": (9, 11)})), "")
    assert said.startswith(words) and bool(said) == bool(words)


def test_a_length_that_two_arguments_have_is_that_of_both():
    (words, *_) = shape_relations(Shaped((24, 5), (7, 5), given={"a": (3, 24), "b": (24, 5)}))
    assert words == "Dimension 0 is as long as dimension 1 of `a` and dimension 0 of `b`."


def test_only_what_is_so_on_every_mesh_is_said():
    four, two = counts_of({"x": 4, "y": 2}), counts_of({"x": 2, "y": 4})
    follows = shape_evidence([Shaped((8, 6), (2, 6), four), Shaped((4, 6), (2, 6), two)])
    assert "times the number of devices along x. What is put one behind another there" in follows
    both = shape_evidence([Shaped((1, 6), (2, 6), four), Shaped((4, 6), (2, 6), two)])
    assert "times the number of devices along y, divided by the number of devices along x." in both
    assert shape_evidence([Shaped((8, 6), (2, 6), four), Shaped((8, 6), (2, 6), two)]) == ""


def heard(answer, reference):
    exercise = ProgramExercise("shaped_in_a_test", points=2, reference=reference, mesh_shapes=((4, 2), (2, 4)))
    exercise.cases(lambda draw: Case({"a": draw.array(8, 24, spec=P("x"))}, draw.mesh("x", "y"), P()))
    cases = exercise.draw_cases(0)
    return judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words


def test_blocks_that_were_gathered_and_then_laid_out_as_parts_are_told():
    def gathered(a, *, mesh):
        body = lambda block: lax.all_gather(block, "x", axis=0, tiled=True)  # noqa: E731
        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)

    assert "Dimension 0 is as long as it should be, times the number of devices along x." in heard(
        gathered, lambda a: a
    )


def test_which_of_several_arrays_is_missing_is_told():
    due = lambda a: (a, a + 1, a + 2)  # noqa: E731
    assert "No array of it is what should be `Result 1`" in heard(lambda a, *, mesh: (a, a + 2), due)
    assert "something besides" in heard(lambda a, *, mesh: (a, a + 1, a + 2, a + 3), due)
    assert "something besides" not in heard(lambda a, *, mesh: a, lambda a: (a, a + 0))  # one array is not two
    assert "Missing" not in heard(lambda a, *, mesh: (a * 3, a * 4), due)


def test_a_dimension_that_is_off_by_an_entry_on_each_device_is_told():
    wrong = [Shaped((n - m,), (n,), {"the number of devices along x": m}) for n, m in ((36, 4), (24, 2))]
    assert shape_evidence(wrong) == (
        "Dimension 0 is shorter than it should be by 1, times the number of devices along x. How long is what each "
        "device returns, and how long should it be?"
    )


def test_twice_as_long_is_no_entry_on_each_device():
    assert "than it should be" not in shape_evidence([Shaped((8,), (4,), {"the number of devices along x": 4})])


def test_a_length_that_an_argument_has_on_one_device_is_told():
    given = {"a": (16, 24)}
    words = shape_evidence([Shaped((6,), (16,), {"the number of devices along x": 4}, given)])
    assert words.startswith("Dimension 0 is as long as dimension 1 of `a`, divided by the number of devices along x.")


def test_a_wrong_shape_is_told_of_where_a_gradient_was_asked_for():
    exercise = ProgramExercise("mean_in_a_test", points=2, reference=lambda a: a.mean(), mesh_shapes=((4, 2), (2, 4)))

    @exercise.cases
    def _(draw):
        given = {"a": draw.array(16, spec=P("x"))}
        return Case(given, draw.mesh("x", "y"), P(), cotangents=Array(np.float32(1), P()))

    def answer(a, *, mesh):
        return jax.shard_map(lambda a: a.mean()[None], mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)

    cases = exercise.draw_cases(0)
    words = judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words
    assert "Dimension 0 is one too many: its length is the number of devices along x." in words


def test_of_a_shape_that_is_right_on_another_mesh_this_is_said_and_no_length_that_is_the_same_by_chance():
    exercise = ProgramExercise("shaped_in_a_test", points=2, reference=lambda a, b: a, mesh_shapes=((4,), (3,)))
    exercise.cases(
        lambda draw: Case({"a": draw.array(60, spec=P()), "b": draw.array(45, spec=P())}, draw.mesh("x"), P())
    )
    cases = exercise.draw_cases(0)

    def for_four(a, b, *, mesh):
        return a[: 15 * mesh.shape["x"]]

    words = judge(exercise, cases, collect("program", asks(exercise, cases), for_four)).words
    assert "On 4 devices the shapes are right; on 3 devices they are not." in words
    assert "`b`" not in words
