"""The questions about 04_automatic that later lessons ask, held against what JAX does."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh, put
from grader.programs.report import communication
from grader.reviews import automatic
from grader.reviews.asking import makers

SEEDS = range(20)


@pytest.mark.parametrize("maker", makers()["04_automatic"], ids=lambda f: f.__name__)
def test_every_question_can_be_answered(maker):
    asked = [maker(np.random.default_rng(seed)) for seed in SEEDS]
    assert all(q.accepts(q.answer) and not q.accepts("nonsense") for q in asked)
    assert len({q.ask for q in asked}) > 4
    assert all(q.why.endswith((".", "them.")) and "None ×" not in q.ask for q in asked)


def laid(asked, shape):
    """An array as a question describes it, on the mesh that it names."""
    sizes = re.search(r"x=(\d), y=(\d)", asked) or re.match("(4)(2)", "42")
    spec = re.search(r"(P\([^)]*\))", asked)[1]
    mesh = make_mesh({"x": int(sizes[1]), "y": int(sizes[2])})
    return put(np.ones(shape, np.float32), eval(spec, {"P": P}), mesh)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_layout_is_that_of_jax(seed):
    question = automatic.layout_of_a_transpose(np.random.default_rng(seed))
    found = jax.jit(lambda v: jnp.sin(v).T)(laid(question.ask, (16, 32)))
    spec = (*found.sharding.spec, None, None)[:2]
    assert spec == question.answer


@pytest.mark.parametrize("seed", SEEDS)
def test_the_axis_is_that_of_the_compiled_program(seed):
    question = automatic.collective_of_a_sum(np.random.default_rng(seed))
    dim = int(re.search(r"sum\((\d)\)", question.ask)[1])
    found = communication(lambda v: v.sum(dim), laid(question.ask, (16, 32))).collectives
    assert [c.axes for c in found] == ([] if question.answer == "none" else [(question.answer,)])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bytes_are_those_of_the_compiled_program(seed):
    question = automatic.bytes_of_a_sum(np.random.default_rng(seed))
    shape = tuple(map(int, re.search(r"\[(\d+),(\d+)\]", question.ask).groups()))
    assert communication(lambda v: v.sum(0), laid(question.ask, shape)).bytes_sent == question.answer


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bytes_of_making_are_those_of_the_compiled_program(seed):
    question = automatic.bytes_where_parameters_are_made(np.random.default_rng(seed))
    shape = tuple(map(int, re.search(r"\[(\d+),(\d+)\]", question.ask).groups()))
    cut = laid(question.ask, shape).sharding if "out_shardings" in question.ask else None
    made = jax.jit(lambda: jnp.ones(shape), out_shardings=cut).lower().compile()
    assert made.memory_analysis().output_size_in_bytes == question.answer
