"""Review questions about sharp bits: each has one right answer, whatever is drawn."""

import numpy as np
import pytest

from grader.reviews.asking import makers
from grader.reviews.sharp_bits import LESSON, narrow_sum


@pytest.mark.parametrize("maker", makers()[LESSON], ids=lambda maker: maker.__name__)
def test_a_question_accepts_its_answer_and_no_other(maker):
    for seed in range(20):
        question = maker(np.random.default_rng(seed))
        wrong = "both" if isinstance(question.answer, str) else question.answer + 1
        assert question.accepts(question.answer) and not question.accepts(wrong)
        assert question.ask.endswith("?") and question.why.endswith(".")


@pytest.mark.parametrize("maker", makers()[LESSON], ids=lambda maker: maker.__name__)
def test_the_questions_vary(maker):
    assert len({maker(np.random.default_rng(seed)).ask for seed in range(20)}) > 3


def test_a_narrow_sum_is_what_python_says_modulo_256():
    for seed in range(20):
        question = narrow_sum(np.random.default_rng(seed))
        devices, value = (int(word) for word in question.ask.replace(",", "").split() if word.isdigit())
        assert question.answer == (devices * value + 128) % 256 - 128
