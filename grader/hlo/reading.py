"""Reading a compiled program from its first operation to its last: its collectives, its FLOPs, and what overlaps.

On a chip a transfer starts (`collective-permute-start`) and is waited for later (`…-done`); what is between the two
overlaps with it. XLA writes that in three ways: as such a pair; as fusions called `async_collective_fusion`, in which a
matmul and a part of the transfer share one kernel, between `AsyncCollectiveStart` and `…Done`; and as a plain
collective, with which nothing overlaps. A reduce-scatter often has no name of its own: it is a fusion of an all-reduce
and the slice that a device keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from grader.hlo.collectives import CollectiveReader, CompiledCollective, Runs, kind_of
from grader.hlo.flops import elementwise_flops, matmul_flops
from grader.hlo.kernels import Kernel, kernel_of
from grader.hlo.loops import iterations
from grader.hlo.overlap import Overlap, overlap
from grader.hlo.sources import LineFinder, SourceLines
from grader.hlo.text import Computation, Module, Operation
from grader.hlo.totals import Totals

_STARTS = ("async-start", "call-start")  # of a computation that runs beside the others, on a SparseCore for one


@dataclass(frozen=True)
class Reading:
    """What a compiled program does: its collectives in the order in which they start, and what it all comes to.

    `kernels` are the custom calls that leave a number open. `steps`: the most collectives that wait for one another;
    None where a scheduler has settled their order.
    """

    collectives: tuple[CompiledCollective, ...]
    work: Totals = field(compare=False)
    kernels: tuple[str, ...]
    steps: int | None


UNREAD = Reading((), Totals.unbounded(1, sent=True, flops=True), (), None)


def read_module(
    module: Module, meshes: Sequence[Mapping[str, int]], *, scheduled: bool, lines: LineFinder | None = None
) -> Reading:
    """Read a compiled program; `meshes` name the axes along which its groups of devices are.

    `scheduled`: its transfers start and end as written (a TPU's, a GPU's program), so what overlaps with each is what
    is between. Else (the CPU's) it is what neither needs the transfer nor is needed by it. `lines` knows where
    operations were written, where the text does not.
    """
    devices = max(module.devices, *(math.prod(mesh.values()) for mesh in meshes), 1)
    found = None if scheduled else overlap(module)
    walk = _Walk(module, CollectiveReader(module, meshes, devices, lines or SourceLines(module).place), found)
    work = walk.computation(module.entry, Runs())
    kernels = tuple(dict.fromkeys(walk.kernels))
    return Reading(tuple(walk.collectives), work, kernels, found.steps if found else None)


@dataclass
class _Walk:
    module: Module
    reader: CollectiveReader
    independent: Overlap | None
    collectives: list[CompiledCollective] = field(default_factory=list)
    kernels: list[str] = field(default_factory=list)
    # Of each transfer in flight: its places among the collectives, and the FLOPs of one iteration when it started.
    in_flight: dict[str, tuple[range, int]] = field(default_factory=dict)
    flops: int = 0  # of matmuls, so far, in one iteration of the loop that is being read

    @property
    def nothing(self) -> Totals:
        return Totals.of(np.zeros(self.reader.devices))

    def computation(self, name: str, runs: Runs) -> Totals:
        operations = self.module.computations[name]
        total = self.nothing
        for op in operations.values():
            if (work := self.visit(op, operations, runs)) is not None:
                total += work
        return total

    def visit(self, op: Operation, beside: Computation, runs: Runs) -> Totals | None:
        if kind := kind_of(op):
            return self.start(op, kind, beside, runs, op.name if op.kind.endswith("-start") else "")
        if op.kind.endswith("-done") and op.operands:
            self.done(op.operands[0])
            return None
        if op.kind == "while":
            return self.loop(op, beside, runs)
        if op.kind == "conditional":
            return self.branches(op, runs)
        if op.kind == "call":
            return self.computation(op.attribute("to_apply"), runs)
        if op.kind in ("fusion", *_STARTS):
            return self.fusion(op, runs)
        return self.compute(op, beside)

    def loop(self, op: Operation, beside: Computation, runs: Runs) -> Totals:
        turns = iterations(op, beside, self.module)
        outside, self.flops = self.flops, 0
        body = self.computation(op.attribute("body"), runs.often(turns))
        self.flops = outside + self.flops * (turns or 1)
        tested = None if turns is None else turns + 1
        return body.often(turns) + self.computation(op.attribute("condition"), runs.often(tested)).often(tested)

    def branches(self, op: Operation, runs: Runs) -> Totals:
        first = len(self.collectives)
        work = Totals.any_of([self.computation(branch, runs) for branch in op.called])
        for k in range(first, len(self.collectives)):
            self.collectives[k] = replace(self.collectives[k], optional=True)
        return work

    def fusion(self, op: Operation, runs: Runs) -> Totals:
        """A kernel: matmuls, a collective, or both at once."""
        total = self.nothing
        for name in op.called:
            inside = self.module.computations.get(name, {})
            for inner in inside.values():
                if kind := kind_of(inner):
                    work = self.fused(op, inner, kind, inside, runs)
                else:
                    work = self.fusion(inner, runs) if inner.kind == "fusion" else self.compute(inner, inside)
                total = total if work is None else total + work
        return total

    def fused(self, op: Operation, inner: Operation, kind: str, inside: Computation, runs: Runs) -> Totals | None:
        channel = inner.attribute("channel_id")
        targets = {o.attribute("custom_call_target") for o in inside.values() if o.kind == "custom-call"}
        if op.kind in _STARTS:
            return self.start(inner, kind, inside, runs, op.name, fused=True)
        if "AsyncCollectiveStart" in targets:
            return self.start(inner, kind, inside, runs, channel, fused=True)
        if "AsyncCollectiveDone" in targets:
            self.done(channel)
        elif channel not in self.in_flight:
            return self.start(inner, kind, inside, runs, "", fused=True)
        return None

    def start(
        self, op: Operation, kind: str, beside: Computation, runs: Runs, key: str, *, fused: bool = False
    ) -> Totals:
        meanwhile = self.independent.flops.get(op.name, 0) if self.independent else 0
        found = list(self.reader.read(op, kind, beside, runs, meanwhile, fused=fused))
        first = len(self.collectives)
        self.collectives += found
        if key:
            self.in_flight[key] = range(first, first + len(found)), self.flops
        return sum((one.once for one in found), self.nothing)

    def done(self, key: str) -> None:
        if key in self.in_flight:
            places, before = self.in_flight.pop(key)
            for k in places:
                self.collectives[k] = replace(self.collectives[k], overlappable_flops=self.flops - before)

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
        return said + Totals.unbounded(self.reader.devices, *unknown)
