"""Counts collectives, bytes and FLOPs in compiled HLO text, with nothing of the grader's own reader in it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import jax
import numpy as np

KINDS = {
    "all-reduce": "all_reduce",
    "all-gather": "all_gather",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "ragged-all-to-all": "ragged_all_to_all",
    "collective-permute": "collective_permute",
    "collective-broadcast": "collective_broadcast",
}
# (XLA names a type by its bits, "f8e4m3fn" too: only these two are not as wide as their first number says.)
BITS = {"pred": 8, "token": 0}

HEAD = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) \(.*\{$")
LINE = re.compile(r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<type>.*?) (?P<op>[a-z][a-z0-9\-]*)\((?P<rest>.*)$")
SHAPE = re.compile(r"\b([a-z][a-z0-9]*)\[([\d,<=]*)\]")
CALLED = re.compile(r"\b(?:calls|body|condition|to_apply|called_computations)=\{?%([\w.\-]+)")
BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}|\b(?:true|false)_computation=(%[\w.\-]+)")
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
LISTED = re.compile(r"replica_groups=(\{(?:\{[\d,]*\},?)*\})")
IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
MESH = re.compile(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))? \{([^}]*)\}")
PAIRS = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")


@dataclass(frozen=True)
class Found:
    """One operand of one collective instruction.

    `times` is None inside a loop of unknown length. `groups` are the devices that take part together, and the pairs of
    a permute. `operand` is in bytes on one device. `sent` has one entry for each device, for one execution.
    """

    kind: str
    dtype: str
    elements: int
    operand: Fraction
    groups: tuple[tuple[int, ...], ...]
    sent: tuple[Fraction, ...]
    times: int | None = 1

    def axes(self, mesh: jax.sharding.Mesh) -> frozenset[str]:
        """The axes of `mesh` along which members of one group differ. (Groups list indices into the mesh, not ids.)"""
        places = [np.array(np.unravel_index(group, mesh.devices.shape)) for group in self.groups]
        moved = sum((np.ptp(place, axis=1) for place in places), np.zeros(mesh.devices.ndim, int))
        return frozenset(name for name, far in zip(mesh.axis_names, moved, strict=True) if far)

    def candidates(self, meshes: Sequence[jax.sharding.Mesh]) -> list[frozenset[str]]:
        """The same for each of some meshes; if the groups span all of some axes of one, for such meshes only."""
        found = {mesh: self.axes(mesh) for mesh in meshes}
        spans = {mesh: math.prod(mesh.shape[name] for name in axes) for mesh, axes in found.items()}
        whole = [axes for mesh, axes in found.items() if {spans[mesh]} == set(map(len, self.groups))]
        return whole or list(found.values())


@dataclass(frozen=True)
class Count:
    """The totals of a computation. Of a conditional, the largest branch counts, for bytes and for FLOPs."""

    collectives: tuple[Found, ...]
    sent: tuple[Fraction, ...]
    flops: int
    open: bool = False

    def __add__(self, other: Count) -> Count:
        sent = tuple(a + b for a, b in zip(self.sent, other.sent, strict=True))
        found = self.collectives + other.collectives
        return Count(found, sent, self.flops + other.flops, self.open or other.open)

    def or_else(self, other: Count) -> Count:
        """Either of two branches."""
        sent = tuple(max(pair) for pair in zip(self.sent, other.sent, strict=True))
        found = self.collectives + other.collectives
        return Count(found, sent, max(self.flops, other.flops), self.open or other.open)

    def repeated(self, times: int | None) -> Count:
        """In a loop; None: of unknown length, which counts once and is remembered."""
        least = 1 if times is None else times
        found = tuple(replace(f, times=None if None in (f.times, times) else f.times * least) for f in self.collectives)
        return Count(found, tuple(least * s for s in self.sent), least * self.flops, self.open or times is None)


def numbers(text: str | None) -> list[int]:
    """All numbers in a text."""
    return [int(number) for number in re.findall(r"\d+", text or "")]


def shapes(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The arrays of an HLO type: dtype and dimensions of each."""
    return [(dtype, tuple(numbers(dims))) for dtype, dims in SHAPE.findall(text)]


def bits(dtype: str) -> int:
    """The bits of one element."""
    return BITS[dtype] if dtype in BITS else numbers(dtype)[0]


def groups_in(line: str, devices: int) -> tuple[tuple[int, ...], ...]:
    """The groups of a collective, in whichever of the three spellings; none given: all devices together."""
    if pairs := PAIRS.search(line):
        return tuple(tuple(numbers(pair)) for pair in re.findall(r"\{[^}]*\}", pairs[1]))
    if listed := LISTED.search(line):
        found = tuple(tuple(numbers(group)) for group in re.findall(r"\{([\d,]+)\}", listed[1]))
        return found or (tuple(range(devices)),)
    if iota := IOTA.search(line):
        shape, sizes, order = numbers(iota[1]), numbers(iota[2]), numbers(iota[3])
        ids = np.arange(math.prod(sizes)).reshape(sizes)
        ids = ids.transpose(order) if order else ids
        return tuple(map(tuple, ids.reshape(shape).tolist()))
    if mesh := MESH.search(line):
        return mesh_groups(*mesh.groups())
    if "replica_groups=" in line:
        raise ValueError(f"groups in a spelling that is not known here: {line}")
    return (tuple(range(devices)),)


def mesh_groups(axes: str, shape: str | None, order: str | None, over: str) -> tuple[tuple[int, ...], ...]:
    """The groups of `mesh['x'=4,'y'=2] {'x'}`; a part of an axis is `'x':(2)4`, of size 4, after a part of size 2."""
    sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", axes)}
    wanted = [
        (name, int(before or 1), int(part or sizes[name]))
        for name, before, part in re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", over)
    ]
    devices = np.arange(math.prod(sizes.values()))
    if shape:
        devices = devices.reshape(numbers(shape)).transpose(numbers(order) or None)
    pieces: dict[
        tuple[str, int], int
    ] = {}  # the sizes of all parts of axes, by the axis and the size of the parts before
    for name, size in sizes.items():
        ends = {end for axis, before, part in wanted if axis == name for end in (before, before * part)}
        pieces |= {(name, start): end // start for start, end in pairwise(sorted({1, size} | ends))}
    inside = [list(pieces).index((name, before)) for name, before, part in wanted if part > 1]
    outside = [k for k in range(len(pieces)) if k not in inside]
    split = devices.reshape(list(pieces.values())).transpose([*outside, *inside])
    together = math.prod(part for _, _, part in wanted)
    return tuple(map(tuple, split.reshape(-1, together).tolist()))


def sent_by(kind: str, operand: Fraction, groups: Iterable[Sequence[int]], devices: int) -> tuple[Fraction, ...]:
    """The bytes that each device sends: on a ring, or directly in a permute."""
    sent = [Fraction(0)] * devices
    for group in groups:
        n = len(group)
        if kind == "collective_permute":
            if group[0] != group[1]:
                sent[group[0]] = operand
        elif kind == "collective_broadcast":
            for member in group[:-1]:
                sent[member] = operand
        else:
            share = {"all_gather": Fraction(n - 1), "all_reduce": Fraction(2 * (n - 1), n)}.get(
                kind, Fraction(n - 1, n)
            )
            for member in group:
                sent[member] = share * operand
    return tuple(sent)


def collectives_in(line: str, op: str, operands: Sequence[str], types: dict[str, str], devices: int) -> list[Found]:
    """The collectives of one instruction: one for each operand, but one for all pieces of an all-to-all."""
    kind = KINDS[op.removesuffix("-start")]
    groups = groups_in(line, devices)
    arrays = [shape for name in operands for shape in shapes(types[name])]
    sizes = [(dtype, math.prod(dims)) for dtype, dims in arrays]
    if kind == "all_to_all":
        sizes = [(sizes[0][0], sum(size for _, size in sizes))]
    if kind == "ragged_all_to_all":  # the other operands are offsets and sizes
        sizes = sizes[:1]
    found = []
    for dtype, elements in sizes:
        operand = Fraction(elements * bits(dtype), 8)
        found.append(Found(kind, dtype, elements, operand, groups, sent_by(kind, operand, groups, devices)))
    return found


def flops_of(line: str, op: str, result: str, operands: Sequence[str], types: dict[str, str]) -> int:
    """Two for each multiplication of a dot, m·n·k of them, or of a convolution."""
    if op not in ("dot", "convolution"):
        return 0
    ((_, out),) = shapes(result)
    (_, left), (_, right) = (shapes(types[name])[0] for name in operands[:2])
    if op == "convolution":
        return 2 * multiplications(line, left, right, out)
    contracted = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", line)
    return 2 * math.prod(out) * math.prod(left[axis] for axis in numbers(contracted and contracted[1]))


def multiplications(line: str, images: Sequence[int], kernels: Sequence[int], out: Sequence[int]) -> int:
    """Those of a convolution. Like XLA's own cost analysis, this leaves out padding and the zeros of dilation."""
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", line).groups()
    window = (
        dict(re.findall(r"(\w+)=([\dx_\-]+)", re.search(r"window=\{([^}]*)\}", line)[1])) if "window=" in line else {}
    )
    b, f, i = out[labels[2].index("b")], out[labels[2].index("f")], kernels[labels[1].index("i")]
    total = b * f * i
    for k, axis in enumerate(sorted(set(labels[0]) & set("0123456789"))):
        size, width, end = (
            shape[label.index(axis)] for shape, label in zip((images, kernels, out), labels, strict=True)
        )
        stride, apart, dilated = (
            int(window[name].split("x")[k]) if name in window else 1 for name in ("stride", "lhs_dilate", "rhs_dilate")
        )
        before = int(window["pad"].split("x")[k].split("_")[0]) if "pad" in window else 0
        places = (o * stride + w * dilated - before for o in range(end) for w in range(width))
        total *= sum(place % apart == 0 and 0 <= place <= (size - 1) * apart for place in places)
    return total


def count(text: str) -> Count:
    """Counts a whole HLO text, from its entry on."""
    devices = max(
        numbers(" ".join(re.findall(r"(?:num_partitions|replica_count)=\d+", text.split("\n", 1)[0]))), default=1
    )
    computations: dict[str, list[re.Match]] = {}
    entry = here = ""
    for line in text.splitlines():
        if head := HEAD.match(line):
            here = head["name"]
            computations[here] = []
            entry = here if head["entry"] else entry
        elif here and (instruction := LINE.match(line)):
            computations[here].append(instruction)
    return counted(entry, computations, devices, {})


def counted(name: str, computations: dict[str, list[re.Match]], devices: int, known: dict[str, Count]) -> Count:
    """Counts one computation, with everything that it calls."""
    if name in known:
        return known[name]
    types = {line["name"]: line["type"] for line in computations[name]}
    total = nothing = Count((), (Fraction(0),) * devices, 0)
    for line in computations[name]:
        op, rest = line["op"], line["rest"]
        operands = re.findall(r"%([\w.\-]+)", rest.split(")", 1)[0])
        called = {c: counted(c, computations, devices, known) for c in CALLED.findall(rest)}
        if op.removesuffix("-start") in KINDS:
            found = collectives_in(rest, op, operands, types, devices)
            sent = tuple(map(sum, zip(*(f.sent for f in found), strict=True)))
            total += Count(tuple(found), sent, 0)
        elif op == "while":
            trips = TRIPS.search(rest)
            times = int(trips[1]) if trips else None
            body, condition = (re.search(rf"{part}=%([\w.\-]+)", rest)[1] for part in ("body", "condition"))
            total += called[body].repeated(times)
            total += called[condition].repeated(None if times is None else times + 1)
        elif op == "conditional":
            branches = re.findall(r"%([\w.\-]+)", " ".join(map("".join, BRANCHES.findall(rest))))
            either = nothing
            for branch in branches:
                either = either.or_else(counted(branch, computations, devices, known))
            total += either
        elif op in ("call", "fusion", "async-start", "custom-call"):
            for each in called.values():
                total += each
        total += replace(nothing, flops=flops_of(rest, op, line["type"], operands, types))
    known[name] = total
    return total
