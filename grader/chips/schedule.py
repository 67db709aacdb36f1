"""What a chip does, in the order in which its compiler lets it: collectives, and the matmuls beside each transfer.

On a chip a transfer starts (`collective-permute-start`) and is waited for later (`…-done`); what stands between the two
runs meanwhile. XLA writes that in three ways: as such a pair; as fusions called `async_collective_fusion`, in which a
matmul and a part of the transfer share one kernel, between `AsyncCollectiveStart` and `…Done`; and as a plain
collective, beside which nothing runs. A reduce-scatter often has no name of its own: it is a fusion of an all-reduce
and the slice that a device keeps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from grader.chips.hlo import Module, Operation, Tiled
from grader.programs.structure import Collective
from grader.programs.walk import axes_of_groups, shift_along

_KINDS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "ragged-all-to-all": "all_to_all",
    "collective-permute": "collective_permute",
    "collective-broadcast": "collective_broadcast",
}
_NO_BUFFER = {"parameter", "get-tuple-element", "tuple", "bitcast", "while", "conditional", "constant", "opt-barrier"}


@dataclass(frozen=True)
class Buffer:
    """An array in HBM: what it is, its bytes with padding, and where in the function it stems from."""

    array: Tiled
    written_as: str

    def __str__(self) -> str:
        place = f", from {self.written_as}" if self.written_as else ""
        return f"{self.array.padded / 2**30:,.2f} GiB: {self.array}{place}"


@dataclass
class Schedule:
    """What one device does: its collectives in the order in which they start, and the FLOPs of all its matmuls."""

    collectives: list[Collective] = field(default_factory=list)
    flops: int = 0


def schedule(module: Module, mesh: Mapping[str, int]) -> Schedule:
    """Read a compiled program; `mesh` names the axes along which its device groups are."""
    reader = _Reader(module, mesh)
    reader.block(module.entry, 1)
    return reader.schedule


@dataclass
class _Reader:
    module: Module
    mesh: Mapping[str, int]
    schedule: Schedule = field(default_factory=Schedule)
    # Of each transfer under way: its places among the collectives, and the FLOPs of one turn when it started.
    under_way: dict[str, tuple[range, int]] = field(default_factory=dict)
    turn: int = 0  # FLOPs so far in one turn of the loop that is being read

    def block(self, name: str, times: int | None) -> None:
        operations = {op.name: op for op in self.module.computations[name]}
        for op in operations.values():
            self.visit(op, operations, times)

    def visit(self, op: Operation, beside: Mapping[str, Operation], times: int | None) -> None:
        plain = op.kind.removesuffix("-start").removesuffix("-done")
        if op.kind.endswith("-done") and (plain in _KINDS or plain == "async"):
            self.done(op.operands[0])
        elif plain in _KINDS:
            self.start(op, plain, beside, times, op.name if op.kind.endswith("-start") else "")
        elif op.kind == "while":
            self.loop(op, beside, times)
        elif op.kind == "conditional":
            for branch in op.called:
                self.block(branch, None)
        elif op.kind == "call":
            self.block(op.attribute("to_apply"), times)
        elif op.kind in ("fusion", "async-start"):
            self.fusion(op, times)
        else:
            self.compute(_matmul_flops(op, beside), times)

    def loop(self, op: Operation, beside: Mapping[str, Operation], times: int | None) -> None:
        turns = _turns(op, beside, self.module)
        outside, self.turn = self.turn, 0
        self.block(op.attribute("body"), None if times is None or turns is None else times * turns)
        self.turn = outside + self.turn * (turns or 1)

    def fusion(self, op: Operation, times: int | None) -> None:
        """A kernel: matmuls, a collective, or both at once."""
        for name in op.called:
            inside = {o.name: o for o in self.module.computations.get(name, ())}
            for inner in inside.values():
                plain = inner.kind.removesuffix("-start")
                if plain in _KINDS:
                    self.fused(op, inner, plain, inside, times)
                elif inner.kind == "fusion":
                    self.fusion(inner, times)
                else:
                    self.compute(_matmul_flops(inner, inside), times)

    def fused(
        self, op: Operation, inner: Operation, plain: str, inside: Mapping[str, Operation], times: int | None
    ) -> None:
        channel = inner.attribute("channel_id")
        targets = {o.attribute("custom_call_target") for o in inside.values()}
        if op.kind == "async-start":
            self.start(inner, plain, inside, times, op.name)
        elif "AsyncCollectiveStart" in targets:
            self.start(inner, plain, inside, times, channel)
        elif "AsyncCollectiveDone" in targets:
            self.done(channel)
        elif channel not in self.under_way:
            self.start(inner, plain, inside, times, "")

    def start(self, op: Operation, plain: str, beside: Mapping[str, Operation], times: int | None, key: str) -> None:
        found = list(self.collectives_of(op, plain, beside, times))
        first = len(self.schedule.collectives)
        self.schedule.collectives += found
        if key:
            self.under_way[key] = range(first, first + len(found)), self.turn

    def done(self, key: str) -> None:
        if key in self.under_way:
            places, before = self.under_way.pop(key)
            for k in places:
                self.schedule.collectives[k] = replace(self.schedule.collectives[k], meanwhile=self.turn - before)

    def compute(self, flops: int, times: int | None) -> None:
        self.turn += flops
        self.schedule.flops += flops * (1 if times is None else times)

    def collectives_of(
        self, op: Operation, plain: str, beside: Mapping[str, Operation], times: int | None
    ) -> Iterator[Collective]:
        """One for each array: the compiler merges several collectives into one of several arrays."""
        groups = op.groups or [list(range(math.prod(self.mesh.values())))]
        axes = axes_of_groups(groups, self.mesh)
        permute = plain == "collective-permute"
        group = math.prod(self.mesh[a] for a in axes) if permute else max(map(len, groups))
        shift = shift_along(groups, axes, self.mesh) if permute else 0
        kind = "reduce_scatter" if plain == "all-reduce" and _keeps_a_slice(op, beside) else _KINDS[plain]
        for name in op.operands[:1] if permute else op.operands:
            for array in beside[name].results[:1]:
                yield Collective(kind, axes, group, array.shape, array.dtype, array.bytes, times, shift=shift)


def _keeps_a_slice(op: Operation, beside: Mapping[str, Operation]) -> bool:
    """Whether of an all-reduce each device keeps only its own slice, in the same kernel."""
    sliced = any(o.kind == "dynamic-slice" and op.name in o.operands for o in beside.values())
    return sliced and any(o.kind == "partition-id" for o in beside.values())


def largest(module: Module, count: int = 3) -> list[Buffer]:
    """The largest arrays that the program makes in HBM, each shape from one place counted once."""
    fused = {name for ops in module.computations.values() for op in ops if op.kind == "fusion" for name in op.called}
    buffers = {
        Buffer(array, op.written_as)
        for name, operations in module.computations.items()
        if name not in fused
        for op in operations
        if op.kind not in _NO_BUFFER
        for array in op.results
        if array.space == 0
    }
    return sorted(buffers, key=lambda b: (-b.array.padded, b.written_as, str(b.array)))[:count]


def _matmul_flops(op: Operation, beside: Mapping[str, Operation]) -> int:
    """FLOPs of a product, which the TPU's compiler writes as a convolution; 0 for anything else."""
    if op.kind not in ("convolution", "dot"):
        return 0
    (left,), (right,) = (beside[name].results[:1] for name in op.operands[:2])
    entries = math.prod(op.results[0].shape)
    if op.kind == "dot":
        contracted = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", op.rest)
        along = (contracted[1] if contracted else "").split(",")
        return 2 * entries * math.prod(left.shape[int(k)] for k in along if k)
    labels = re.match(r"(\w+)_(\w+)->(\w+)", op.attribute("dim_labels"))
    if labels is None:
        return 0
    inputs, kernel, output = labels.groups()
    features = right.shape[kernel.index("i")]
    spatial = [d for d in output if d.isdigit()]
    places = math.prod(op.results[0].shape[k] for k, d in enumerate(output) if not d.isdigit())
    window = _window(op.rest, len(spatial))
    for k, d in enumerate(spatial):
        places *= _products(
            left.shape[inputs.index(d)], right.shape[kernel.index(d)], op.results[0].shape[output.index(d)], *window[k]
        )
    return 2 * places * features


def _window(rest: str, dimensions: int) -> list[tuple[int, int, int, int]]:
    """Stride, padding in front, and how far apart the entries of the left and of the right side are, by dimension."""
    found = re.search(r"window=\{([^}]*)\}", rest)
    parts = dict(part.split("=", 1) for part in (found[1] if found else "").split())

    def numbers(name: str, otherwise: str) -> list[int]:
        written = parts.get(name, "x".join([otherwise] * dimensions))
        return [int(part.split("_")[0]) for part in written.split("x") if part]

    usual = {"stride": "1", "pad": "0", "lhs_dilate": "1", "rhs_dilate": "1"}
    stride, pad, spread, apart = (numbers(*pair) for pair in usual.items())
    return list(zip(stride, pad, spread, apart, strict=True))


def _products(left: int, right: int, result: int, stride: int, pad: int, spread: int, apart: int) -> int:
    """How many entries of the left side meet one of the right, along one dimension of a convolution."""
    at = np.arange(result)[:, None] * stride + np.arange(right)[None] * apart - pad
    return int(((at >= 0) & (at < (left - 1) * spread + 1) & (at % spread == 0)).sum())


def _turns(loop: Operation, beside: Mapping[str, Operation], module: Module) -> int | None:
    """Turns of a loop that counts from a constant up to a constant; None where its text does not say."""
    known = re.search(r"known_trip_count[^\d}]*(\d+)", loop.rest)
    if known:
        return int(known[1])
    condition = {op.name: op for op in module.computations[loop.attribute("condition")]}
    body = {op.name: op for op in module.computations[loop.attribute("body")]}
    compared = next(
        (op for op in condition.values() if op.kind == "compare" and op.attribute("direction") == "LT"), None
    )
    if compared is None:
        return None
    counter, limit = condition[compared.operands[0]], _constant(compared.operands[1], condition)
    if counter.kind != "get-tuple-element":
        return None
    place = int(counter.attribute("index"))
    first = _constant(beside[loop.operands[0]].operands[place], beside)
    root = next(op for op in body.values() if op.root)
    step = _step(root.operands[place], body) if root.kind == "tuple" else None
    if limit is None or first is None or not step:
        return None
    return max(0, -((first - limit) // step))


def _step(name: str, body: Mapping[str, Operation]) -> int | None:
    added = body[name]
    while added.kind in ("copy", "bitcast"):
        added = body[added.operands[0]]
    constants = [_constant(operand, body) for operand in added.operands] if added.kind == "add" else []
    return next((c for c in constants if c is not None), None)


def _constant(name: str, beside: Mapping[str, Operation]) -> int | None:
    """The whole number that a name stands for."""
    op = beside[name]
    while op.kind in ("copy", "bitcast", "convert"):
        op = beside[op.operands[0]]
    return int(op.inputs) if op.kind == "constant" and op.inputs.lstrip("-").isdecimal() else None
