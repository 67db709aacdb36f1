"""Nothing that was computed of a program's result is said more widely than it was computed."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import Array
from grader.exercises import Case, ProgramExercise, TimetableExercise
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge
from grader.judging.plain_numbers import _Made, _one_number_due
from grader.timetables import simulate

ROWS = P("x", None)


def heard(reference, case, answer, meshes=((4,),)):
    made = ProgramExercise("as_wide_in_a_test", points=2, reference=reference, mesh_shapes=meshes)
    return heard_of(made, case, answer)


def heard_of(exercise, case, answer):
    exercise.cases(case)
    cases = exercise.draw_cases(0)
    return judge(exercise, cases, collect(exercise.form, asks(exercise, cases), answer)).words


def test_that_it_is_right_on_a_mesh_is_said_where_it_is_in_all_cases():
    def cases(draw):
        for columns in (3, 6):
            yield Case({"a": draw.array(16, columns, spec=P("x"))}, draw.mesh("x", "y"), P("x"))

    def right_in_one_case(a, *, mesh):
        return a * (1 if mesh.shape["x"] == 2 and a.shape[1] == 3 else 3)

    def right_on_one_mesh(a, *, mesh):
        return a * (1 if mesh.shape["x"] == 2 else 3)

    both = (4, 2), (2, 4)
    assert "this is right" not in heard(lambda a: a * 1, cases, right_in_one_case, both)
    assert "this is right" in heard(lambda a: a * 1, cases, right_on_one_mesh, both)


def test_a_whole_number_that_is_off_by_one_among_large_ones_is_found():
    def case(draw):
        return Case({"a": Array(np.array([10**6, 1, 2, 3], np.int32), P())}, draw.mesh("x"), P())

    said = heard(lambda a: a + 1, case, lambda a, *, mesh: a + jnp.array([1, 1, 2, 1]))
    assert "entry [2] should be 3, and it is 4" in said


def test_every_entry_is_not_zero_where_an_array_is_right():
    def case(draw):
        return Case({"a": draw.array(8, 3, spec=P("x"))}, draw.mesh("x"), (P("x"), P("x"), P("x")))

    def nothing(a, *, mesh):
        return a + 1, a * 0, a * 0

    assert "Of Result 1, Result 2: Every entry is zero." in heard(lambda a: (a + 1, a * 2, a * 3), case, nothing)


def test_a_single_number_has_no_entries():
    def case(draw):
        return Case({"a": draw.array(8, 4, spec=P("x"))}, draw.mesh("x", "y"), P())

    said = heard(lambda a: a.mean(), case, lambda a, *, mesh: (a * 7).mean(), ((4, 2), (2, 4)))
    assert "It is 7 times too large" in said and "Every entry" not in said


def test_zeros_of_which_nothing_comes_tell_nothing():
    def case(draw):
        given = {name: draw.array(8, 4, spec=P("x")) for name in ("a", "b")}
        return Case(given, draw.mesh("x"), (P("x"), P("x")))

    def odd(a, b, *, mesh):
        return b + 1, jnp.sinh(jnp.tan(a * 3) + b) * a

    said = heard(lambda a, b: (b + 1, jnp.sin(b * 7) * a * 2 + jnp.sin(b) * a), case, odd)
    assert "With zeros" not in said


@pytest.mark.parametrize(("found", "words"), [(1.0004, "and yours is 1.0004"), (1.0000001, "")])
def test_a_number_that_differs_is_shown_to_differ(found, words):
    due = np.ones(8, np.float32)
    said = _one_number_due(_Made("a", True, True, due * np.float32(found), due, False), "The result")
    assert words in said and bool(said) == bool(words)


def test_there_are_no_others_where_every_entry_is_told():
    def case(draw):
        given = {"a": draw.array(8, 4, spec=P()), "w": draw.array(4, 6, spec=P())}
        return Case(given, draw.mesh("x"), P())

    def twice_or_never(a, w, *, mesh):
        return 6 * (a[:, ::2] @ w[::2])

    said = heard(lambda a, w: 3 * (a @ w), case, twice_or_never)
    assert "the others once" not in said and "Into the result" in said


def test_rows_that_meet_several_columns_are_counted_once():
    def case(draw):
        return Case({"a": draw.array(16, 16, spec=ROWS), "b": draw.array(16, 12, spec=ROWS)}, draw.mesh("x"), ROWS)

    def answer(a, b, *, mesh):
        def on_device(a, b):
            b = lax.all_gather(b, "x", tiled=True)
            return (a[:, :4] + a[:, 4:8] - a[:, 8:12]) @ b[:4] + a[:, 4:] @ b[4:]

        return jax.shard_map(on_device, mesh=mesh, in_specs=(ROWS, ROWS), out_specs=ROWS)(a, b)

    said = heard(lambda a, b: a @ b, case, answer)
    assert "rows [0:4] of `b` are multiplied with columns [0:4], [4:8] and [8:12] of `a`. Which" in said


def test_parts_of_rows_are_no_rows():
    def case(draw):
        table, ids = draw.array(16, 40, spec=P()), Array(np.arange(8, dtype=np.int32) * 3 % 16, P())
        return Case({"table": table, "ids": ids}, draw.mesh("x"), P(None, "x"))

    def answer(table, ids, *, mesh):
        def on_device(table, ids):
            return table[(ids * ids + lax.axis_index("x")) % 16]

        return jax.shard_map(on_device, mesh=mesh, in_specs=(P(None, "x"), P()), out_specs=P(None, "x"))(table, ids)

    said = heard(lambda table, ids: table[ids], case, answer)
    assert "Every row" not in said and "every part of a row is that of a row of `table`" in said


def timetable(orders, due):
    def case(draw):
        return Case({"count": 1})

    made = TimetableExercise("as_wide_in_a_test", points=2, reference=lambda count: {"all": due})
    return heard_of(made, case, lambda count: orders)


def test_microbatches_that_are_missing_are_all_named():
    due = [["F0", "F1", "B0", "B1"]]
    assert "0 to 3, without numbers 1, 2." in timetable([["F0", "F3", "B0", "B3"]], due)
    assert "0 to 99, of which many are missing." in timetable([["F0", "F99", "B0", "B99"]], due)


def test_a_mistake_that_costs_as_much_is_not_exactly_the_answer():
    due = [["F0", "B0", "F1", "B1"]]
    exercise = TimetableExercise("as_wide_in_a_test", 2, reference=lambda count: {"all": due})
    exercise.cases(lambda draw: Case({"count": 1}))

    @exercise.mistake
    def forward_first(count):
        """All forward passes come first."""
        return [["F0", "F1", "B0", "B1"]]

    cases = exercise.draw_cases()
    said = {
        str(orders): judge(
            exercise, cases, collect("timetable", asks(exercise, cases), lambda count, o=orders: o)
        ).words
        for orders in ([["F0", "F1", "B0", "B1"]], [["F0", "F1", "B1", "B0"]])
    }
    exactly, nearly = said.values()
    assert "gives exactly this" in exactly and "gives nearly this" in nearly


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ([["F0", "F0", "F0", "B0"]], "F0@0 is done 3 times."),
        ([["F0", "W0", "B0"], ["F0", "B0"]], "Nobody who has something to do can go on:\n- device 0 cannot begin W0@0"),
    ],
)
def test_of_orders_no_more_is_said_than_is_so(orders, words):
    assert simulate(orders).wrong.startswith(words)


def test_a_ratio_follows_the_devices_only_where_it_does_in_each_case():
    def cases(draw):
        for columns in (3, 6):
            yield Case({"a": draw.array(16, columns, spec=P("x"))}, draw.mesh("x", "y"), P("x"))

    def of_one_case(a, *, mesh):
        return a * (mesh.shape["x"] if a.shape[1] == 3 else 5)

    both = (4, 2), (2, 4)
    assert "that is the number of devices" not in heard(lambda a: a * 1, cases, of_one_case, both)
    said = heard(lambda a: a * 1, cases, lambda a, *, mesh: a * mesh.shape["x"], both)
    assert "that is the number of devices along x" in said


def test_of_what_is_right_but_for_gradients_it_is_not_said_without_what_it_would_be_right():
    def case(draw):
        given = {name: draw.array(8, 4, spec=P("x")) for name in ("a", "b")}
        return Case(given, draw.mesh("x"), P("x"), cotangents=draw.array(8, 4, spec=P("x")))

    def odd(a, b, *, mesh):
        wrong = a * jnp.tan(b) ** 2 * jnp.roll(b, 1, axis=1)
        return jnp.sin(a) * b + 2 + wrong - lax.stop_gradient(wrong)

    said = heard(lambda a, b: jnp.sin(a) * b + 2 + b, case, lambda a, b, *, mesh: odd(a, b, mesh=mesh) + b)
    assert "gradient" in said and "With zeros" not in said


@pytest.mark.parametrize(("step", "is_given"), [(0, True), (1e-4, False)])
def test_what_was_changed_a_little_is_not_as_it_was_given(step, is_given):
    def case(draw):
        given = {name: draw.array(8, 4, spec=P("x")) for name in ("w", "g")}
        return Case(given, draw.mesh("x"), P("x"), roundings=10_000)

    said = heard(lambda w, g: w - g / 10, case, lambda w, g, *, mesh: w - step * jnp.sin(g))
    assert ("as it was given" in said) == is_given
