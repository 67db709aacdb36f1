"""An array of a result beside the one that is due, block by block."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from grader.arrays.numbers import ROUNDINGS, close

ENOUGH = 3  # different entries: fewer have some ratio by chance


@dataclass(frozen=True, eq=False)
class Compared:
    """The blocks of a result in one case and those expected, in the order of devices.

    Blocks with the same place are copies of one part of the array. `counts` are the whole numbers that the program was
    given, by name, and `lengths` those of its arrays' dimensions and their numbers of entries, by their words; `given`
    are arrays of the same shape as the result, by name, in the same blocks.
    """

    blocks: Sequence[np.ndarray]
    expected: Sequence[np.ndarray]
    mesh: Mapping[str, int]
    places: Sequence[str] = ()
    roundings: int = ROUNDINGS
    counts: Mapping[str, int] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, Sequence[np.ndarray]] = field(default_factory=dict)

    @functools.cached_property
    def right(self) -> list[int]:
        """The devices whose block is right."""
        pairs = enumerate(zip(self.blocks, self.expected, strict=True))
        return [d for d, (block, expected) in pairs if close(block, expected, self.roundings)]

    @property
    def wrong(self) -> list[int]:
        return [d for d in range(len(self.blocks)) if d not in self.right]

    @property
    def on(self) -> str:
        return on(self.mesh)


def on(mesh: Mapping[str, int]) -> str:
    """A mesh by its shape."""
    return " × ".join(map(str, mesh.values())) + " devices"
