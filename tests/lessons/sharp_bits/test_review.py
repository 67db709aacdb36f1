"""Review questions about sharp bits: each has one right answer, whatever is drawn."""

import numpy as np

from grader.lessons.sharp_bits.review import narrow_sum


def test_a_narrow_sum_is_what_python_says_modulo_256():
    for seed in range(20):
        question = narrow_sum(np.random.default_rng(seed))
        devices, value = (int(word) for word in question.ask.replace(",", "").split() if word.isdigit())
        assert question.answer == (devices * value + 128) % 256 - 128
