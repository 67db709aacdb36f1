"""The text of a compiled program, HLO, as records: computations, and in each its operations in the order they start.

JAX's own reader of HLO gives back text too. Tiles such as T(8,128)(2,1), and memory spaces such as
S(1), are explained in XLA's "Tiled layout" (openxla.org/xla/tiled_layout).
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from grader.jax_versions import BY_AXES, numbers_for

_ARRAY = re.compile(r"([a-z]\w*)\[([\d,<=]*)\](?:\{([\d,]*)((?::[^{}]*)?)\})?")
_HEADER = re.compile(r"(ENTRY )?%?([\w.\-]+) .*\{$")
_OPERATION = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_KIND = re.compile(r" ?([a-z][\w\-]*)\(")
_PARENTHESES = re.compile(r"[()]")
_CALLED = re.compile(r"(?:calls|body|to_apply|condition|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_LISTED = re.compile(r"(?:replica_groups|source_target_pairs)=\"?\{(\{[\d,{} ]*\})\}")
_BITS = {"pred": 8, "token": 0, "opaque": 0}


@dataclass(frozen=True)
class Tiled:
    """An array as it is laid out in memory: its shape, and the bytes that it takes with its tiles filled up."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int
    padded: int
    space: int  # 0 is HBM; the others are on the chip

    def __str__(self) -> str:
        return f"{dtype_name(self.dtype)}[{','.join(map(str, self.shape))}]"


def dtype_name(dtype: str) -> str:
    """An HLO type as jaxprs spell it: s32 is i32, pred is bool."""
    return "bool" if dtype == "pred" else re.sub(r"^s(?=\d)", "i", dtype)


@functools.cache
def bits_of(dtype: str) -> int:
    """Bits of one element: 4 for s4, 64 for c64, 8 for pred and f8e4m3fn."""
    found = re.match(r"[a-z]+(\d+)", dtype)
    return int(found[1]) if found else _BITS.get(dtype, 0)


def is_backward_path(path: str) -> bool:
    """Whether a path of JAX's names is one of a gradient's backward pass."""
    return "transpose(" in path


@dataclass(frozen=True)
class Operation:
    """One line of HLO: its name, what it does (`kind`), the text of its results' types, and all that follows `kind(`.

    A line is taken apart only as far as somebody asks.
    """

    name: str
    kind: str
    types: str
    tail: str
    root: bool

    @cached_property
    def results(self) -> tuple[Tiled, ...]:
        return tuple(_tiled(*found) for found in _ARRAY.findall(self.types))

    @cached_property
    def _end(self) -> int:
        return _closing(self.tail)

    @property
    def inputs(self) -> str:
        """The operands as they are written: a constant's value."""
        return self.tail[: self._end]

    @property
    def rest(self) -> str:
        """The attributes that follow the operands."""
        return self.tail[self._end + 1 :]

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The names of the operands."""
        if "%" in self.inputs:
            return tuple(re.findall(r"%([\w.\-]+)", self.inputs))
        plain = re.sub(r"/\*.*?\*/", "", self.inputs)
        return tuple(part.split()[-1] for part in plain.split(", ") if part.strip())

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The computations that it calls, a loop's condition and a reduction's addition among them."""
        branches = _BRANCHES.search(self.rest)
        listed = re.findall(r"[\w.\-]+", branches[1]) if branches else []
        return (*_CALLED.findall(self.rest), *listed)

    def attribute(self, name: str) -> str:
        """What is written after `name=`, up to the next comma or brace; "" where there is none."""
        found = re.search(rf"\b{name}=\"?%?([^,\"{{}}\s]+)", self.rest)
        return found[1] if found else ""

    @property
    def path(self) -> str:
        """Where in the function it comes from: JAX's path of names, as jit(step)/shard_map/psum."""
        found = re.search(r'op_name="([^"]*)"', self.rest)
        if not found or found[1].endswith("call_exported"):  # what calls a pod's program is nothing of its author's
            return ""
        return found[1].rpartition("call_exported/")[2].removeprefix("jit(program)/")

    @property
    def is_backward(self) -> bool:
        return is_backward_path(self.path)

    @cached_property
    def groups(self) -> list[list[int]]:
        """The devices that take part together, or the pairs (from, to) of a permute, by their number in the program."""
        rest = BY_AXES.sub(numbers_for, self.rest)
        if iota := _IOTA.search(rest):
            shape, counted, turned = (integers(part) for part in iota.groups(default=""))
            numbers = np.arange(math.prod(counted)).reshape(counted)
            return numbers.transpose(turned or None).reshape(shape).tolist()
        listed = _LISTED.search(rest)
        return [integers(group) for group in re.findall(r"\{([\d, ]+)\}", listed[1])] if listed else []


Computation = Mapping[str, Operation]


@dataclass(frozen=True)
class Module:
    """The computations of a program, their operations by name; `entry` is where it begins, `heading` its first line.

    `tables` are the lines at the head that say where operations were written, by the name of the table.
    """

    computations: Mapping[str, Computation]
    entry: str
    heading: str = ""
    tables: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def devices(self) -> int:
        """For how many devices the program was compiled."""
        return self._count("num_partitions") * self._count("replica_count")

    def _count(self, name: str) -> int:
        found = re.search(rf"\b{name}=(\d+)", self.heading)
        return int(found[1]) if found else 1


class NotHLO(ValueError):
    """A text that is no compiled program; the message says what was found instead."""


def parsed(text: str) -> Module:
    """The module that a compiled program's `as_text()` tells.

    Raises:
      NotHLO: the text has no computation with which a program begins.
    """
    lines: dict[str, list[str]] = {}
    tables: dict[str, list[str]] = {}
    entry, heading = "", ""
    current: list[str] | None = None
    table: list[str] = []
    for line in text.splitlines():
        if heading and line.startswith("HloModule"):
            raise NotHLO("expected the text of one compiled program; found two modules in it")
        if current is not None:
            if line == "}" or line.startswith("}, execution_thread"):
                current = None
            elif line.startswith(" ") or not current:
                current.append(line)
            else:  # an attribute may hold line breaks
                current[-1] += line
        elif line.startswith("HloModule"):
            heading = line
        elif header := _HEADER.match(line):
            current = lines.setdefault(header[2], [])
            entry = header[2] if header[1] else entry
        elif line.isidentifier():
            table = tables.setdefault(line, [])
        elif line:
            table.append(line)
    if current is not None:
        raise NotHLO(f"expected the whole text of a compiled program; it breaks off after {text[-60:].strip()!r}")
    if heading and "is_scheduled=true" not in heading:
        raise NotHLO(
            "expected the text of a compiled program; this one is from before XLA compiled it, without the collectives "
            "that XLA adds. Take `compiled.as_text()`, or the dump that ends in `after_optimizations.txt`."
        )
    if not entry:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
        raise NotHLO(
            "expected the text of a compiled program, which begins with `HloModule` and has an ENTRY computation, as "
            f"`compiled.as_text()` gives it; found {first[:80]!r}"
        )
    computations = {name: {op.name: op for op in map(_operation, written) if op} for name, written in lines.items()}
    return Module(computations, entry, heading, tables)


def _operation(line: str) -> Operation | None:
    found = _OPERATION.match(line)
    if not found:
        return None
    root, name, text = found.groups()
    end = _closing(text[1:]) + 2 if text.startswith("(") else text.find(" ")
    kind = _KIND.match(text, end)
    return Operation(name, kind[1], text[:end], text[kind.end() :], bool(root)) if kind else None


def _closing(text: str) -> int:
    """Where the parenthesis is closed that was opened just before a text."""
    depth = 1
    for found in _PARENTHESES.finditer(text):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.start()
    return len(text)


def _tiled(dtype: str, dims: str, order: str, tiles: str) -> Tiled:
    shape = tuple(integers(dims.replace("<=", "")))
    size = math.ceil(math.prod(shape) * bits_of(dtype) / 8)
    if not tiles:
        return Tiled(dtype, shape, size, size, 0)
    lengths = list(shape)
    tile, space = re.search(r"T\(([\d,]+)\)", tiles), re.search(r"S\((\d+)\)", tiles)
    if tile and order:
        minor = integers(order)  # dimensions, the one that changes fastest first
        for k, length in zip(minor, reversed(integers(tile[1])), strict=False):
            lengths[k] = -(-lengths[k] // length) * length
    padded = math.ceil(math.prod(lengths) * bits_of(dtype) / 8)
    return Tiled(dtype, shape, size, padded, int(space[1]) if space else 0)


def integers(listed: str) -> list[int]:
    return [int(number) for number in listed.split(",") if number]
