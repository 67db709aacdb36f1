"""When the stages of a pipeline work, found by watching a student's loop call `stage`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

from grader.draw.picture import Picture
from grader.draw.timetables import timetable
from grader.timetables import Timetable, simulate


def stages(pipeline: Callable[[Any, Any], Any], batches: Sequence[Any], weights: Sequence[Any]) -> Picture:
    """The timetable of a loop that calls `stage(w, x)`: which mesh works on which batch in which step.

    Each call takes a step, and begins when its mesh is free and its batch has arrived. F0, F1, … are the batches.

    Args:
      pipeline: a function of batches and weights that calls a function named `stage` of its own module or notebook.
      batches: an array for each batch.
      weights: an array for each stage, each on a different mesh.

    Example:
      >>> def stage(w, x):
      ...     return x @ w
      >>> def one_after_the_other(batches, weights):
      ...     return [stage(weights[1], jax.device_put(stage(weights[0], x), jax.devices()[1])) for x in batches]
      >>> weights = [jax.device_put(np.ones((2, 2)), device) for device in jax.devices()[:2]]
      >>> grader.draw.stages(one_after_the_other, [np.ones((4, 2))] * 3, weights)
      device 0 │ F0 F1 F2 ·
      device 1 │ ·  F0 F1 F2
      4 steps, bubble 25.0%
    """
    return timetable(_watched(pipeline, batches, weights), rows=[_devices(w) for w in weights])


def _watched(pipeline: Callable[[Any, Any], Any], batches: Sequence[Any], weights: Sequence[Any]) -> Timetable:
    """The calls of `stage`, by the devices of its weights, as a timetable."""
    calls: dict[str, list[str]] = {_devices(w): [] for w in weights}
    stage = pipeline.__globals__["stage"]

    def noted(w: Any, x: Any) -> Any:
        order = calls.setdefault(_devices(w), [])
        order.append(f"F{len(order)}")
        return stage(w, x)

    with mock.patch.dict(pipeline.__globals__, stage=noted):
        pipeline(batches, weights)
    return simulate(list(calls.values()))


def _devices(array: Any) -> str:
    ids = sorted(device.id for device in array.devices())
    return f"devices {ids[0]}–{ids[-1]}" if len(ids) > 1 else f"device {ids[0]}"
