"""The questions that later lessons ask about shardings: what they answer is what JAX does."""

import numpy as np
from asking import asked
from jax.sharding import NamedSharding

from grader.arrays.meshes import make_mesh
from grader.lessons.shardings import review as questions
from grader.lessons.shardings.questions import laying, refusal


def sharding(question):
    """The question's own mesh and spec."""
    return NamedSharding(make_mesh(question.given["mesh"]), question.given["spec"])


def test_shapes_of_blocks_are_those_of_jax():
    for question in asked(questions.shape_of_a_block):
        assert question.answer == sharding(question).shard_shape(question.given["shape"])


def test_holders_are_those_of_jax():
    for question in asked(questions.who_holds_the_entry):
        row, column = question.given["entry"]
        indices = sharding(question).devices_indices_map((8, 8))
        assert question.answer == [
            device.id
            for device, (rows, columns) in indices.items()
            if row in range(8)[rows] and column in range(8)[columns]
        ]


def test_bytes_are_those_of_jax():
    for question in asked(questions.bytes_on_all_devices):
        assert question.answer == 8 * 4 * np.prod(sharding(question).shard_shape(question.given["shape"]))


def test_every_answer_on_what_jax_says_is_an_option_and_comes_up():
    made = asked(questions.what_jax_says)
    assert {question.answer for question in made} == set(questions.WHY)
    assert all(repr(question.answer) in question.ask for question in made)


def test_what_jax_says_is_what_it_says():
    for question in asked(questions.what_jax_says):
        assert question.answer == refusal(laying(question.given["shape"], *question.given["spec"]))
