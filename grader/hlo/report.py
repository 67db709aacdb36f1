"""The report on a compiled program: what runs, on whose behalf, and what it comes to on each device."""

from __future__ import annotations

import html
import itertools
import json
import math
import numbers
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from grader.hlo.collectives import CompiledCollective
from grader.hlo.lowering import CompiledProgram
from grader.hlo.reading import Reading, read_module
from grader.hlo.text import NotHLO
from grader.hlo.totals import Count, mean_of
from grader.hlo.written import WrittenCollective, reconciled
from grader.programs.collectives import COLLECTIVE_KINDS

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
    meshes: tuple[Mapping[str, int], ...]
    reading: Reading
    collectives: tuple[CompiledCollective, ...]
    removed: tuple[WrittenCollective, ...]
    peak_bytes: int | None

    @property
    def mesh(self) -> Mapping[str, int]:
        """The axes of the first mesh that the program names, and their sizes."""
        return self.meshes[0] if self.meshes else {}

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
        return {axes: count.number for axes, count in self.reading.work.sent_along.items()}

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
        """Which kernels leave a number open."""
        return "; ".join(f"unknown: kernel {name}" for name in self.kernels)

    def heading(self) -> str:
        meshes = (" × ".join(f"{name}={size}" for name, size in mesh.items()) for mesh in self.meshes)
        compiled = f", compiled for {self.backend.upper()}" if self.backend else ""
        devices = self.reading.work.devices
        unnamed = f"{devices} devices, whose axes `mesh_axes=` names" if devices > 1 else "one device"
        return f"mesh: {'; '.join(dict.fromkeys(meshes)) or unnamed}{compiled}"

    def totals(self) -> str:
        work = self.reading.work
        sums = [work.sent.of("B sent"), work.matmul_flops.of("FLOPs in matmuls"), work.other_flops.of("elementwise")]
        if work.sent.number != round(self.bytes_sent_mean):
            sums[0] = f"{work.sent.of('B sent by the busiest')}, {mean_of(self.bytes_sent_mean)} B on average"
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
        rows = [(c.kind, c.shape, f"{', '.join(c.axes)}{c.grouping}", *_numbers(c), c.about) for c in self.collectives]
        head = ("collective", "array", "axes", "times", "sent by the busiest device", "on average", "whose")
        above = [self.heading(), f"collectives, {_COMPILERS[self.backend]}:" if self.backend in _COMPILERS else ""]
        below = [*(f"written, but not run: {one}" for one in self.removed), self.totals()]
        return f"{_paragraphs(above)}{_table(head, rows)}{_paragraphs(below)}"

    def to_json(self) -> str:
        """The report as JSON: what a build can keep, and compare with the next one."""
        return json.dumps(self.as_dict(), indent=2)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain types."""
        work = self.reading.work
        return {
            "backend": self.backend,
            "meshes": [dict(mesh) for mesh in self.meshes],
            "collectives": [_as_dict(c) for c in self.collectives],
            "removed": [str(one) for one in self.removed],
            "kernels": list(self.kernels),
            "bytes_sent": _bounds(work.sent),
            "bytes_sent_mean": _bounds(work.sent_mean),
            "bytes_along": {axes: _bounds(count) for axes, count in work.sent_along.items()},
            "flops": _bounds(work.matmul_flops),
            "elementwise_flops": _bounds(work.other_flops),
            "peak_bytes": self.peak_bytes,
        }

    def _refuse_claims(self) -> None:
        """Raise AssertionError where the program was not compiled: nothing is known of it."""

    def __sub__(self, before: Report) -> Comparison:
        """What changed: `after - before`."""
        return Comparison(before, self) if isinstance(before, Report) else NotImplemented

    def assert_no(self, kind: str | None = None, *, axis: str | None = None) -> None:
        """Raise AssertionError if a collective of this kind, or any, runs along this axis, or along any.

        Raises:
          ValueError: there is no such kind of collective, or no mesh of the program has such an axis.
        """
        self._refuse_claims()
        axes = {name for mesh in self.meshes for name in mesh}
        if kind not in (None, *COLLECTIVE_KINDS):
            raise ValueError(f"expected a kind of collective: {', '.join(COLLECTIVE_KINDS)}; found {kind!r}")
        if axis is not None and axis not in axes:
            raise ValueError(f"expected an axis of the program's mesh: {', '.join(sorted(axes))}; found {axis!r}")
        found = [c for c in self.collectives if kind in (None, c.kind) and (axis is None or axis in c.axes)]
        if found:
            along = f" along {axis}" if axis else ""
            raise AssertionError(f"expected no {kind or 'collective'}{along}; found:{_listed(found)}")
        if kind is None and self.kernels and not self.sent.is_bounded:
            raise AssertionError(f"expected no collective; found kernels that may communicate: {self._open}")

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
        self._refuse_claims()
        work = self.reading.work
        _at_most("bytes sent by the busiest device", work.sent, bytes, self.by_bytes)
        _at_most("FLOPs in matmuls", work.matmul_flops, flops, ())
        _at_most("collectives", work.runs, collectives, self.collectives)
        if peak_bytes is not None:
            _at_most("bytes of peak memory", _peak(self), peak_bytes, ())


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
        works = self.before.reading.work, self.after.reading.work
        peaks = (_peak(report) for report in (self.before, self.after))
        changes = [
            _change("B sent", *(work.sent for work in works)),
            _change("FLOPs in matmuls", *(work.matmul_flops for work in works)),
            _change("B of peak memory", *peaks),
        ]
        headings = [report.heading() for report in (self.before, self.after)]
        compared = [f"before: {headings[0]}", f"after: {headings[1]}"] if headings[0] != headings[1] else []
        return "\n".join([*compared, *(lines or ["the same collectives"]), *changes])


def _change(unit: str, before: Count, after: Count) -> str:
    by = f" ({after.number - before.number:+,})" if before.is_known and after.is_known else ""
    return f"per device: {before.of(unit)} → {after.of(unit)}{by}"


def _peak(report: Report) -> Count:
    peak = report.peak_bytes
    return Count(0, math.inf, 0) if peak is None else Count(peak, peak, peak)


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
    return "?" if c.times is None else f"{c.times:,}", c.work.sent.of("B"), f"{mean_of(c.bytes_sent_mean)} B"


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
        "bytes_sent_mean": _bounds(c.work.sent_mean),
        "yours": c.yours if c.yours or c.operation or c.is_named else None,
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
    if most is not None and not isinstance(most, numbers.Real):
        raise TypeError(f"expected a number, the most {what}; found {most!r}")
    if most is not None and found.most > most:
        raise AssertionError(f"expected at most {most:,} {what}; found {found.of(what)}:{_listed(largest[:5])}")


def _listed(collectives: Sequence[CompiledCollective]) -> str:
    return "".join(f"\n  {c}" for c in collectives)


def report(program: CompiledProgram) -> Report:
    """The report on a compiled program."""
    module, scheduled = program.module, program.backend != "cpu"
    try:
        reading = read_module(module, program.meshes, scheduled=scheduled, lines=program.lines)
    except (KeyError, IndexError, ValueError, StopIteration) as error:
        raise NotHLO(f"expected the whole text of a compiled program; this one breaks off: {error!r}") from error
    if program.written is None:
        named = tuple(replace(c, is_named=bool(c.operation)) for c in reading.collectives)
        return Report(program.backend, program.meshes, reading, named, (), program.peak_bytes)
    return Report(
        program.backend, program.meshes, reading, *reconciled(reading.collectives, program.written), program.peak_bytes
    )
