"""Lesson 17: who is dropped is what a count by hand says, and the cases that are drawn drop somebody."""

import numpy as np
import pytest

from grader.lessons import EXERCISES
from grader.lessons.experts.exchange import _in_time


def by_hand(experts, devices, capacity):
    """Choice after choice, with a counter for each expert on each device."""
    kept, share = np.zeros(experts.shape, bool), len(experts) // devices
    for device in range(devices):
        taken = [0] * devices
        for token in range(device * share, (device + 1) * share):
            for place, expert in enumerate(experts[token]):
                kept[token, place] = taken[expert] < capacity
                taken[expert] += 1
    return kept


@pytest.mark.parametrize("seed", range(4))
def test_who_is_in_time_is_what_a_count_by_hand_says_and_not_everybody_is(seed):
    for case in EXERCISES["moe_all_to_all"].draw_cases(seed, thorough=True):
        devices, experts = case.mesh["expert"], case.arguments["experts"].value
        kept = _in_time(experts, devices, case.arguments["capacity"])
        assert (kept == by_hand(experts, devices, case.arguments["capacity"])).all()
        assert 0 < kept.sum() < kept.size


@pytest.mark.parametrize("seed", range(4))
def test_some_token_loses_all_its_choices(seed):
    cases = EXERCISES["moe_all_to_all"].draw_cases(seed)
    lost = [
        ~_in_time(c.arguments["experts"].value, c.mesh["expert"], c.arguments["capacity"]).any(axis=1) for c in cases
    ]
    assert any(one.any() for one in lost)


@pytest.mark.parametrize("seed", range(4))
def test_the_experts_that_tie_are_among_those_chosen(seed):
    """Else nobody would notice that the later of two came first."""
    route = EXERCISES["route"]
    chosen = [np.asarray(route.reference(**case.arguments)[1]) for case in route.draw_cases(seed)]
    assert any((experts == 1).any() for experts in chosen)
