"""What the lesson on data parallel training claims, beyond its exercises: recipes by name, and seven wrong runs."""

import jax
import numpy as np
import pytest
from jax import lax

from grader.arrays.laid import values_of
from grader.arrays.numbers import tolerance
from grader.arrays.ratios import ratios
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.findings.programs import WrongArrayCount
from grader.judging.behaviour import Execution
from grader.lessons import find
from grader.lessons.data_parallel import steps as dp
from grader.lessons.data_parallel.seven_runs import LETTERS, TRUTH, WAYS, distinct_replicas, identified, runs


def verdict(name, answer, seed=7):
    exercise = find(name)
    cases = exercise.draw_cases(seed)
    return explained(exercise, cases, collect(exercise.form, asks(exercise, cases), answer))


def of_the_mean_then_summed(params, x, y):
    """The gradient of the averaged loss, which is complete, and a psum on top of it."""
    value, gradients = jax.value_and_grad(lambda p: lax.pmean(dp.loss(p, x, y), "data"))(params)
    return value, jax.tree.map(lambda g: lax.psum(g, "data"), gradients)


def summed_of_varying(params, x, y):
    """Local gradients, summed where they should be averaged."""
    value, gradients = jax.value_and_grad(dp.loss)(dp.varying(params, "data"), x, y)
    return lax.pmean(value, "data"), jax.tree.map(lambda g: lax.psum(g, "data"), gradients)


@pytest.mark.parametrize(
    "gradient, mistake",
    [
        pytest.param(of_the_mean_then_summed, "reduced_twice", marks=pytest.mark.slow),
        (summed_of_varying, "took_the_sum_for_the_mean"),
    ],
)
def test_other_recipes_that_behave_the_same_have_the_same_name(gradient, mistake):
    found = verdict("shard_map_dp", lambda *arrays, **how: dp._by_hand(gradient, *arrays, **how))
    assert found.mistake == mistake, found.outcomes


def test_a_list_of_losses_is_told_to_be_several_arrays_in_the_place_of_one():
    def losses_apart(params, x, y, *, steps, rate, mesh):
        losses = []
        for _ in range(steps):
            value, gradients = jax.value_and_grad(dp.loss)(params, dp._laid(x, mesh, "data"), dp._laid(y, mesh, "data"))
            losses.append(value)
            params = dp.descend(params, gradients, rate)
        return losses, params

    (missed, *_) = verdict("jit_dp", losses_apart).failure.findings
    assert isinstance(missed, WrongArrayCount)


def test_reductions_in_every_turn_and_once_more_are_told_once_with_their_turns():
    def body(params, x, y, count):
        turns = zip(jax.numpy.split(x, count), jax.numpy.split(y, count), strict=True)
        parts = [dp._averaged(dp.LOCAL(params, *rows)) for rows in turns]
        return dp._averaged(jax.tree.map(lambda *leaves: sum(leaves) / count, *parts))

    (missed, *_) = verdict("accumulate", lambda *arrays, **how: dp._accumulated(body, *arrays, **how)).failure.findings
    assert len(missed.transfers) == 5 and {one.collective for one in missed.transfers} == {"all_reduce"}


def test_a_batch_that_does_not_fit_raises_jaxs_own_error_on_every_version():
    """It is a ValueError, in newer versions of a class of its own."""
    assert verdict("place_dp", find("place_dp").reference).passed


def test_every_run_is_another_program_and_is_found_out():
    assert {letter: identified(letter) for letter in LETTERS} == LETTERS
    assert sorted(LETTERS.values()) == sorted(WAYS)


@pytest.mark.parametrize("letter", LETTERS)
def test_a_wrong_run_learns_and_is_not_the_right_one(letter):
    losses, truth = runs().losses(letter), runs().losses(TRUTH)
    assert losses[-1] < 0.75 * losses[0]
    assert np.max(np.abs(losses - truth) / truth) > 0.05


def test_the_right_way_of_these_programs_is_the_single_devices_run():
    """So that each of the seven is wrong for one reason only."""
    from grader.lessons.data_parallel.seven_runs import DROPPED, Way, _start

    lab = runs()
    step = jax.jit(lab.on_devices(Way()))
    value, gradients = step(*lab._laid("A", *_start()), DROPPED, 0)
    due, right = lab.gradients(TRUTH)
    assert distinct_replicas(gradients) == 1 and np.isclose(value, due, rtol=1e-5)
    assert all(row.words == "1" for row in ratios(gradients, right).rows)


def furthest(exercise, answer, case):
    """How far an answer is from the reference, in units of the bound that the case allows."""
    (given,) = collect(exercise.form, asks(exercise, [case]), answer)
    due = [
        np.asarray(leaf)
        for leaf in jax.tree.leaves(exercise.reference(*(values_of(a) for a in case.arguments.values())))
    ]
    return max(
        np.abs(block - whole[index]).max() / tolerance(whole[index], case.roundings)
        for result, whole in zip(Execution(given, case).results, due, strict=True)
        for index, block in zip(result.blocks.indices, result.blocks.values, strict=True)
    )


def test_the_bound_of_a_run_is_far_from_right_and_from_wrong_ones():
    exercise = find("shard_map_dp")
    case = exercise.draw_cases(7)[0]
    assert furthest(exercise, right_by_hand, case) < 1 / 8
    for name in ("took_the_sum_for_the_mean", "never_synchronised", "own_loss_returned"):
        wrong = next(m.wrong for m in exercise.mistakes if m.name == name)
        assert furthest(exercise, wrong, case) > 50, name


def right_by_hand(*arrays, **how):
    def gradient(params, x, y):
        return jax.value_and_grad(lambda p: lax.pmean(dp.loss(p, x, y), "data"))(params)

    return dp._by_hand(gradient, *arrays, **how)
