"""The review questions about 05_shard_map: answers worked out otherwise than the questions do."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh
from grader.reviews.asking import makers
from grader.reviews.question import Question

SEEDS = range(20)


def asked(maker, seed) -> Question:
    (found,) = [m for m in makers()["05_shard_map"] if m.__name__ == maker]
    return found(np.random.default_rng(seed))


def mesh_in(text):
    shape = re.search(r"On a (\d) × (\d) mesh", text)
    return make_mesh(dict(zip("xy", map(int, shape.groups()), strict=True)))


def spec_in(text, name):
    return eval(re.search(name + r"(P\(.*?\))[. ]", text.replace("=", "="))[1], {"P": P})


@pytest.mark.parametrize("maker", [m.__name__ for m in makers()["05_shard_map"]])
def test_every_question_accepts_its_own_answer_and_changes(maker):
    questions = [asked(maker, seed) for seed in SEEDS]
    assert all(q.accepts(q.answer) and q.why for q in questions)
    assert len({q.ask for q in questions}) > 5
    assert len({str(q.answer) for q in questions}) > 2


@pytest.mark.parametrize("seed", SEEDS)
def test_the_shape_inside_is_what_shard_map_shows(seed):
    question, seen = asked("shape_inside", seed), []
    shape = eval(re.search(r"float32(\[.*?\])", question.ask)[1])
    spec = spec_in(question.ask, "in_specs=")
    body = jax.shard_map(
        lambda block: seen.append(block.shape) or block, mesh=mesh_in(question.ask), in_specs=spec, out_specs=spec
    )
    jax.eval_shape(body, jax.ShapeDtypeStruct(tuple(shape), jnp.float32))
    assert question.answer == seen[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_result_is_what_shard_map_makes(seed):
    question = asked("result_of_out_specs", seed)
    local = eval(re.search(r"of shape (\(.*?\))", question.ask)[1])
    body = jax.shard_map(
        lambda: jnp.zeros(local),
        mesh=mesh_in(question.ask),
        in_specs=(),
        out_specs=spec_in(question.ask, "out_specs="),
        check_vma=False,
    )
    assert question.answer == jax.eval_shape(body).shape


@pytest.mark.parametrize("seed", SEEDS)
def test_a_broken_promise_shows_device_0(seed):
    question = asked("honest_out_specs", seed)
    low, high, n = map(int, re.search(r"numbers (\d+) to (\d+), cut over (\d)", question.ask).groups())
    body = jax.shard_map(jnp.sum, mesh=make_mesh({"x": n}), in_specs=P("x"), out_specs=P(), check_vma=False)
    assert question.answer == int(body(jnp.arange(low, high + 1)))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_varies_after_a_sum(seed):
    question = asked("varying_after_a_sum", seed)
    spec, summed = spec_in(question.ask, "with "), re.search(r"block, '(\w)'", question.ask)[1]
    assert question.answer == set(re.findall(r"[xy]", str(tuple(spec)))) - {summed}
