"""What later lessons ask about data parallel training, worked out here in other ways."""

import re

import numpy as np
import pytest

from grader.lessons.data_parallel import review

RNG = pytest.mark.parametrize("seed", range(20))


def numbers(text):
    return [int(n) for n in re.findall(r"\d+", text)]


@RNG
def test_bytes_do_not_depend_on_the_batch(seed):
    question = review.bytes_of_a_step(np.random.default_rng(seed))
    _, inputs, outputs, _, _, n, _ = numbers(question.ask)
    chunk = 4 * (inputs * outputs + outputs) / n
    assert question.answer == round((n - 1) * chunk + (n - 1) * chunk)  # a reduce-scatter's turns, an all-gather's


@RNG
def test_a_rate_is_what_numbers_say(seed):
    question = review.the_rate_that_makes_the_same_step(np.random.default_rng(seed))
    n, share = numbers(question.ask)
    rows = np.random.default_rng(seed).uniform(1, 2, size=(n, share))
    local = rows.mean(1) if "the mean over its own" in question.ask else rows.sum(1)
    found = local.sum() if "psum" in question.ask else local.mean()
    assert question.accepts(round(found / rows.mean()))


@RNG
def test_copies_count_once(seed):
    question = review.norm_of_parts_and_copies(np.random.default_rng(seed))
    n, part, copy = numbers(question.ask)
    everything = np.concatenate([np.full(n, part**0.5), [copy**0.5]])
    assert question.accepts(round(float(np.linalg.norm(everything) ** 2)))


@RNG
def test_padding_does_not_count(seed):
    question = review.mean_with_padding(np.random.default_rng(seed))
    _, *real, one, other = numbers(question.ask)
    right = [True] * one + [False] * (real[0] - one) + [True] * other + [False] * (real[1] - other)
    assert question.accepts(float(np.mean(right)))
