"""The questions that later lessons ask about shardings: right, told apart, and never the same twice."""

import re

import numpy as np
import pytest
from asking import asked
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.arrays.meshes import make_mesh
from grader.lessons.shardings.questions import laying, refusal
from grader.reviews import shardings as questions
from grader.reviews.asking import makers


@pytest.mark.parametrize("maker", makers()["02_shardings"])
def test_a_question_takes_its_own_answer_and_no_other(maker):
    made = asked(maker)
    assert len({question.ask for question in made}) >= 6
    for question in made:
        assert question.accepts(question.answer) and not question.accepts("something else")
        assert question.ask.strip().endswith(("?", ")")) and question.why.endswith(".")


def laid(question, shape):
    """The question's own mesh and spec, as JAX lays them out."""
    x, y = map(int, re.search(r"On a (\d) × (\d) mesh", question.ask).groups())
    spec = eval(re.search(r"lies as (P\(.*?\))\.", question.ask)[1], {"P": P})
    sharding = NamedSharding(make_mesh({"x": x, "y": y}), spec)
    return sharding, sharding.devices_indices_map(shape)


def test_shapes_of_blocks_are_those_of_jax():
    for question in asked(questions.shape_of_a_block):
        shape = tuple(map(int, re.search(r"a (\d+) × (\d+) array", question.ask).groups()))
        assert question.answer == laid(question, shape)[0].shard_shape(shape)


def test_holders_are_those_of_jax():
    for question in asked(questions.who_holds_the_entry):
        row, column = map(int, re.search(r"entry \[(\d), (\d)\]", question.ask).groups())
        held = laid(question, (8, 8))[1]
        assert question.answer == [
            device.id
            for device, (rows, columns) in held.items()
            if row in range(8)[rows] and column in range(8)[columns]
        ]


def test_bytes_are_those_of_jax():
    for question in asked(questions.bytes_on_all_devices):
        shape = tuple(map(int, re.search(r"float32\[(\d+),(\d+)\]", question.ask).groups()))
        sharding, _ = laid(question, shape)
        assert question.answer == 8 * 4 * np.prod(sharding.shard_shape(shape))


def test_every_answer_on_what_jax_says_is_an_option_and_comes_up():
    made = asked(questions.what_jax_says)
    assert {question.answer for question in made} == set(questions.WHY)
    assert all(repr(question.answer) in question.ask for question in made)


def test_what_jax_says_is_what_it_says():
    for question in asked(questions.what_jax_says):
        shape = eval(re.search(r"an array of shape (\(.*?\)) is", question.ask)[1])
        spec = eval(re.search(r"is to lie as (P\(.*?\))\. What", question.ask)[1], {"P": P})
        assert question.answer == refusal(laying(shape, *spec))
