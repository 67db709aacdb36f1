"""The cases of an exercise once more, as small as it allows: to be looked at entry by entry."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from grader.arrays.laid import holds_arrays
from grader.exercises.case import Case, Draw
from grader.exercises.exercise import Exercise
from grader.exercises.forms import ProgramExercise

AXES_UP_TO = (2, 4, 8)  # an axis of a mesh has so many devices at most
COUNTED = 32  # entries of an array that are counted on; those of a larger one are drawn from 1 to 9


class SmallDraw(Draw):
    """Small data on a mesh of this shape: the least lengths that differ, and small whole numbers.

    `tiny` lengths need only fit the mesh; others are divisible by whatever an exercise asks for.
    """

    def __init__(self, shape: tuple[int, ...], *, tiny: bool):
        super().__init__(np.random.default_rng(0), shape)
        self.tiny, self.arrays = tiny, 0

    def lengths(self, count: int, divisible_by: int) -> tuple[int, ...]:
        """Once, twice … what they are divisible by."""
        least = math.lcm(*self.shape)
        unit = least if self.tiny and divisible_by % least == 0 else divisible_by
        return tuple(unit * (k + 1) for k in range(count))

    def values(self, *shape: int) -> np.ndarray:
        """Counted on, so that neighbours differ; every array begins with another number."""
        begins, size = 1 + 4 * self.arrays, math.prod(shape)
        self.arrays += 1
        numbers = begins + np.arange(size) if size <= COUNTED else self.rng.integers(1, 10, size=size)
        return numbers.reshape(shape).astype(np.float32)


def small_cases(exercise: ProgramExercise) -> Iterator[Case]:
    """The exercise's cases: the least data first, kind of mesh by kind of mesh, the smaller before the larger.

    What it cannot be asked on is left out.
    """
    meshes = [tuple(min(size, most) for size in shape) for shape in exercise.mesh_shapes for most in AXES_UP_TO]
    for tiny in (True, False):
        for shape in dict.fromkeys(meshes):
            yield from _drawn(exercise, SmallDraw(shape, tiny=tiny))


def small_like(exercise: Exercise, case: Case) -> Case | None:
    """A case once more on its own mesh, with little data; None where the exercise has none."""
    drawn = _drawn(exercise, SmallDraw(tuple(case.mesh.values()), tiny=True))
    return next((one for one in drawn if _options(one) == _options(case)), next(iter(drawn), None))


def _options(case: Case) -> str:
    return repr({name: a for name, a in case.arguments.items() if not holds_arrays(a)})


def _drawn(exercise: Exercise, draw: Draw) -> list[Case]:
    try:
        return exercise.cases_of(draw)
    except Exception:  # some exercises need more devices, or longer arrays, than this
        return []
