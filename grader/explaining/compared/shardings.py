"""How a program's sharding differs from the expected one: which mesh axis shards which dimension."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from grader.arrays.blocks import Blocks
from grader.findings.finding import Finding
from grader.findings.programs import AxesShard, AxisShards, ShardsElsewhere


def sharded_by(held: Blocks) -> Mapping[str, int | None]:
    """For every axis with several devices the dimension that it shards; None if it shards none."""
    numbers = np.arange(len(held.indices)).reshape(tuple(held.mesh.values()))
    first = held.indices[0]
    found = {}
    for k, (axis, size) in enumerate(held.mesh.items()):
        if size > 1:
            next_one = held.indices[int(np.moveaxis(numbers, k, 0)[1].flat[0])]
            pairs = enumerate(zip(first, next_one, strict=True))
            found[axis] = next((d for d, pair in pairs if pair[0] != pair[1]), None)
    return found


def sharding_relations(found: Blocks, expected: Blocks) -> Iterator[Finding]:
    """Which axes shard another dimension than they should; nothing if the blocks are the same, as in other memory."""
    if found.indices == expected.indices:
        return
    have, want = sharded_by(found), sharded_by(expected)
    differing = [AxisShards(axis, have[axis], want[axis]) for axis in want if have[axis] != want[axis]]
    yield AxesShard(tuple(differing)) if differing and _is_by_axes(found) else ShardsElsewhere()


def _is_by_axes(held: Blocks) -> bool:
    """Whether along every axis of the mesh all blocks differ, and in just that dimension which it shards."""
    numbers, dimension_of = np.arange(len(held.indices)).reshape(tuple(held.mesh.values())), sharded_by(held)
    for k, axis in enumerate(held.mesh):
        for line in np.moveaxis(numbers, k, -1).reshape(-1, held.mesh[axis]).tolist():
            several = [len({str(held.indices[device][d]) for device in line}) for d in range(len(held.indices[0]))]
            if several != [len(line) if d == dimension_of.get(axis) else 1 for d in range(len(several))]:
                return False
    return True
