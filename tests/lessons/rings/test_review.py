"""Review questions about rings: each has one right answer, whatever is drawn."""

import numpy as np

from grader.lessons.rings.review import block_after_steps


def test_the_block_is_the_one_that_is_passed_on():
    for seed in range(20):
        question = block_after_steps(np.random.default_rng(seed))
        ring, device, steps = (int(word) for word in question.ask.replace("?", "").split() if word.isdigit())
        held = list(range(ring))
        for _ in range(steps):
            held = held[-1:] + held[:-1] if "to the next" in question.ask else held[1:] + held[:1]
        assert held[device] == question.answer
