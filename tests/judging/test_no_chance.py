"""Of numbers that are wrong at random no relation is told: factors that are fitted explain what is near anyhow."""

import numpy as np
import pytest

from grader.judging.compared import Compared
from grader.judging.factors import off_by
from grader.judging.proportions import beside_what_was_given, by_rows, made_of_what_was_given
from grader.judging.relations import relations_of
from grader.judging.single_numbers import of_two_numbers

SMALL_STEPS = [(seed, shape) for seed in range(60) for shape in ((8, 2), (2, 3), (8,), (16, 4))]


def drawn(seed, shape, step):
    """A state, the one that is due after a step, and one after a wrong step."""
    rng = np.random.default_rng(seed)
    state, gradient = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    return state, state - np.float32(step) * gradient, state - np.float32(step) * np.clip(gradient, -0.7, 0.7)


def test_of_a_state_that_moves_by_a_thousandth_no_factor_is_told():
    told = []
    for seed, shape in SMALL_STEPS:
        state, due, found = drawn(seed, shape, 1e-3)
        for roundings in (1000, 4000, 20000):
            told.append(beside_what_was_given([found], [due], {"state": [state]}, roundings))
            told.append(by_rows([found], [due], roundings=roundings) if due.ndim > 1 else "")
    assert set(told) == {""}


def test_what_moves_by_less_than_roundings_is_not_called_what_was_given():
    for seed, shape in SMALL_STEPS:
        state, due, found = drawn(seed, shape, 1e-4)
        assert made_of_what_was_given([found], [due], {"state": [state]}, 4000) == ""
        if state.size > 6:
            assert "It is `state`" in made_of_what_was_given([state], [due], {"state": [state]}, 4000)


def test_what_comes_to_a_state_is_told_where_it_is_seen():
    state, due, _ = drawn(0, (16, 4), 1.0)
    found = state + np.float32(0.25) * (due - state)
    words = beside_what_was_given([found], [due], {"state": [state]})
    assert words == "It is `state` and something besides; and of that, every number is 1/4 of what it should be."


def test_a_factor_of_one_large_number_is_not_that_of_every_entry():
    due = np.float32([1000, 1e-3, 2e-3, -1e-3])
    assert off_by(Compared([np.float32([2000, 5e-3, 0, 1e-3])], [due], {"x": 2}), None) == ""
    rows = np.float32([1, 2, 3, 4])
    assert "2 times too large" in off_by(Compared([2 * rows], [rows], {"x": 2}), None)


@pytest.mark.parametrize("ratio", [1980.08, 731.4567, 8123.04])
def test_any_large_ratio_is_near_to_one_of_few_digits(ratio):
    assert not [words for words in of_two_numbers(ratio * 1.7, 1.7, {}) if "times what is due" in words]


def test_one_wrong_number_is_not_all_others():
    found, due = np.float32([1, 2, 3, 8]), np.float32([1, 2, 3, 4])
    assert not [words for words in relations_of(found, due, {}) if "of all others" in words]
