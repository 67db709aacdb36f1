"""The questions that later lessons ask about tensor parallelism: right, and never the same twice."""

import re

import numpy as np
import pytest
from asking import asked, assert_fair

from grader.reviews import tensor_parallel as questions
from grader.reviews.asking import makers


@pytest.mark.parametrize("maker", makers()["13_tensor_parallel"])
def test_a_question_takes_its_own_answer_and_no_other(maker):
    assert_fair(maker)


def test_a_word_is_found_on_exactly_one_device():
    for question in asked(questions.local_row):
        total, n, device, word = map(int, re.findall(r"\d+", question.ask))
        owned = np.arange(total).reshape(n, -1)[device].tolist()
        assert question.answer == (owned.index(word) if word in owned else "none")


def test_a_ratio_is_the_devices_along_model_or_one():
    for question in asked(questions.gradient_ratio):
        model = int(re.search(r"×(\d)", question.ask)[1])
        assert question.answer == (1 if "that of b2" in question.ask else model)
