"""Review questions as a later lesson draws them."""

import numpy as np

SEEDS = range(20)


def asked(maker):
    """What a maker asks, for one seed after the other."""
    return [maker(np.random.default_rng(seed)) for seed in SEEDS]
