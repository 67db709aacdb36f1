"""Names for groups of devices: along which axes of which mesh the members of a group differ.

A mesh is the sizes of its axes. Its devices are numbered row by row, as compiled text does it: JAX refuses a program
with two meshes whose devices come in another order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from grader.programs.walk import axes_of_groups

Groups = list[list[int]]


def mesh_of(groups: Groups, meshes: Sequence[Mapping[str, int]]) -> Mapping[str, int] | None:
    """The mesh whose axes say best who takes part: the fewest devices along them, then the fewest axes; else None."""
    last = max((max(group) for group in groups if group), default=0)

    def fit(mesh: Mapping[str, int]) -> tuple[int, int]:
        axes = axes_of_groups(groups, mesh)
        return math.prod(mesh[axis] for axis in axes), len(axes)

    return min((mesh for mesh in meshes if mesh and last < math.prod(mesh.values())), key=fit, default=None)
