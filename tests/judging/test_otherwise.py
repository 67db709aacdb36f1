"""What a wrong result is right for: a changed reference, devices on their own, somebody's part left out."""

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercises import Array, Case, ProgramExercise
from grader.exercises.collecting import asks, collect
from grader.judging.judge import judge
from grader.programs.variants import Variants

SPECS = P(None, "x"), P("x", None), P()


def numpys(a, w, bias):
    return np.maximum(a @ w + bias, 0)


def exercise_of(reference, specs=SPECS):
    layer = ProgramExercise("layer_of_a_test", points=2, reference=reference, mesh_shapes=((4, 2), (2, 4)))

    @layer.cases
    def _(draw):
        arrays = {"a": (6, 8), "w": (8, 4), "bias": (4,)}
        given = {name: draw.array(*shape, spec=spec) for (name, shape), spec in zip(arrays.items(), specs, strict=True)}
        return Case(given, draw.mesh("x", "y"), P())

    return layer


def heard(body, reference=numpys, specs=SPECS):
    exercise = exercise_of(reference, specs)

    def answer(a, w, bias, *, mesh):
        mapped = jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)
        return mapped(a, w, bias)

    cases = exercise.draw_cases(0)
    return judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words


def product(a, w):
    return lax.psum(a @ w, "x")


@pytest.mark.parametrize("reference", [numpys, lambda a, w, bias: jax.nn.relu(a @ w + bias)])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda a, w, bias: jnp.maximum(product(a, w), 0), "when `bias` is left out"),
        (lambda a, w, bias: product(a, w) + bias, "is left out"),
        (lambda a, w, bias: product(a, w), " and "),
        (lambda a, w, bias: jnp.maximum(product(a, w), 0) + bias, "when `bias` comes at the very end"),
        (
            lambda a, w, bias: jnp.maximum(product(a, w) + lax.psum(bias, "x"), 0),
            "when `bias` is added once for each of the devices along x",
        ),
        (
            lambda a, w, bias: jnp.maximum(lax.pmean(a @ w, "x") + bias, 0),
            "when a product of matrices is divided by the number of devices along x",
        ),
    ],
)
def test_the_step_that_is_otherwise_is_said(body, words, reference):
    found = heard(body, reference)
    assert "This is what comes out when" in found and words in found


def test_what_is_rounded_down_is_told_of_many_small_numbers_and_of_a_single_one():
    small = heard(lambda a, w, bias: jnp.floor(product(a, w) / 1000), lambda a, w, bias: a @ w / 1000)
    assert "Every entry is the one that is due, rounded down to a whole number." in small
    exercise = ProgramExercise(
        "rounded_of_a_test", points=1, reference=lambda a: (a**2).sum() / 7, mesh_shapes=((4,), (2,))
    )
    exercise.cases(lambda draw: Case({"a": draw.array(8, 6, spec=P("x"))}, draw.mesh("x"), P()))
    cases = exercise.draw_cases(0)

    def answer(a, *, mesh):
        body = lambda a: lax.psum((a**2).sum(), "x") // 7  # noqa: E731
        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(a)

    words = judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words
    assert "It is what is due, rounded down to a whole number. Which of your steps does that?" in words


def test_a_factor_in_the_place_of_a_divisor_is_told():
    found = heard(lambda a, w, bias: product(a, w) * 3 + bias, lambda a, w, bias: a @ w / 3 + bias)
    assert "when a factor stands where a divisor should, or a divisor where a factor should." in found


def test_the_number_of_all_devices_is_not_told_where_a_sum_has_as_many_terms():
    found = heard(lambda a, w, bias: 8 * product(a, w) + bias, lambda a, w, bias: a @ w + bias)
    assert "once for each of the devices" not in found


def test_what_belongs_to_another_devices_block_is_told():
    exercise = ProgramExercise("parts_of_a_test", points=1, reference=lambda a: a.sum(axis=0), mesh_shapes=((4,),))
    exercise.cases(lambda draw: Case({"a": draw.array(4, 36, spec=P("x"))}, draw.mesh("x"), P("x")))

    def on_device(a):
        parts = a.reshape(4, 9)
        mine = jnp.where(lax.axis_index("x") == 1, parts[2], parts[0])
        return lax.psum_scatter(parts.at[0].set(mine).reshape(-1), "x", tiled=True)

    def answer(a, *, mesh):
        return jax.shard_map(on_device, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(a)

    cases = exercise.draw_cases(0)
    words = judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words
    assert (
        "Into the result on device 0 comes what `a` on device 1 gives for entries [18:27], in the place of what it "
        "gives for [0:9]; all else in it is as it should be. Which part does each device add, and when?"
    ) in words


def test_a_device_that_works_on_its_own_is_told_so():
    specs = P("x"), P(), P()
    found = heard(lambda a, w, bias: a - a.mean(), lambda a, w, bias: a - a.mean(), (P(), P("x"), P()))
    assert "know nothing of one another" not in found  # it is right
    exercise = ProgramExercise(
        "centred_of_a_test", points=1, reference=lambda a: a - a.mean(axis=0), mesh_shapes=((4, 2),)
    )
    exercise.cases(lambda draw: Case({"a": draw.array(8, 3, spec=P("x"))}, draw.mesh("x", "y"), P("x")))
    cases = exercise.draw_cases(0)

    def answer(a, *, mesh):
        return jax.shard_map(lambda a: a - a.mean(axis=0), mesh=mesh, in_specs=specs[0], out_specs=specs[0])(a)

    words = judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words
    assert "the devices along x know nothing of one another" in words


def test_in_which_piece_of_a_block_somebodys_part_is_missing_is_said():
    def without_one_above(a, w, bias):
        missing = (lax.axis_index("x") == 1) & (jnp.arange(6) < 3)
        return lax.psum(jnp.where(missing, 0.0, 1.0)[:, None] * (a @ w), "x")

    found = heard(without_one_above, lambda a, w, bias: a @ w)
    assert "Into entries [0:3, 0:4] of the block on device 0 comes nothing of `a` from device" in found


def test_a_piece_that_belongs_elsewhere_is_told():
    found = heard(lambda a, w, bias: jnp.roll(product(a, w), 3, axis=0), lambda a, w, bias: a @ w)
    assert "Entries [0:3, 0:4] of the block on device 0 are numbers that belong to entries [3:6, 0:4]" in found


def test_which_entries_do_not_come_in_is_said():
    def without_the_odd_ones(a, w, bias):
        return lax.psum(a[:, ::2] @ w[::2], "x")

    found = heard(without_the_odd_ones, lambda a, w, bias: a @ w)
    assert (
        "come, along dimension 1 of `a`, entries 1, 3, 5, 7 not at all (counted from 0), and the others once." in found
    )


def test_one_factor_of_all_is_told_before_whose_part_counts():
    found = heard(lambda a, w, bias: 3 * product(a, w), lambda a, w, bias: a @ w)
    assert "Every entry is 3 times too large, here on 4 × 2 devices and in a case on 2 × 4 devices." in found
    found = heard(lambda a, w, bias: 4 * lax.pmean(a @ w, "x"), lambda a, w, bias: a @ w)
    assert "Every entry is 2 times too large." in found and "On 4 × 2 devices this is right" in found


def test_whose_part_is_missing_is_said():
    def without_two(a, w, bias):
        return lax.psum(jnp.where(lax.axis_index("x") == 1, 0.0, 1.0) * (a @ w), "x")

    found = heard(without_two, lambda a, w, bias: a @ w)
    assert "Into the result on device 0 comes nothing of `a` from device" in found


def test_dimensions_of_sums_are_turned_where_a_reference_is_written_in_numpy():
    given = {"a": np.arange(6.0, dtype=np.float32).reshape(2, 3)}
    variants = Variants(lambda a: a - a.mean(axis=0), given, {"x": 2})
    (turned,) = variants.result(("sums and maxima run over all dimensions", ()))
    np.testing.assert_allclose(turned, given["a"] - 2.5)


def test_of_what_cannot_be_traced_there_are_no_variants():
    assert Variants(lambda a: a if a[0] > 0 else -a, {"a": np.ones(2, np.float32)}, {"x": 2}).changes == {}


def test_two_steps_of_the_same_words_are_told_apart():
    def masked_twice(a, mask):
        return {"hits": jnp.sum((a > 0) * mask), "total": jnp.sum(a * mask)}

    given = {"a": np.array([1, 2, -3], np.float32), "mask": np.array([1, 0, 1], np.float32)}
    variants = Variants(masked_twice, given, {"x": 2})
    found = {tuple(map(float, variants.result(key))) for key in variants.changes if key[0] == "`mask` is left out"}
    assert found == {(2.0, -2.0), (1.0, 0.0)}


def test_one_result_of_several_has_variants_of_its_own():
    def both(a, w):
        return jnp.tanh(a), jnp.sum(a @ w, axis=0)

    given = {"a": np.ones((2, 2), np.float32), "w": np.full((2, 2), 2, np.float32)}
    variants = Variants(both, given, {"x": 2}, only=1)
    (found,) = variants.result(("a sum counts once for each of the devices along x", (1,)))
    np.testing.assert_allclose(found, [16, 16])


def test_the_wrong_one_of_several_results_is_told_of_alone():
    exercise = ProgramExercise(
        "two_results_of_a_test",
        points=2,
        reference=jax.value_and_grad(lambda w, mask: jnp.sum(mask * w**3) / jnp.sum(mask)),
        mesh_shapes=((4, 2), (2, 4)),
    )

    @exercise.cases
    def _(draw):
        mask = Array((np.arange(8) < 5).astype(np.float32), P())
        return Case({"w": draw.array(8, spec=P()), "mask": mask}, draw.mesh("x", "y"), (P(), P()))

    def answer(w, mask, *, mesh):
        body = jax.value_and_grad(lambda w, mask: jnp.sum(w**3) / jnp.sum(mask))
        return jax.shard_map(body, mesh=mesh, in_specs=(P(), P()), out_specs=(P(), P()))(w, mask)

    cases = exercise.draw_cases(0)
    words = judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words
    assert "Result 0 is what comes out when `mask` is left out. Is it so in your program?" in words


def test_where_nothing_explains_a_result_its_right_arrays_are_named():
    exercise = ProgramExercise(
        "two_arrays_of_a_test", points=2, reference=lambda a: (a + 1, a.sum()), mesh_shapes=((4, 2),)
    )
    exercise.cases(lambda draw: Case({"a": draw.array(8, 4, spec=P())}, draw.mesh("x", "y"), (P(), P())))
    cases = exercise.draw_cases(0)

    def answer(a, *, mesh):
        return jax.shard_map(lambda a: (jnp.sin(a) * a**2, a.sum()), mesh=mesh, in_specs=P(), out_specs=P())(a)

    words = judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words
    assert "Right on every device: Result 1. What goes into the rest, and not into that?" in words


def test_inside_a_sentence_the_result_and_its_gradients_are_written_small():
    exercise = ProgramExercise(
        "logs_of_a_test", points=1, reference=lambda a: jnp.sqrt(a**2 + 1).sum(), mesh_shapes=((4,),)
    )
    one = Array(np.float32(1), P())
    exercise.cases(lambda draw: Case({"a": draw.array(8, spec=P("x"))}, draw.mesh("x"), P(), cotangents=one))
    cases = exercise.draw_cases(0)

    def answer(a, *, mesh):
        body = lambda a: lax.psum(2 * jnp.sqrt(a**2 + 1).sum(), "x") + jnp.inf  # noqa: E731
        return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P())(a)

    words = judge(exercise, cases, collect("program", asks(exercise, cases), answer)).words
    assert "Of the result: " in words and "Also wrong: the gradient with respect to a." in words


def test_a_piece_of_a_block_into_which_nothing_comes_is_told():
    def without_first_rows(a, w, bias):
        whole = lax.psum(a @ w, "x")
        return whole.at[: len(whole) // 2].set(0)

    found = heard(without_first_rows, lambda a, w, bias: a @ w)
    assert "of the block on device 0 comes nothing of `a`." in found


def test_nothing_is_said_of_shares_where_what_is_due_is_no_sum_of_them():
    found = heard(lambda a, w, bias: 2 * lax.psum((a @ w) ** 2, "x"), lambda a, w, bias: (a @ w) ** 2)
    assert "counts 2 times" not in found
