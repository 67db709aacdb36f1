"""Review questions as a later lesson draws them, and what each has to be."""

import numpy as np

SEEDS = range(20)


def asked(maker):
    """What a maker asks, for one seed after the other."""
    return [maker(np.random.default_rng(seed)) for seed in SEEDS]


def assert_fair(maker):
    """Its questions differ, and each takes its own answer and no other."""
    made = asked(maker)
    assert len({question.ask for question in made}) >= 5
    for question in made:
        assert question.accepts(question.answer) and not question.accepts("something else")
        assert question.ask.endswith("?") and question.why.endswith(".")
