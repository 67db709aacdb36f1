"""Lesson 11, beyond its exercises' own tests: other spellings of its mistakes, and what its bounds separate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.laid import values_of
from grader.exercises.collecting import asks, collect
from grader.explaining.explained import explained
from grader.lessons import EXERCISES
from grader.lessons.gradients.means import gradient_divided, loss
from grader.lessons.gradients.rules import squares

ROWS = P(), P("data"), P("data")


def verdict(name, answer, seed=7):
    exercise = EXERCISES[name]
    cases = exercise.draw_cases(seed)
    return explained(exercise, cases, collect(exercise.form, asks(exercise, cases), answer))


def inside(body, out=P(), check_vma=True):
    return lambda *given, mesh: jax.shard_map(body, mesh=mesh, in_specs=ROWS, out_specs=out, check_vma=check_vma)(
        *given
    )


def sum_over_own_rows(params, x, y):
    """The psum of sums, divided by the number of a device's own elements."""
    return lax.psum(jnp.sum((jnp.tanh(x @ params["w1"]) @ params["w2"] - y) ** 2) / y.size, "data")


def common_recipe(params, x, y):
    return lax.pmean(jax.value_and_grad(loss)(params, x, y), "data")


def psum_afterward(params, x, y):
    value, grads = jax.value_and_grad(lambda p: lax.pmean(loss(p, x, y), "data"))(params)
    return value, lax.psum(grads, "data")


def scanned(w, xs, ys, *, mesh):
    return lax.scan(lambda total, batch: (total + jax.grad(squares)(w, *batch), None), jnp.zeros_like(w), (xs, ys))[0]


def looped(w, xs, ys, *, mesh):
    total = jnp.zeros_like(w)
    for x, y in zip(xs, ys, strict=True):
        total = total + jax.grad(squares)(w, x, y)
    return total


SPELLINGS = [
    ("gradient_of_the_mean", inside(common_recipe), "summed_once_more"),
    ("one_all_reduce", looped, "reduced_every_part"),
]
MORE_SPELLINGS = [
    ("dp_gradient_outside", inside(sum_over_own_rows), "sum_of_means"),
    ("gradient_of_the_mean", inside(psum_afterward), "summed_once_more"),
    ("gradient_divided", inside(lambda *a: lax.pmean(jax.grad(loss)(*a), "data")), "local_then_mean"),
    ("gradient_divided", inside(lambda *a: lax.psum(jax.grad(loss)(*a), "data")), "local_then_sum"),
    ("one_all_reduce", scanned, "reduced_every_turn"),
]


@pytest.mark.parametrize(
    "exercise, answer, mistake", [*SPELLINGS, *(pytest.param(*more, marks=pytest.mark.slow) for more in MORE_SPELLINGS)]
)
def test_a_mistake_is_named_however_it_is_spelled(exercise, answer, mistake):
    found = verdict(exercise, answer)
    assert not found.passed and found.mistake == mistake, found.outcomes


def test_the_bound_lies_between_rounding_and_the_smallest_mistake():
    """The gradient in float32, against that in float64: far within the bound; half of it: far outside."""
    for case in gradient_divided.draw_cases(3, thorough=True):
        given = values_of(dict(case.arguments))
        found = jax.grad(loss)(*given.values())
        exact = gradient_in_double(**given)
        for name, due in exact.items():
            bound = case.roundings * 2.0**-24
            assert np.abs(found[name] - due).max() < bound / 10 * np.abs(due).max()
            assert bound < 0.5 / 1000


def gradient_in_double(params, x, y):
    """The lesson's gradient, written out."""
    w1, w2, x, y = (np.asarray(a, np.float64) for a in (params["w1"], params["w2"], x, y))
    hidden = np.tanh(x @ w1)
    errors = 2 * (hidden @ w2 - y) / y.size
    return {"w1": x.T @ (errors @ w2.T * (1 - hidden**2)), "w2": hidden.T @ errors}
