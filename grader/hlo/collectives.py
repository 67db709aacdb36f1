"""The collectives of a compiled program: what each sends, along which axes, and on whose behalf."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from grader.hlo.meshes import Groups, mesh_of
from grader.hlo.sources import LineFinder, SourceLine
from grader.hlo.text import Computation, Module, Operation, Tiled, dtype_name, is_backward_path
from grader.hlo.totals import Totals, mean_of
from grader.programs.collectives import OF_HLO, OF_PRIMITIVE, ring_bytes
from grader.programs.structure import Collective
from grader.programs.walk import axes_of_groups, joined, shift_along

_BY_THE_COMPILER = 'is_spmd_generated="true"'  # so newer XLA marks what its partitioner adds


@dataclass(frozen=True)
class CompiledCollective(Collective):
    """One collective that a compiled program runs; `bytes` and `operand` are one device's.

    `times`: how often it runs, loops multiplied out, at most; None in a loop whose length the text does not say, and
    then `counted` is how often if each such loop runs once.
    `sent`: the bytes that each device sends in one run, by its number. `yours`: its author wrote it; else the compiler
    added it, for `operation` (JAX's name of an operation, or an argument's). `place` is the line that either is on.
    `optional`: it is in a branch, or what it sends is known only when it runs. `merged`: XLA sends it together with so
    many others. `written`: what the author wrote, where that is another kind, or another type. `along`: how many
    devices its axes have, of which `group` take part together. `backward`: it belongs to a gradient's backward pass.
    `is_named`: `operation` is its own; else that of one of those with which it is merged. `is_split`: the compiler made
    more than this one of what its author wrote.
    """

    counted: int = 1
    sent: tuple[float, ...] = ()
    yours: bool = False
    operation: str = ""
    place: SourceLine | None = field(default=None, compare=False)
    optional: bool = False
    merged: int = 0
    written: str = ""
    along: int = 0
    backward: bool = False
    is_named: bool = True
    is_split: bool = False

    @property
    def once(self) -> Totals:
        """What one run sends."""
        most = Totals.of(np.array(self.sent), runs=1, axes=", ".join(self.axes))
        return Totals.any_of([most, most.often(0)]) if self.optional else most

    @property
    def work(self) -> Totals:
        """What all runs send."""
        all_known = self.once.often(self.counted)
        return all_known.often(None) if self.times is None else all_known

    @property
    def bytes_sent(self) -> int:
        """Bytes that the busiest device sends, all runs together."""
        return self.work.sent.number

    @property
    def bytes_sent_mean(self) -> float:
        """Bytes that a device sends on average, all runs together."""
        return self.work.sent_mean.value

    @property
    def shape(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.operand))}]"

    @property
    def owner(self) -> str:
        """Whose it is, in words."""
        at = f" at {self.place}" if self.place else ""
        backward = ", backward" if self.backward else ""
        if self.yours:
            return f"yours{backward}{at}"
        if self.operation:
            return f"the compiler's, for {self.operation}{backward}{at}"
        return "the compiler's" if self.is_named else "not named in the text"

    def __str__(self) -> str:
        over = f" over {', '.join(self.axes)}{self.grouping}" if self.axes else self.grouping
        times = "" if self.times == 1 else f" × {'?' if self.times is None else self.times}"
        return f"{self.kind} of {self.shape}{over}{times}: {self._sent} ({self.about})"

    @property
    def grouping(self) -> str:
        """How many devices take part together, in words, where these are fewer than its axes have."""
        return f" (in groups of {self.group})" if 1 < self.group < self.along else ""

    @property
    def _sent(self) -> str:
        most, mean = self.work.sent, self.bytes_sent_mean
        if len(set(self.sent)) <= 1:
            return most.of("B sent per device")
        return f"{most.of('B sent by the busiest device')}, {mean_of(mean)} B on average"

    @property
    def about(self) -> str:
        """Whose it is, and what the compiler made of it."""
        written = [f"written as {self.written}"] if self.written else []
        merged = [f"merged with {self.merged} other{'s' * (self.merged > 1)}"] if self.merged else []
        split = ["one of several that the compiler made of it"] if self.is_split else []
        return "; ".join([self.owner, *written, *merged, *split])


@dataclass(frozen=True)
class Runs:
    """How often a place in a program is reached: `times`, None if a loop of unknown length is around it, and how often
    if each such loop runs once."""

    times: int | None = 1
    counted: int = 1

    def often(self, iterations: int | None) -> Runs:
        known = None if self.times is None or iterations is None else self.times * iterations
        return Runs(known, self.counted * (1 if iterations is None else iterations))


@dataclass(frozen=True)
class CollectiveReader:
    """Makes the records of a module's collectives, their axes named after those of its program's meshes."""

    module: Module
    meshes: Sequence[Mapping[str, int]]
    devices: int
    lines: LineFinder

    def read(
        self, op: Operation, kind: str, beside: Computation, runs: Runs, meanwhile: int, *, fused: bool
    ) -> Iterator[CompiledCollective]:
        """The collectives that an operation is: the compiler merges several into one of several arrays.

        In a fusion, an all-reduce of which each device keeps a slice is a reduce-scatter.
        """
        permute = kind == "collective_permute"
        groups = op.groups or ([] if permute else [list(range(self.devices))])
        arrays = self._operands(op, kind, beside, groups)
        if fused and kind == "all_reduce" and _keeps_a_slice(op, beside):
            kind = "reduce_scatter"
        mesh = mesh_of(groups, self.meshes)
        axes = axes_of_groups(groups, mesh) if mesh else ()
        along = math.prod(mesh[axis] for axis in axes) if mesh else self.devices
        taken_out = self._results(op, beside) if len(arrays) > 1 else {}
        is_own_name = len(arrays) == 1 or len({said.path for said in taken_out.values()}) > 1
        for k, (array, name) in enumerate(zip(arrays, self._names(op, len(arrays)), strict=True)):
            said = taken_out.get(k, op)
            path = said.path if is_own_name else name
            operation = _last_name(path)
            own = operation in OF_PRIMITIVE and not (is_own_name and _BY_THE_COMPILER in said.rest)
            yield CompiledCollective(
                kind,
                axes,
                along if permute else max(map(len, groups)),
                array.shape,
                dtype_name(array.dtype),
                array.bytes,
                runs.times,
                counted=runs.counted,
                overlappable_flops=meanwhile,
                shift=shift_along(groups, axes, mesh) if permute and mesh else 0,
                sent=self._sent(kind, array.bytes, groups),
                yours=own,
                operation=operation,
                place=self.lines(said),
                optional=kind == "ragged_all_to_all",
                merged=len(arrays) - 1,
                along=along,
                backward=is_backward_path(path),
                is_named=is_own_name or name not in ("", op.path),
            )

    def _operands(self, op: Operation, kind: str, beside: Computation, groups: Groups) -> list[Tiled]:
        # A send has a token after its array, a permute within a buffer the buffer and where in it.
        first_only = op.kind == "send" or "slice_sizes=" in op.rest
        names = op.operands[:1] if first_only else op.operands
        arrays = [beside[name].results[0] for name in names if beside[name].results]
        if kind == "ragged_all_to_all":
            return arrays[:1]
        if kind == "all_to_all" and len(arrays) > 1 and len(arrays) == max(map(len, groups)):
            return [_joined(arrays)]  # one operand for each piece of a block
        return arrays

    def _sent(self, kind: str, size: int, groups: Groups) -> tuple[float, ...]:
        """The bytes that each device sends: in a permute only who has another device to send to."""
        sent = np.zeros(self.devices)
        if kind == "collective_permute":
            for source in {source for source, target in groups if source != target}:
                sent[source] = size
            return tuple(sent.tolist())
        for group in groups:
            members = list(group)[:-1] if kind == "collective_broadcast" else list(group)  # the last passes on nothing
            sent[members] = ring_bytes(kind, size, len(group))
        return tuple(sent.tolist())

    def _names(self, op: Operation, count: int) -> list[str]:
        """The paths of so many operations that are merged into one: "" where it cannot be told which is whose.

        Newer XLA names all, as jit(step)/(dot_general:shard_map/psum), and what they are all called once; older XLA
        keeps the first name. A name may hold a colon of its own.
        """
        merged = re.fullmatch(r"(.*?/)\((.*)\)", op.path)
        if not merged:
            return [op.path] * count
        parts = re.split(r":(?![^()]*\))", merged[2])  # colons outside of parentheses
        return [merged[1] + part for part in parts] if len(parts) == count else [""] * count

    def _results(self, op: Operation, beside: Computation) -> dict[int, Operation]:
        """For each array of several the operation that takes it out: it keeps the name of what the array is for."""
        taken = (
            other for other in beside.values() if other.kind == "get-tuple-element" and other.operands == (op.name,)
        )
        return {int(other.attribute("index")): other for other in taken}


def _last_name(path: str) -> str:
    """The operation in a path of names as jit(step)/shard_map/psum. A name that is no path is an argument's, or one
    that XLA gave, as slice.1."""
    before, _, last = path.rpartition("/")
    if before or not last:
        return last
    return "" if re.fullmatch(r"[a-z\-]+\.\d+", last) else f"argument {last}"


def _joined(pieces: Sequence[Tiled]) -> Tiled:
    """The block that these are pieces of."""
    one, n = pieces[0], len(pieces)
    return replace(one, shape=joined(one.shape, n), bytes=n * one.bytes, padded=n * one.padded)


def _keeps_a_slice(op: Operation, beside: Computation) -> bool:
    """Whether of an all-reduce each device keeps only its own slice."""
    sliced = any(o.kind == "dynamic-slice" and op.name in o.operands for o in beside.values())
    return sliced and any(o.kind == "partition-id" for o in beside.values())


def kind_of(op: Operation) -> str:
    """The kind of collective that an operation is, or starts; "" for any other."""
    to_host = op.kind == "send" and "is_host_transfer=true" in op.tail
    return "" if to_host else OF_HLO.get(op.kind.removesuffix("-start"), "")
