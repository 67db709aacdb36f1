"""Which part of an array each device holds, beside the part that it should hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grader.findings.finding import Finding
from grader.findings.relations import WrongParts

_Part = Sequence[Any]  # for each dimension, what identifies the part of it


def bounds(part: str) -> list[tuple[int, int]]:
    """Where a part of an array starts and stops in each dimension."""
    return [(int(start), int(stop)) for start, stop in re.findall(r"(\d+):(\d+)", part)]


def part_relations(found: Sequence[_Part], expected: Sequence[_Part], *, in_process: bool = False) -> Iterator[Finding]:
    """How the parts that devices hold relate to the expected ones, device by device."""
    if len({len(part) for part in (*found, *expected)}) != 1:
        return
    each = zip(zip(*found, strict=True), zip(*expected, strict=True), strict=True)
    counts = [(len({*one}), len({*other})) for one, other in each]
    if any(one != other for one, other in counts):
        odd = ((k, *pair) for k, pair in enumerate(counts) if pair[0] != pair[1])
        yield WrongParts(tuple((k, _how(one, other)) for k, one, other in odd), in_process)


def _how(parts: int, expected: int) -> Any:
    if 1 in (parts, expected):
        return "replicated" if parts == 1 else "sharded"
    return "more" if parts > expected else "fewer"


def slice_relations(found: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Finding]:
    """The same of slices that are written as text, such as 0:4, by device; `:` is a full dimension."""
    if found.keys() == expected.keys() and all(_is_sliced(part) for part in (*found.values(), *expected.values())):
        yield from part_relations([found[device] for device in expected], list(expected.values()))


def _is_sliced(part: Any) -> bool:
    listed = isinstance(part, (list, tuple)) and len(part) > 0
    return listed and all(isinstance(one, str) and re.fullmatch(r"\d*:\d*", one) for one in part)
