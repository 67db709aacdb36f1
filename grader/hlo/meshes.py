"""Names for groups of devices: along which axes of which mesh the members of a group differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class NamedMesh:
    """A mesh of a program: the sizes of its axes. Its devices are numbered row by row, as compiled text does it.

    JAX refuses a program with two meshes whose devices come in another order.
    """

    sizes: Mapping[str, int]

    @cached_property
    def _coordinates(self) -> np.ndarray:
        """int[devices, axes]: where each device is, by its number."""
        count = math.prod(self.sizes.values())
        return np.stack(np.unravel_index(np.arange(count), tuple(self.sizes.values())), axis=-1)

    @property
    def devices(self) -> int:
        return math.prod(self.sizes.values())

    def covers(self, groups: Groups) -> bool:
        """Whether every device of these groups is one of the mesh."""
        return bool(self.sizes) and max((max(group) for group in groups if group), default=0) < len(self._coordinates)

    def axes_of(self, groups: Groups) -> tuple[str, ...]:
        """The axes along which the members of each group differ."""
        differ = np.zeros(len(self.sizes), bool)
        for group in groups:
            places = self._coordinates[list(group)]
            differ |= (places != places[0]).any(axis=0)
        return tuple(name for name, moved in zip(self.sizes, differ, strict=True) if moved)

    def devices_along(self, axes: Sequence[str]) -> int:
        return math.prod(self.sizes[axis] for axis in axes)

    def shift_along(self, pairs: Groups, axes: Sequence[str]) -> int:
        """By how many places along its axis a permute moves every block; 0 if not all alike, or along several axes."""
        if len(axes) != 1:
            return 0
        places = self._coordinates[np.array(pairs)][..., list(self.sizes).index(axes[0])]
        moved = {int(m) for m in (places[:, 1] - places[:, 0]) % self.sizes[axes[0]]}
        return moved.pop() if len(moved) == 1 else 0


def mesh_of(groups: Groups, meshes: Sequence[NamedMesh]) -> NamedMesh | None:
    """The mesh whose axes say best who takes part: the fewest devices along them, then the fewest axes; else None."""
    known = [mesh for mesh in meshes if mesh.covers(groups)]

    def fit(mesh: NamedMesh) -> tuple[int, int]:
        axes = mesh.axes_of(groups)
        return mesh.devices_along(axes), len(axes)

    return min(known, key=fit, default=None)
