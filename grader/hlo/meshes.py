"""Names for groups of devices: along which axes of which mesh the members of a group differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.programs.walk import axes_of_groups

Groups = list[list[int]]


@dataclass(frozen=True)
class NamedMesh:
    """A mesh of a program: the sizes of its axes. Its devices are numbered row by row, as compiled text does it.

    JAX refuses a program with two meshes whose devices come in another order.
    """

    sizes: Mapping[str, int]

    @property
    def devices(self) -> int:
        return math.prod(self.sizes.values())

    def covers(self, groups: Groups) -> bool:
        """Whether every device of these groups is one of the mesh."""
        return bool(self.sizes) and max((max(group) for group in groups if group), default=0) < self.devices

    def axes_of(self, groups: Groups) -> tuple[str, ...]:
        """The axes along which the members of each group differ."""
        return axes_of_groups(groups, self.sizes)

    def devices_along(self, axes: Sequence[str]) -> int:
        return math.prod(self.sizes[axis] for axis in axes)


def mesh_of(groups: Groups, meshes: Sequence[NamedMesh]) -> NamedMesh | None:
    """The mesh whose axes say best who takes part: the fewest devices along them, then the fewest axes; else None."""
    known = [mesh for mesh in meshes if mesh.covers(groups)]

    def fit(mesh: NamedMesh) -> tuple[int, int]:
        axes = mesh.axes_of(groups)
        return mesh.devices_along(axes), len(axes)

    return min(known, key=fit, default=None)
