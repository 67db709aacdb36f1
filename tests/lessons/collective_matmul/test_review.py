"""The review questions of lesson 15: the answer is worked out, and another experiment agrees."""

import re

import numpy as np
import pytest

from grader.lessons.collective_matmul import review as questions


def numbers(text):
    return [int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", text)]


@pytest.mark.parametrize("seed", range(20))
def test_the_block_at_a_step_is_found_by_walking(seed):
    question = questions.block_at_a_step(np.random.default_rng(seed))
    n, device, steps = numbers(question.ask)[0], *numbers(question.ask)[-2:]
    by = 1 if "place up" in question.ask else -1
    held = list(range(n))
    for _ in range(steps):
        held = [held[(d - by) % n] for d in range(n)]
    assert question.accepts(held[device]) and not question.accepts(n)


@pytest.mark.parametrize("seed", range(20))
def test_a_sum_that_starts_there_ends_at_home(seed):
    question = questions.start_of_a_sum(np.random.default_rng(seed))
    n, device = numbers(question.ask)[0], numbers(question.ask)[-1]
    by = 1 if "place up" in question.ask else -1
    place = device
    for _ in range(n - 1):
        place = (place + by) % n
    assert question.accepts(place)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_and_times(seed):
    rng = np.random.default_rng(seed)
    question = questions.transfers_and_bytes(rng)
    _, rows, columns, n = numbers(question.ask.replace(",", " "))[:4]
    assert question.accepts((n - 1) * (rows // n) * columns * 4)
    question = questions.time_of_a_ring(rng)
    n, product, _, transfer = numbers(question.ask)[:4]
    done = 0
    for k in range(n):
        done = max(done, k * transfer) + product
    assert question.accepts(done)
