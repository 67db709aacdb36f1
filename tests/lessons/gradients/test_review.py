"""The questions about 11_gradients: what they say is what JAX does."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh
from grader.lessons.gradients import review
from grader.lessons.gradients.transposes import RECIPES, ratio_of

SPOKEN = {  # of the lesson's recipes on eight devices: how the questions speak of them
    "own loss": "the local mean loss, and nothing more",
    "own loss, then pmean": "the local mean loss, then pmean of the gradient",
    "own loss, then psum": "the local mean loss, then psum of the gradient",
    "pmean of the loss": "the pmean of the local mean losses, and nothing more",
    "pmean of the loss, then pmean": "the pmean of the local mean losses, then pmean of the gradient",
    "pmean of the loss, then psum": "the pmean of the local mean losses, then psum of the gradient",
}


@pytest.mark.parametrize("recipe", SPOKEN)
def test_the_powers_of_the_recipes_are_jaxs(recipe):
    assert recipe in RECIPES
    for check_vma, power in zip((True, False), review.RECIPES[SPOKEN[recipe]], strict=True):
        assert ratio_of(recipe, check_vma) == ("replicas disagree" if power is None else 8**power)


@pytest.mark.parametrize("seed", range(20))
def test_the_ratio_of_a_recipe_is_a_power(seed):
    question = review.ratio_of_a_recipe(np.random.default_rng(seed))
    n = int(question.ask.split()[0])
    assert question.answer in (1, n, n * n, "replicas disagree") and question.why


@pytest.mark.parametrize("seed", range(20))
def test_the_cotangent_of_a_sum_is_jaxs(seed):
    question = review.cotangent_of_a_sum(np.random.default_rng(seed))
    n, each = (int(number) for number in re.search(r"(\d) devices.*cotangent (\d)", question.ask).groups())
    out = P() if "out_specs=P()," in question.ask else P("x")
    combine = lax.pmean if "pmean" in question.ask else lax.psum
    program = jax.shard_map(lambda v: combine(v, "x"), mesh=make_mesh({"x": n}), in_specs=P("x"), out_specs=out)
    result, pull_back = jax.vjp(jax.jit(program), jnp.ones(n))
    assert question.accepts(float(pull_back(jnp.full_like(result, each))[0][0]))


@pytest.mark.parametrize("seed", range(20))
def test_what_the_backward_pass_sends_is_among_the_answers(seed):
    question = review.backward(np.random.default_rng(seed))
    assert f"'{question.answer}'" in question.ask and question.why
