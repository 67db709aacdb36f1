"""The report on a compiled program: what runs, on whose behalf, and what it comes to on each device."""

from __future__ import annotations

import html
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from grader.hlo.collectives import CompiledCollective, bytes_along
from grader.hlo.lowering import CompiledProgram
from grader.hlo.meshes import NamedMesh
from grader.hlo.reading import Reading, read_module
from grader.hlo.text import parsed
from grader.hlo.totals import Count
from grader.hlo.written import WrittenCollective, reconciled

# What it means that a backend's compiler chose the collectives.
_COMPILERS = {
    "cpu": "as the CPU's compiler chose; it sends bfloat16 as float32 and adds no reduce_scatter, a TPU's differs",
    "gpu": "as the GPU's compiler chose",
    "tpu": "as the TPU's compiler chose, in the order in which they start",
}


@dataclass(frozen=True, repr=False)
class Report:
    """What a program communicates, and what it costs on each device, read from its compiled text.

    `collectives` is every collective that runs, in the program's order. `removed` is what the author wrote and the
    compiler left out, or made one of. `kernels` are the custom calls that leave a number open. `steps` is the most
    collectives that wait for one another; None on a chip, where their order is settled. `peak_bytes` is None where
    nobody says.
    """

    backend: str
    meshes: tuple[NamedMesh, ...]
    reading: Reading
    collectives: tuple[CompiledCollective, ...]
    removed: tuple[WrittenCollective, ...]
    peak_bytes: int | None

    @property
    def mesh(self) -> Mapping[str, int]:
        """The axes of the first mesh that the program names, and their sizes."""
        return self.meshes[0].sizes if self.meshes else {}

    @property
    def bytes_sent(self) -> int:
        """Bytes that the busiest device sends: the most that branches allow; a loop of unknown length counts once, a
        kernel that doesn't say what it sends as nothing. `sent` has the bounds."""
        return self.sent.number

    @property
    def sent(self) -> Count:
        """Bytes that the busiest device sends, between bounds."""
        return self.reading.work.sent

    @property
    def bytes_sent_mean(self) -> float:
        """Bytes that a device sends on average."""
        return self.reading.work.sent_mean.value

    @property
    def bytes_along(self) -> dict[str, int]:
        """Bytes that the busiest device sends along each axis of the mesh, or along several together."""
        return bytes_along(self.collectives)

    @property
    def by_bytes(self) -> tuple[CompiledCollective, ...]:
        """The collectives, the one that sends most first."""
        return tuple(sorted(self.collectives, key=lambda c: -c.bytes_sent))

    @property
    def flops(self) -> int:
        """FLOPs of the matmuls on one device: 2·m·n·k for each, loops multiplied out, the largest of branches."""
        return self.reading.work.matmul_flops.number

    @property
    def elementwise_flops(self) -> int:
        """Floating-point operations outside of matmuls on one device, one for each element of a result."""
        return self.reading.work.other_flops.number

    @property
    def kernels(self) -> tuple[str, ...]:
        return self.reading.kernels

    @property
    def steps(self) -> int | None:
        return self.reading.steps

    @cached_property
    def _open(self) -> str:
        """Why a number has a bound only, if one has."""
        reasons = [f"unknown: kernel {name}" for name in self.kernels]
        return "; ".join([*reasons, *["loops of unknown length are counted once"] * self.reading.open_loops])

    def heading(self) -> str:
        meshes = (" × ".join(f"{name}={size}" for name, size in mesh.sizes.items()) for mesh in self.meshes)
        compiled = f", compiled for {self.backend.upper()}" if self.backend else ""
        return f"mesh: {'; '.join(dict.fromkeys(meshes)) or 'one device'}{compiled}"

    def totals(self) -> str:
        work = self.reading.work
        sums = [f"{work.sent} B sent", f"{work.matmul_flops} FLOPs in matmuls", f"{work.other_flops} elementwise"]
        if work.sent.number != round(self.bytes_sent_mean):
            sums[0] += f" by the busiest ({self.bytes_sent_mean:,.6g} B on average)"
        if self.peak_bytes is not None:
            sums.append(f"peak memory {self.peak_bytes:,} B")
        text = f"per device: {', '.join(sums)}"
        return f"{text} ({self._open})" if self._open else text

    def described(self, c: CompiledCollective) -> str:
        return str(c)

    def lines(self) -> Iterator[str]:
        yield self.heading()
        if not self.collectives:
            yield "collectives: none"
        else:
            chosen = _COMPILERS.get(self.backend, "")
            yield f"collectives ({chosen}):" if chosen else "collectives:"
            alike = itertools.groupby(map(self.described, self.collectives))
            for text, group in alike:
                yield f"  {text}" if (n := len(list(group))) == 1 else f"  {n} of these: {text}"
        yield from (f"written, but not run: {one}" for one in self.removed)
        yield self.totals()

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        if not self.collectives:
            return f"<pre>{html.escape(repr(self))}</pre>"
        rows = [(c.kind, c.shape, f"{', '.join(c.axes)}{c.grouping}", *_numbers(c), c.owner) for c in self.collectives]
        head = ("collective", "array", "axes", "times", "bytes sent by the busiest device", "on average", "whose")
        above = [self.heading(), f"collectives, {_COMPILERS[self.backend]}:" if self.backend in _COMPILERS else ""]
        below = [*(f"written, but not run: {one}" for one in self.removed), self.totals()]
        return f"{_paragraphs(above)}{_table(head, rows)}{_paragraphs(below)}"

    def to_json(self) -> str:
        """The report as JSON: what a build can keep, and compare with the next one."""
        work = self.reading.work
        return json.dumps(
            {
                "backend": self.backend,
                "meshes": [dict(mesh.sizes) for mesh in self.meshes],
                "collectives": [_as_dict(c) for c in self.collectives],
                "removed": [str(one) for one in self.removed],
                "kernels": list(self.kernels),
                "bytes_sent": _bounds(work.sent),
                "bytes_sent_mean": _bounds(work.sent_mean),
                "bytes_along": self.bytes_along,
                "flops": _bounds(work.matmul_flops),
                "elementwise_flops": _bounds(work.other_flops),
                "peak_bytes": self.peak_bytes,
            },
            indent=2,
        )

    def __sub__(self, before: Report) -> Comparison:
        """What changed: `after - before`."""
        return Comparison(before, self)

    def assert_no(self, kind: str | None = None, *, axis: str | None = None) -> None:
        """Raise AssertionError if a collective of this kind, or any, runs along this axis, or along any."""
        found = [c for c in self.collectives if kind in (None, c.kind) and (axis is None or axis in c.axes)]
        if found:
            along = f" along {axis}" if axis else ""
            raise AssertionError(f"expected no {kind or 'collective'}{along}; found:{_listed(found)}")

    def assert_at_most(
        self,
        *,
        bytes: int | None = None,
        flops: int | None = None,
        peak_bytes: int | None = None,
        collectives: int | None = None,
    ) -> None:
        """Raise AssertionError if one device sends, computes, or holds more, or if more collectives run.

        A number that a loop or a kernel leaves open is not known to be at most anything.
        """
        work, runs = self.reading.work, sum(c.times or 1 for c in self.collectives)
        _at_most("bytes sent by the busiest device", work.sent, bytes, self.by_bytes)
        _at_most("FLOPs in matmuls", work.matmul_flops, flops, ())
        _at_most("collectives", _exactly(runs), collectives, self.collectives)
        if peak_bytes is not None:
            held = Count(0, math.inf, 0) if self.peak_bytes is None else _exactly(self.peak_bytes)
            _at_most("bytes of peak memory", held, peak_bytes, ())


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two reports on what was meant to be the same: which collectives came and went, and what that comes to."""

    before: Report
    after: Report

    @property
    def gone(self) -> tuple[CompiledCollective, ...]:
        return _beyond(self.before.collectives, self.after.collectives)

    @property
    def new(self) -> tuple[CompiledCollective, ...]:
        return _beyond(self.after.collectives, self.before.collectives)

    @property
    def bytes_sent(self) -> int:
        return self.after.bytes_sent - self.before.bytes_sent

    @property
    def flops(self) -> int:
        return self.after.flops - self.before.flops

    def __repr__(self) -> str:
        lines = [*(f"- {c}" for c in self.gone), *(f"+ {c}" for c in self.new)]
        pairs = {
            "B sent": (self.before.bytes_sent, self.after.bytes_sent),
            "FLOPs in matmuls": (self.before.flops, self.after.flops),
            "B of peak memory": (self.before.peak_bytes, self.after.peak_bytes),
        }
        return "\n".join([*(lines or ["the same collectives"]), *_changes(pairs)])


def _exactly(number: int) -> Count:
    return Count(number, number, number)


def _changes(pairs: Mapping[str, tuple[int | None, int | None]]) -> Iterator[str]:
    for unit, (before, after) in pairs.items():
        if before is not None and after is not None:
            yield f"per device: {before:,} → {after:,} {unit} ({after - before:+,})"


def _beyond(some: Sequence[CompiledCollective], others: Sequence[CompiledCollective]) -> tuple[CompiledCollective, ...]:
    """Those of some that others do not have, whatever line they are on."""
    left = Counter(map(_alike, others))
    beyond = []
    for c in some:
        if left[_alike(c)]:
            left[_alike(c)] -= 1
        else:
            beyond.append(c)
    return tuple(beyond)


def _alike(c: CompiledCollective) -> tuple[Any, ...]:
    return c.kind, c.axes, c.group, c.shape, c.times, c.sent


def _numbers(c: CompiledCollective) -> tuple[str, str, str]:
    return "?" if c.times is None else f"{c.times:,}", str(c.work.sent), f"{c.bytes_sent_mean:,.6g}"


def _paragraphs(lines: Sequence[str]) -> str:
    return "".join(f"<div>{html.escape(line)}</div>" for line in lines if line)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row(cells, "td") for cells in rows)
    return f"<table><thead>{row(head, 'th')}</thead><tbody>{body}</tbody></table>"


def _as_dict(c: CompiledCollective) -> dict[str, Any]:
    return {
        "kind": c.kind,
        "axes": list(c.axes),
        "group": c.group,
        "dtype": c.dtype,
        "shape": list(c.operand),
        "times": c.times,
        "optional": c.optional,
        "bytes_sent": _bounds(c.work.sent),
        "bytes_sent_mean": c.bytes_sent_mean,
        "yours": c.yours,
        "backward": c.backward,
        "operation": c.operation,
        "file": c.place.file if c.place else None,
        "line": c.place.line if c.place else None,
    }


def _bounds(count: Count) -> Any:
    """A number that is known as it is; else its bounds, None where there is no upper one."""
    if count.is_known:
        return count.number
    return {"at_least": round(count.least), "at_most": round(count.most) if count.is_bounded else None}


def _at_most(what: str, found: Count, most: int | None, largest: Sequence[CompiledCollective]) -> None:
    if most is not None and found.most > most:
        raise AssertionError(f"expected at most {most:,} {what}; found {found}{_listed(largest[:5])}")


def _listed(collectives: Sequence[CompiledCollective]) -> str:
    return "".join(f"\n  {c}" for c in collectives)


def report(program: CompiledProgram) -> Report:
    """The report on a compiled program."""
    module, scheduled = parsed(program.text), program.backend != "cpu"
    reading = read_module(module, program.meshes, scheduled=scheduled, lines=program.lines)
    if program.written is None:
        return Report(program.backend, program.meshes, reading, reading.collectives, (), program.peak_bytes)
    return Report(
        program.backend, program.meshes, reading, *reconciled(reading.collectives, program.written), program.peak_bytes
    )
