"""The text of a compiled program, read for what it sends.

XLA prints a program as computations of lines `name = type operation(operands), attributes`. The text is the one form
that holds on every JAX: converted to StableHLO, an all-to-all is lost (0.7) or cannot be read at all (0.10 on), and
the order of a mesh's devices is forgotten.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

OPERATIONS = {"all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
              "all-to-all": "all_to_all", "ragged-all-to-all": "all_to_all", "collective-permute": "collective_permute",
              "collective-broadcast": "collective_broadcast"}

Shape = tuple[str, tuple[int, ...]]  # the element's type and the lengths


@dataclass(frozen=True)
class Sent:
    """One collective of a compiled program.

    `groups` are the devices that take part together (for a permute the pairs of sender and receiver), by their place
    in the mesh; () where all of them are one group. `operands` is what a device puts in. `times` counts the turns of
    the loops around it; None where only a run can tell.
    """

    kind: str
    groups: tuple[tuple[int, ...], ...]
    operands: tuple[Shape, ...]
    times: int | None


@dataclass(frozen=True)
class _Line:
    name: str
    type: str
    operation: str
    operands: str
    attributes: str


def sent(text: str) -> tuple[Sent, ...]:
    """Every collective that a compiled program comes to, in the order of its text."""
    entry, computations = _computations(text)
    return tuple(_followed(entry, computations, 1))


def _computations(text: str) -> tuple[str, dict[str, list[_Line]]]:
    entry, found, current = "", {}, None
    for line in text.splitlines():
        if head := re.match(r"(ENTRY )?%?([\w.-]+) \(.*\{$", line):
            current = found.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            current = None
        elif current is not None and (match := re.match(r"\s+(?:ROOT )?%?([\w.-]+) = (.*)$", line)):
            current.append(_line(match[1], match[2]))
    return entry, found


def _line(name: str, rest: str) -> _Line:
    end = _closing(rest) if rest.startswith("(") else rest.index(" ")
    operation, _, rest_of_it = rest[end:].strip().partition("(")
    close = _closing(f"({rest_of_it}")
    return _Line(name, rest[:end], operation, rest_of_it[: close - 2], rest_of_it[close - 1:])


def _closing(text: str) -> int:
    """Where the bracket that opens the text is closed: just behind it."""
    depth = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[()]', text):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return len(text)


def _followed(name: str, computations: Mapping[str, list[_Line]], times: int | None) -> Iterator[Sent]:
    types = {line.name: line.type for line in computations[name]}
    for line in computations[name]:
        kind = OPERATIONS.get(line.operation.removesuffix("-start"))
        if kind:
            yield _sent(line, kind, types, times)
        elif not line.operation.endswith(("-done", "-update")):  # they name what their start has named
            turns = _turns(line)
            inner = None if times is None or turns is None else times * turns
            for called in re.findall(r"%([\w.-]+)", _unquoted(line.attributes)):
                if called in computations:
                    yield from _followed(called, computations, inner)


def _turns(line: _Line) -> int | None:
    """How often what this line calls is run; None where that depends on values."""
    if line.operation == "while":
        known = re.search(r'backend_config=\{.*"known_trip_count":\{"n":"(\d+)"\}.*\}$', line.attributes)
        return int(known[1]) if known else None
    return None if line.operation == "conditional" else 1


def _sent(line: _Line, kind: str, types: Mapping[str, str], times: int | None) -> Sent:
    shapes = [shape for name in re.findall(r"%([\w.-]+)", line.operands) for shape in _shapes(types[name])]
    if kind == "all_to_all" and len(shapes) > 1:  # one piece for each device, as so many operands
        (element, piece), *_ = shapes
        shapes = [(element, (len(shapes), *(n for n in piece if n > 1)))]
    return Sent(kind, _groups(_unquoted(line.attributes)), tuple(shapes), times)


def _unquoted(attributes: str) -> str:
    """Attributes without what is quoted in them, which may be any text of the program's author."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', attributes)


def _shapes(kind: str) -> list[Shape]:
    found = re.findall(r"([a-z]\w*)\[([\d,]*)\]", re.sub(r"/\*.*?\*/", "", kind))
    return [(element, tuple(map(int, filter(None, lengths.split(","))))) for element, lengths in found]


def _groups(attributes: str) -> tuple[tuple[int, ...], ...]:
    """Who takes part with whom. Written as lists, as a reshaped and transposed range, or as axes of a mesh."""
    if pairs := re.search(r"source_target_pairs=\{(\{[\d,{}]*\})\}", attributes):
        return _lists(pairs[1])
    if lists := re.search(r"replica_groups=\{([\d,{}]*)\}", attributes):
        return _lists(lists[1])
    if by_range := re.search(r"replica_groups=\[([\d,]+)\]<=(\[[\d,]+\](?:T\([\d,]+\))?)", attributes):
        return _tuples(_range(by_range[2]).reshape(_numbers(by_range[1])))
    if by_axes := re.search(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\((.*?)\))? \{([^}]*)\}", attributes):
        return _along_axes(*by_axes.groups())
    if "replica_groups=" in attributes:
        raise ValueError(f"cannot read who takes part: {attributes[:200]}")
    return ()


def _numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def _lists(text: str) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(_numbers(group)) for group in re.findall(r"\{([\d,]*)\}", text) if group)


def _tuples(ids: np.ndarray) -> tuple[tuple[int, ...], ...]:
    return tuple(map(tuple, ids.reshape(-1, ids.shape[-1]).tolist()))


def _range(text: str) -> np.ndarray:
    """`[4,2]T(1,0)`: 0 to 7 as a 4 × 2 array, transposed, read row by row."""
    lengths, _, order = text.partition("T")
    ids = np.arange(math.prod(_numbers(lengths))).reshape(_numbers(lengths))
    return (ids.transpose(_numbers(order)) if order else ids).reshape(-1)


def _along_axes(mesh: str, ids: str | None, along: str) -> tuple[tuple[int, ...], ...]:
    """Groups along axes of a mesh such as `'x'=4,'y'=2`; `'x':(2)2` is the second of two parts of x, of length 2."""
    sizes = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", mesh)}
    parts = {name: [] for name in sizes}
    for name, before, size in re.findall(r"'([^']*)'(?::\((\d+)\)(\d+))?", along):
        parts[name].append((int(before or 1), int(size or sizes[name])))
    lengths, chosen = [], []
    for name, size in sizes.items():
        for length, takes_part in _cut(size, sorted(parts[name])):
            chosen += [len(lengths)] if takes_part else []
            lengths.append(length)
    order = np.arange(math.prod(lengths)) if ids is None else _range(ids) if "[" in ids else np.array(_numbers(ids))
    places = np.moveaxis(order.reshape(lengths), chosen, range(len(lengths) - len(chosen), len(lengths)))
    return _tuples(places.reshape(-1, math.prod(lengths[k] for k in chosen)))


def _cut(size: int, parts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bool]]:
    """An axis as parts in order, from major to minor: the length of each, and whether it takes part."""
    begin = 1
    for before, length in parts:
        if before > begin:
            yield before // begin, False
        yield length, True
        begin = before * length
    if begin < size:
        yield size // begin, False
