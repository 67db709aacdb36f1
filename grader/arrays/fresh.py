"""Random generators that are new every time."""

from __future__ import annotations

import os
import secrets

import numpy as np

SEED = "GRADER_REVIEW_SEED"  # for authors: the same questions whenever a lesson is built


def fresh(seed: int | None = None) -> np.random.Generator:
    """A generator that is new every time; with a seed, or while a lesson is built, the same again."""
    return np.random.default_rng(seed if seed is not None else int(os.environ.get(SEED, secrets.randbits(32))))
