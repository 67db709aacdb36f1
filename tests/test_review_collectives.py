"""The questions that later lessons ask about 06_collectives: well formed, right, and different each time."""

import numpy as np
import pytest

from grader.reviews import MAKERS


@pytest.mark.parametrize("maker", MAKERS["06_collectives"])
def test_questions_accept_their_answer_and_differ(maker):
    questions = [maker(np.random.default_rng(seed)) for seed in range(20)]
    assert all(q.accepts(q.answer) and q.ask and q.why for q in questions)
    assert len({q.ask for q in questions}) > 3
