"""What a limit is, what it is given, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.findings.costs import SentCollective
from grader.findings.finding import Finding
from grader.programs.execution import Ran
from grader.programs.structure import Collective, Structure


@dataclass(frozen=True)
class Facts:
    """What is known of a program in one case: what is written, what running it came to, what is sent that nobody wrote
    (which takes a while to find), and on which mesh."""

    written: Structure
    ran: Ran
    unwritten: Callable[[], Sequence[Collective]]
    mesh: Mapping[str, int]

    @property
    def sent(self) -> list[Collective]:
        """The collectives of the program as it is written, by which something is sent."""
        return sending(self.written.collectives)

    @property
    def auto_axes(self) -> tuple[str, ...]:
        """The axes along which a program with shard_map is left to the compiler."""
        manual = {axis for region in self.written.manual for axis in region.axes}
        return tuple(axis for axis in long(tuple(self.mesh), self.mesh) if manual and axis not in manual)

    def numbers(self, meant: Callable[[Collective], bool]) -> tuple[int, ...]:
        """The numbers of those of the written collectives that are meant, and by which something is sent."""
        return tuple(n for n, c in enumerate(self.written.authored) if c.group > 1 and meant(c))


@dataclass(frozen=True)
class Excess:
    """How a program exceeds a limit. `about` are the numbers of the written collectives that it is about; `most`:
    others send as well, but less."""

    finding: Finding
    about: tuple[int, ...] = ()
    most: bool = False


class Limit:
    """Each limit overrides the methods for what it limits. None: it isn't exceeded."""

    def of_written(self, facts: Facts) -> Excess | None:
        """How a program with shard_map exceeds it, as its author wrote it."""
        return None

    def of_compiled(self, facts: Facts) -> Excess | None:
        """How a program that is left to the compiler exceeds it, as it is compiled."""
        return None

    def of_work(self, facts: Facts) -> Excess | None:
        """How the work or the memory of one device exceeds it."""
        return None

    def of_chip(self, flops: int) -> Finding | None:
        """How the FLOPs of a chip's matmuls, as its own compiler made them, exceed it, or fall short."""
        return None


def sending(collectives: Sequence[Collective]) -> list[Collective]:
    """The collectives by which a device really sends something."""
    return [c for c in collectives if c.group > 1]


def long(axes: Sequence[str], mesh: Mapping[str, int]) -> list[str]:
    """The axes along which there are several devices: along the others nothing is sent."""
    return [axis for axis in axes if mesh[axis] > 1]


def transfers(collectives: Sequence[Collective]) -> tuple[SentCollective, ...]:
    """What a finding lists. Equal ones, as an unrolled loop has them, are one that runs more often."""
    alike: dict[SentCollective, list[Collective]] = {}
    for c in collectives:
        one = SentCollective(c.kind, c.axes, c.dtype, c.operand, None, 0, c.implicit)
        alike.setdefault(one, []).append(c)
    return tuple(
        replace(one, times=_together([c.times for c in each]), bytes_sent=sum(c.bytes_sent for c in each))
        for one, each in alike.items()
    )


def _together(times: Sequence[int | None]) -> int | None:
    known = [count for count in times if count is not None]
    return sum(known) if len(known) == len(times) else None
