"""What a program's text says, as plain facts: its shard_maps, its collectives, and what they send."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jax.sharding import PartitionSpec as P

from grader.programs.collectives import ring_bytes
from grader.renamed import warn_of_name


@dataclass(frozen=True)
class Collective:
    """One collective of a program.

    `operand` is the shape held by each device before it, `bytes` that shape's size in bytes, `axes` the
    mesh axes it runs over (() when its groups follow none), `group` how many devices take part together.
    `times` counts turns of the loops around it; None means that this is only known at run time (a
    branch, or a loop without fixed length). `implicit`: nobody wrote it; the compiler moves data so that
    an operand fits shard_map's in_specs. `overlappable_flops`: FLOPs of matmuls that a device may compute while it
    sends, in one iteration: they neither wait for the transfer nor it for them, and each is counted for one transfer
    only. `around`: FLOPs of the matmuls that the transfer waits for, and of those that wait for it. `shift`:
    by how many places along its axis a permute moves every block, counted upwards; 0 where they do not move alike.
    `visits`: where `times` is None, how often each device comes by, if the text says so.
    """

    kind: str
    axes: tuple[str, ...]
    group: int
    operand: tuple[int, ...]
    dtype: str
    bytes: int
    times: int | None = 1
    implicit: bool = False
    overlappable_flops: int = 0
    around: tuple[int, int] = (0, 0)
    shift: int = 0
    visits: tuple[int, ...] | None = None

    @property
    def bytes_sent(self) -> int:
        """Bytes each device sends, all turns together, by the ring algorithm."""
        return round(ring_bytes(self.kind, self.bytes, self.group) * (1 if self.times is None else self.times))

    @property
    def meanwhile(self) -> int:
        """The old name of `overlappable_flops`, until the next version."""
        warn_of_name("Collective.meanwhile", "Collective.overlappable_flops")
        return self.overlappable_flops


@dataclass(frozen=True)
class Manual:
    """One shard_map: the axes it is manual over, and the specs of what goes in and out."""

    axes: tuple[str, ...]
    in_specs: tuple[P, ...]
    out_specs: tuple[P, ...]


@dataclass(frozen=True)
class Structure:
    """What a program's text says: its mesh, its shard_maps, its collectives, its matmuls' FLOPs.

    `dot_flops` counts the matmuls, per device, loops multiplied out (outside of the shard_maps, what a device computes
    at least), and `roots` the numbers that a root is taken of; `largest_product` is what the largest of these matmuls
    takes, once. `is_unbounded`: how often one of them runs is known only at run time. `foreign` names what it calls
    that is no operation of the devices, wherever in the text. `steps` is the length of the longest chain of collectives
    that wait for one another, loops multiplied out. `donated` numbers the arrays given to it whose memory it may write
    over.
    """

    mesh: Mapping[str, int]
    manual: tuple[Manual, ...]
    collectives: tuple[Collective, ...]
    dot_flops: int
    foreign: tuple[str, ...] = ()
    steps: int = 0
    donated: tuple[int, ...] = ()
    roots: int = 0
    largest_product: int = 0
    is_unbounded: bool = False

    def waiting(self, collective: Collective) -> tuple[int, int] | None:
        """Two devices of which the first would wait in a collective for the second for ever, if the text says so."""
        devices, names = math.prod(self.mesh.values()), list(self.mesh)
        visits, axes = collective.visits, collective.axes
        if visits is None or len(visits) != devices or not {*axes} <= {*names}:
            return None
        for group in device_numbers_along(axes, self.mesh).tolist():
            least, most = (extreme(group, key=visits.__getitem__) for extreme in (min, max))
            if visits[least] < visits[most]:
                return most, least
        return None

    @property
    def authored(self) -> tuple[Collective, ...]:
        """The collectives that the program's author wrote, in their order."""
        return tuple(c for c in self.collectives if not c.implicit)

    @property
    def bytes_sent(self) -> int:
        return sum(c.bytes_sent for c in self.collectives)

    @property
    def bytes_one_way(self) -> int:
        """The most bytes that each device sends to one and the same neighbour, in permutes."""
        ways: Counter[tuple[tuple[str, ...], int]] = Counter()
        for c in self.collectives:
            if c.kind == "collective_permute":
                ways[c.axes, c.shift] += c.bytes_sent
        return max(ways.values(), default=0)


def device_numbers_along(axes: Sequence[str], mesh: Mapping[str, int]) -> np.ndarray:
    """The numbers of the devices that differ along these axes of a mesh only: int[groups, devices in each]."""
    names, devices = list(mesh), np.arange(math.prod(mesh.values())).reshape(tuple(mesh.values()))
    together = np.moveaxis(devices, [names.index(axis) for axis in axes], range(-len(axes), 0))
    return together.reshape(-1, math.prod(mesh[axis] for axis in axes))
