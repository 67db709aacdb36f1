"""Reading a compiled program from its first operation to its last: its collectives, its FLOPs, and what overlaps.

On a chip a transfer starts (`collective-permute-start`) and is waited for later (`…-done`); what is between the two
overlaps with it. XLA writes that in three ways: as such a pair; as fusions called `async_collective_fusion`, in which a
matmul and a part of the transfer share one kernel, between `AsyncCollectiveStart` and `…Done`; and as a plain
collective, with which nothing overlaps. A reduce-scatter often has no name of its own: it is a fusion of an all-reduce
and the slice that a device keeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from grader.hlo.collectives import CollectiveReader, CompiledCollective, kind_of
from grader.hlo.flops import elementwise_flops, matmul_flops
from grader.hlo.kernels import Kernel, kernel_of
from grader.hlo.loops import iterations
from grader.hlo.meshes import NamedMesh
from grader.hlo.overlap import Overlap, overlap
from grader.hlo.sources import LineFinder, SourceLines
from grader.hlo.text import Computation, Module, Operation
from grader.hlo.totals import Totals


@dataclass(frozen=True)
class Reading:
    """What a compiled program does: its collectives in the order in which they start, and what it all comes to.

    `kernels` are the custom calls that leave a number open; `open_loops`: a loop of unknown length does. `steps`: the
    most collectives that wait for one another; None where a scheduler has settled their order.
    """

    collectives: tuple[CompiledCollective, ...]
    work: Totals = field(compare=False)
    kernels: tuple[str, ...]
    open_loops: bool
    steps: int | None


EMPTY = Reading((), Totals.of(np.zeros(0)), (), False, None)


def read_module(
    module: Module, meshes: Sequence[NamedMesh], *, scheduled: bool, lines: LineFinder | None = None
) -> Reading:
    """Read a compiled program; `meshes` name the axes along which its groups of devices are.

    `scheduled`: its transfers start and end as written (a TPU's, a GPU's program), so what overlaps with each is what
    is between. Else (the CPU's) it is what neither needs the transfer nor is needed by it. `lines` knows where
    operations were written, where the text does not.
    """
    devices = max(module.devices, *(math.prod(mesh.sizes.values()) for mesh in meshes), 1)
    found = None if scheduled else overlap(module)
    walk = _Walk(module, CollectiveReader(module, meshes, devices, lines or SourceLines(module)), found)
    work = walk.computation(module.entry, 1)
    kernels = tuple(dict.fromkeys(walk.kernels))
    return Reading(tuple(walk.collectives), work, kernels, walk.open_loops, found.steps if found else None)


@dataclass
class _Walk:
    module: Module
    reader: CollectiveReader
    independent: Overlap | None
    collectives: list[CompiledCollective] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    # Of each transfer in flight: its places among the collectives, and the FLOPs of one iteration when it started.
    in_flight: dict[str, tuple[range, int]] = field(default_factory=dict)
    open_loops: bool = False  # whether one of unknown length does something that counts
    flops: int = 0  # of matmuls, so far, in one iteration of the loop that is being read

    @property
    def nothing(self) -> Totals:
        return Totals.of(np.zeros(self.reader.devices))

    def computation(self, name: str, times: int | None) -> Totals:
        operations = self.module.computations[name]
        total = self.nothing
        for op in operations.values():
            if (work := self.visit(op, operations, times)) is not None:
                total += work
        return total

    def visit(self, op: Operation, beside: Computation, times: int | None) -> Totals | None:
        if kind := kind_of(op):
            return self.start(op, kind, beside, times, op.name if op.kind.endswith("-start") else "")
        if op.kind.endswith("-done") and op.operands:
            self.done(op.operands[0])
            return None
        if op.kind == "while":
            return self.loop(op, beside, times)
        if op.kind == "conditional":
            return self.branches(op, times)
        if op.kind == "call":
            return self.computation(op.attribute("to_apply"), times)
        if op.kind in ("fusion", "async-start"):
            return self.fusion(op, times)
        return self.compute(op, beside)

    def loop(self, op: Operation, beside: Computation, times: int | None) -> Totals:
        turns = iterations(op, beside, self.module)
        outside, self.flops = self.flops, 0
        body = self.computation(op.attribute("body"), _times(times, turns))
        self.flops = outside + self.flops * (turns or 1)
        tested = None if turns is None else turns + 1
        total = body.often(turns) + self.computation(op.attribute("condition"), _times(times, tested)).often(tested)
        self.open_loops |= turns is None and bool(total.bounds[1].any())
        return total

    def branches(self, op: Operation, times: int | None) -> Totals:
        first = len(self.collectives)
        work = Totals.any_of([self.computation(branch, times) for branch in op.called])
        for k in range(first, len(self.collectives)):
            self.collectives[k] = replace(self.collectives[k], optional=True)
        return work

    def fusion(self, op: Operation, times: int | None) -> Totals:
        """A kernel: matmuls, a collective, or both at once."""
        total = self.nothing
        for name in op.called:
            inside = self.module.computations.get(name, {})
            for inner in inside.values():
                if kind := kind_of(inner):
                    work = self.fused(op, inner, kind, inside, times)
                else:
                    work = self.fusion(inner, times) if inner.kind == "fusion" else self.compute(inner, inside)
                total = total if work is None else total + work
        return total

    def fused(
        self, op: Operation, inner: Operation, kind: str, inside: Computation, times: int | None
    ) -> Totals | None:
        channel = inner.attribute("channel_id")
        targets = {o.attribute("custom_call_target") for o in inside.values() if o.kind == "custom-call"}
        if op.kind == "async-start":
            return self.start(inner, kind, inside, times, op.name, fused=True)
        if "AsyncCollectiveStart" in targets:
            return self.start(inner, kind, inside, times, channel, fused=True)
        if "AsyncCollectiveDone" in targets:
            self.done(channel)
        elif channel not in self.in_flight:
            return self.start(inner, kind, inside, times, "", fused=True)
        return None

    def start(
        self, op: Operation, kind: str, beside: Computation, times: int | None, key: str, *, fused: bool = False
    ) -> Totals:
        found = list(self.reader.read(op, kind, beside, times, fused=fused))
        if self.independent:
            found = [replace(one, meanwhile=self.independent.flops.get(op.name, 0)) for one in found]
        first = len(self.collectives)
        self.collectives += found
        if key:
            self.in_flight[key] = range(first, first + len(found)), self.flops
        return sum((replace(one, times=1).work for one in found), self.nothing)

    def done(self, key: str) -> None:
        if key in self.in_flight:
            places, before = self.in_flight.pop(key)
            for k in places:
                self.collectives[k] = replace(self.collectives[k], meanwhile=self.flops - before)

    def compute(self, op: Operation, beside: Computation) -> Totals | None:
        if op.kind == "custom-call" and (kernel := kernel_of(op)):
            return self.kernel(kernel)
        matmuls, others = matmul_flops(op, beside), elementwise_flops(op, beside)
        self.flops += matmuls
        return Totals.of(np.zeros(self.reader.devices), matmuls, others) if matmuls or others else None

    def kernel(self, kernel: Kernel) -> Totals:
        """What a custom call says that it does; what it does not say has no bound."""
        said = Totals.of(np.full(self.reader.devices, kernel.bytes_sent or 0.0), kernel.flops or 0)
        unknown = (kernel.bytes_sent is None, kernel.flops is None)
        if any(unknown):
            self.kernels.append(kernel.name)
        most = said.bounds[1]
        most[:-2] = math.inf if unknown[0] else most[:-2]
        most[-2] = math.inf if unknown[1] else most[-2]
        return said


def _times(outside: int | None, inside: int | None) -> int | None:
    return None if outside is None or inside is None else outside * inside
