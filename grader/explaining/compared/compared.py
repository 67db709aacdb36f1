"""An array beside the expected one, block by block; a plain array is one block on no mesh."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from grader.arrays.numbers import ROUNDINGS, close_entries
from grader.findings.quantities import Quantity

ENOUGH = 3  # different elements: fewer agree by chance
NUMBERS, FLOATS = "biuf", "f"  # kinds of dtypes


@dataclass(frozen=True, eq=False)
class Compared:
    """The blocks found in one case and the expected ones, in the order of devices.

    Blocks with the same place are replicas of one part of the array. `numbers` are those of the case that the array may
    be off by, besides the sizes of the mesh: arguments, lengths.
    """

    found: Sequence[np.ndarray]
    expected: Sequence[np.ndarray]
    mesh: Mapping[str, int] = field(default_factory=dict)
    places: Sequence[str] = ()
    roundings: int = ROUNDINGS
    numbers: Mapping[Quantity, float] = field(default_factory=dict)

    @functools.cached_property
    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return list(zip(self.found, self.expected, strict=True))

    @functools.cached_property
    def are_numbers(self) -> bool:
        """Whether there are elements, and all of them are numbers or truth values."""
        blocks = [block for pair in self.pairs for block in pair]
        return bool(blocks) and all(block.dtype.kind in NUMBERS and block.size for block in blocks)

    @functools.cached_property
    def are_floats(self) -> bool:
        return all(block.dtype.kind in FLOATS for pair in self.pairs for block in pair)

    @functools.cached_property
    def same_shapes(self) -> bool:
        return all(found.shape == expected.shape for found, expected in self.pairs)

    @functools.cached_property
    def well_blocks(self) -> list[np.ndarray]:
        """Which elements are right, block by block, if the shapes are."""
        return [close_entries(found, expected, self.roundings) for found, expected in self.pairs]

    @property
    def well(self) -> np.ndarray:
        """Which elements are right, in the order of `flat`."""
        return np.concatenate([np.ravel(block) for block in self.well_blocks])

    @functools.cached_property
    def right(self) -> list[int]:
        """The devices whose block is right."""
        pairs = enumerate(self.pairs)
        return [d for d, (found, expected) in pairs if found.shape == expected.shape and self.well_blocks[d].all()]

    @functools.cached_property
    def wrong(self) -> list[int]:
        return [d for d in range(len(self.found)) if d not in self.right]


def plain_array(found: np.ndarray, expected: np.ndarray, numbers: Mapping[Quantity, float] | None = None) -> Compared:
    """A plain array beside the expected one; `numbers` are those of what a function was given."""
    return Compared([found], [expected], numbers=numbers or {})


def devices_along(mesh: Mapping[str, int]) -> dict[Quantity, float]:
    """The numbers of devices along the axes of a mesh."""
    return {Quantity("devices along", axis): size for axis, size in mesh.items()}


def flat(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """The elements of all blocks, one after the other, in float64."""
    return np.concatenate([np.ravel(block) for block in blocks]).astype(np.float64)
