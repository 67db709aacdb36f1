"""Review questions about rings: each has one right answer, whatever is drawn."""

import numpy as np
import pytest

from grader.reviews.asking import makers
from grader.reviews.rings import LESSON, block_after_steps, hangs_or_finishes, steps_of_a_ring


@pytest.mark.parametrize("maker", makers()[LESSON], ids=lambda maker: maker.__name__)
def test_a_question_accepts_its_answer_and_no_other(maker):
    for seed in range(20):
        question = maker(np.random.default_rng(seed))
        wrong = "perhaps" if isinstance(question.answer, str) else question.answer + 1
        assert question.accepts(question.answer) and not question.accepts(wrong)
        assert question.ask.rstrip().endswith(("?", "'hangs'?")) and question.why.endswith(".")


def test_the_questions_vary():
    for maker in (block_after_steps, hangs_or_finishes, steps_of_a_ring):
        assert len({maker(np.random.default_rng(seed)).ask for seed in range(20)}) > 3


def test_the_block_is_the_one_that_is_passed_on():
    for seed in range(20):
        question = block_after_steps(np.random.default_rng(seed))
        ring, device, steps = (int(word) for word in question.ask.replace("?", "").split() if word.isdigit())
        held = list(range(ring))
        for _ in range(steps):
            held = held[-1:] + held[:-1] if "to the next" in question.ask else held[1:] + held[:1]
        assert held[device] == question.answer
