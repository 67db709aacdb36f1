"""The questions that later lessons ask about tensor parallelism: right, and never the same twice."""

import re

import numpy as np
from asking import asked

from grader.lessons.tensor_parallel import review as questions


def test_a_word_is_found_on_exactly_one_device():
    for question in asked(questions.local_row):
        total, n, device, word = map(int, re.findall(r"\d+", question.ask))
        owned = np.arange(total).reshape(n, -1)[device].tolist()
        assert question.answer == (owned.index(word) if word in owned else "none")


def test_a_ratio_is_the_devices_along_model_or_one():
    for question in asked(questions.gradient_ratio):
        model = int(re.search(r"×(\d)", question.ask)[1])
        assert question.answer == (1 if "that of b2" in question.ask else model)
