"""The timetable of a loop that calls `stage`."""

import jax
import numpy as np

from grader import draw


def stage(w, x):
    return x @ w


def through_both(batches, weights):
    done = []
    for x in batches:
        for w in weights:
            x = stage(w, jax.device_put(x, w.sharding))
        done.append(x)
    return done


def first_stage_only(batches, weights):
    return [stage(weights[0], jax.device_put(x, weights[0].sharding)) for x in batches]


WEIGHTS = [jax.device_put(np.ones((2, 2), np.float32), device) for device in jax.devices()[:2]]
BATCHES = [np.ones((4, 2), np.float32)] * 3


def test_the_stages_work_at_the_same_time():
    first, second, said = str(draw.stages(through_both, BATCHES, WEIGHTS)).splitlines()
    assert first.split() == ["device", "0", "│", "F0", "F1", "F2", "·"]
    assert second.split() == ["device", "1", "│", "·", "F0", "F1", "F2"]
    assert said.startswith("4 steps, bubble 25.0%")


def test_a_stage_that_is_never_called_does_nothing():
    first, second, *_ = str(draw.stages(first_stage_only, BATCHES, WEIGHTS)).splitlines()
    assert "F2" in first and "F" not in second


def test_the_function_is_left_as_it_was():
    before = stage
    draw.stages(through_both, BATCHES, WEIGHTS)
    assert through_both.__globals__["stage"] is before
