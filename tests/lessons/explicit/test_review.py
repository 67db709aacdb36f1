"""The questions about 10_explicit: what they say follows from rules is what JAX does."""

import re

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import aval, make_mesh
from grader.lessons.explicit import review


@pytest.fixture(scope="module")
def mesh():
    return make_mesh({"x": 4, "y": 2}, explicit=True)


def array(text, mesh):
    """What is known of an array of this type."""
    dims = [dim.partition("@") for dim in re.fullmatch(r"float32\[(.*)\]", text)[1].split(",")]
    return aval(tuple(int(n) for n, _, _ in dims), np.float32, P(*(axis or None for _, _, axis in dims)), mesh)


def types_in(text):
    return re.findall(r"float32\[[^]]*\]", text)


@pytest.mark.parametrize("seed", range(20))
def test_the_type_of_a_matmul_is_jaxs(seed, mesh):
    question = review.type_of_a_matmul(np.random.default_rng(seed))
    left, right = types_in(question.ask)
    found = []
    jax.eval_shape(lambda a, b: found.append(str(jax.typeof(a @ b))), array(left, mesh), array(right, mesh))
    assert question.accepts(found[0]) and question.why


@pytest.mark.parametrize("seed", range(20))
def test_the_rule_that_stops_a_sum_is_jaxs(seed, mesh):
    question = review.which_rule(np.random.default_rng(seed))
    one, other = types_in(question.ask)
    try:
        jax.eval_shape(lambda a, b: a + b, array(one, mesh), array(other, mesh))
        found = "ok"
    except Exception as error:
        found = "mismatch" if "incompatible shardings" in str(error) else "twice"
    assert question.accepts(found) and question.why


@pytest.mark.parametrize("seed", range(8))
def test_each_out_sharding_of_case_3_has_an_answer(seed):
    question = review.out_sharding_of_case_3(np.random.default_rng(seed))
    assert question.answer in ("none", "all_reduce", "reduce_scatter") and question.answer in question.ask
