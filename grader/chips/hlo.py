"""The text of a compiled program, HLO, as records: computations, and in each its operations in the order they start.

There is no reader of HLO for Python; only what the reports need is read. Tiles such as T(8,128)(2,1), and memory spaces
such as S(1), are told in XLA's "Tiled layout" (openxla.org/xla/tiled_layout).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grader.jax_versions import BY_AXES, numbers_for

_SHAPE = re.compile(r"([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*)((?::[^{}]*)?)\})?")
_HEADER = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\) -> .*\{$")
_OPERATION = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_CALLED = re.compile(r"(?:calls|body|to_apply|condition|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_LISTED = re.compile(r"(?:replica_groups|source_target_pairs)=\{(\{[\d,{}]*\})\}")


@dataclass(frozen=True)
class Tiled:
    """An array as it is laid out in memory: its shape, and the bytes that it takes with its tiles filled up."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int
    padded: int
    space: int  # 0 is HBM; the others are on the chip

    def __str__(self) -> str:
        return f"{_NAMES.get(self.dtype, self.dtype)}[{','.join(map(str, self.shape))}]"


_NAMES = {f"{kind}{bits}": f"{new}{bits}" for kind, new in (("s", "i"), ("u", "ui")) for bits in (4, 8, 16, 32, 64)}


@dataclass(frozen=True)
class Operation:
    """One line of HLO: its name, what it does, its results, the names of its operands, and the rest of the line."""

    name: str
    kind: str
    results: tuple[Tiled, ...]
    operands: tuple[str, ...]
    rest: str
    inputs: str  # the operands as they are written: a constant's value
    root: bool

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The computations that it calls, a loop's condition and a reduction's addition among them."""
        branches = _BRANCHES.search(self.rest)
        listed = re.findall(r"[\w.\-]+", branches[1]) if branches else []
        return (*_CALLED.findall(self.rest), *listed)

    def attribute(self, name: str) -> str:
        """What is written behind `name=`, up to the next comma or brace; "" where there is none."""
        found = re.search(rf"\b{name}=\"?%?([^,\"{{}}\s]+)", self.rest)
        return found[1] if found else ""

    @property
    def written_as(self) -> str:
        """Where in the function it stems from: JAX's path of names."""
        found = re.search(r'op_name="([^"]*)"', self.rest)
        return found[1].rpartition("jit(program)/")[2] if found else ""

    @cached_property
    def groups(self) -> list[list[int]]:
        """The devices that take part together, or the pairs (from, to) of a permute, by their place in the mesh."""
        rest = BY_AXES.sub(numbers_for, self.rest)
        if iota := _IOTA.search(rest):
            shape, counted, turned = (_integers(part) for part in iota.groups(default=""))
            numbers = np.arange(math.prod(counted)).reshape(counted)
            return numbers.transpose(turned or None).reshape(shape).tolist()
        listed = _LISTED.search(rest)
        return [_integers(group) for group in re.findall(r"\{([\d,]+)\}", listed[1])] if listed else []


@dataclass(frozen=True)
class Module:
    """The computations of a program by name; `entry` is where it begins."""

    computations: Mapping[str, Sequence[Operation]]
    entry: str

    def within(self, name: str) -> Iterator[Operation]:
        """The operations of a computation, and of those that it calls."""
        for op in self.computations.get(name, ()):
            yield op
            for called in op.called:
                yield from self.within(called)


def parsed(text: str) -> Module:
    """The module that a compiled program's `as_text()` tells."""
    computations: dict[str, list[Operation]] = {}
    entry, current = "", None
    for line in text.splitlines():
        if header := _HEADER.match(line):
            current = computations.setdefault(header[2], [])
            entry = header[2] if header[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None and (found := _OPERATION.match(line)):
            current.append(_operation(found[2], found[3], bool(found[1])))
    return Module(computations, entry)


def _operation(name: str, text: str, root: bool) -> Operation:
    end = _closing(text, 0) + 1 if text.startswith("(") else text.index(" ")
    opening = text.index("(", end)
    closing = _closing(text, opening)
    inputs = text[opening + 1 : closing]
    operands = tuple(re.findall(r"%([\w.\-]+)", inputs))
    results = tuple(_tiled(*found) for found in _SHAPE.findall(text[:end]))
    return Operation(name, text[end:opening].strip(), results, operands, text[closing + 1 :], inputs, root)


def _closing(text: str, opening: int) -> int:
    """Where the bracket that opens at a place is closed."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place
    return len(text)


def _tiled(dtype: str, dims: str, order: str, tiles: str) -> Tiled:
    shape = tuple(_integers(dims))
    lengths = list(shape)
    tile = re.search(r"T\(([\d,]+)\)", tiles)
    if tile and order:
        minor = _integers(order)  # dimensions, the one that changes fastest first
        for k, length in zip(minor, reversed(_integers(tile[1])), strict=False):
            lengths[k] = -(-lengths[k] // length) * length
    space = re.search(r"S\((\d+)\)", tiles)
    bits = _bits(dtype)
    return Tiled(
        dtype,
        shape,
        math.ceil(math.prod(shape) * bits / 8),
        math.ceil(math.prod(lengths) * bits / 8),
        int(space[1]) if space else 0,
    )


def _bits(dtype: str) -> int:
    found = re.match(r"[a-z]+(\d+)", dtype)
    return int(found[1]) if found else {"pred": 8}.get(dtype, 0)


def _integers(listed: str) -> list[int]:
    return [int(number) for number in listed.split(",") if number]
