"""`grader.communication`: what a function says over the wire, on the devices here or on a pod that nobody here has."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

from grader.chips.compiling import NoCompiler, Request, answer, request
from grader.chips.hlo import parsed
from grader.chips.schedule import Buffer, largest, schedule
from grader.chips.topologies import CHIPS, GIB, SOURCE, Topology, topology
from grader.programs.program import trace
from grader.programs.report import Report, report
from grader.programs.structure import Collective


@dataclass(frozen=True)
class Memory:
    """Bytes of HBM on each device, as the chip's compiler counts them.

    `peak` is the most that is held at one time: it decides whether a program fits. `arguments`, `results` and
    `temporaries` need not all be held at that time; `shared` are the results that take donated arguments' place.
    `padding` is what of the arguments is only there to fill their tiles (8 × 128 entries of float32).
    """

    arguments: int
    results: int
    temporaries: int
    shared: int
    peak: int
    padding: int

    @property
    def parts(self) -> int:
        """Arguments, results and temporaries, what is shared counted once."""
        return self.arguments + self.results + self.temporaries - self.shared

    def __str__(self) -> str:
        parts = [
            f"arguments {_gib(self.arguments)}",
            f"results {_gib(self.results)}",
            f"temporaries {_gib(self.temporaries)}",
        ]
        shared = f"; {_gib(self.shared)} of the results in donated arguments' place" if self.shared else ""
        padding = f"; {_gib(self.padding)} of the arguments is padding" if self.padding else ""
        return f"{', '.join(parts)}{shared}{padding}"


@dataclass(frozen=True)
class Refusal:
    """What the compiler says to a program that does not fit: its words, the bytes it wants, the largest arrays.

    The arrays are those of the same program compiled for as many chips of a kind with more memory, `roomier`.
    """

    words: str
    wanted: int
    largest: tuple[Buffer, ...] = ()
    roomier: str = ""


@dataclass(frozen=True)
class PodReport:
    """A program as the compiler of a pod's chips made it. All numbers are for one device.

    `collectives` come in the order in which they start; `meanwhile` of each is the FLOPs of matmuls between its start
    and the point where its result is waited for, in one turn of the loop around it. `flops` are those of all matmuls,
    loops multiplied out. `order` has the pod's devices row by row through the mesh. `seconds` is how long compiling
    took.
    """

    topology: Topology
    mesh: Mapping[str, int]
    order: tuple[int, ...]
    collectives: tuple[Collective, ...]
    flops: int
    memory: Memory | None
    refusal: Refusal | None
    seconds: float

    @property
    def fits(self) -> bool:
        return self.refusal is None

    @property
    def held(self) -> int:
        """Bytes that are held at the peak; what was wanted, where the compiler refuses."""
        if self.refusal:
            return self.refusal.wanted
        return self.memory.peak if self.memory else 0

    @property
    def bytes_sent(self) -> int:
        return sum(c.bytes_sent for c in self.collectives)

    @property
    def bytes_along(self) -> dict[str, int]:
        """Bytes that each device sends along each axis of the mesh, or along several together."""
        sums: Counter[str] = Counter()
        for c in self.collectives:
            sums[", ".join(c.axes)] += c.bytes_sent
        return dict(sums)

    @property
    def roofline(self) -> Roofline:
        """The least time that matmuls and transfers can take, from the chip's peak numbers: an estimate."""
        chip = self.topology.chip
        return Roofline(self.flops / chip.flops, self.bytes_sent / chip.link)

    def __repr__(self) -> str:
        mesh = " × ".join(f"{name}={size}" for name, size in self.mesh.items())
        lines = [f"mesh: {mesh} on {self.topology}", *self._sent(), *self._held()]
        if self.fits:
            lines.append(str(self.roofline))
        return "\n".join(lines)

    def _sent(self) -> list[str]:
        if self.refusal:
            return []
        heading = "collectives (by the chip's compiler, in the order in which they start):"
        alike = itertools.groupby(f"{c}{_beside(c)}" for c in self.collectives)
        lines = [f"  {'' if (n := len(list(group))) == 1 else f'{n} of these: '}{text}" for text, group in alike]
        total = f"per device: {self.bytes_sent:,} B sent, {self.flops:,} FLOPs in matmuls"
        return [heading if lines else f"{heading[:-1]}: none", *lines, total]

    def _held(self) -> list[str]:
        room = _gib(self.topology.chip.room)
        if self.memory is not None:
            return [f"HBM per device: {_gib(self.memory.peak)} of {room} at the peak ({self.memory})"]
        assert self.refusal is not None
        lines = [f"REFUSED: {self.refusal.words}"]
        if self.refusal.largest:
            lines.append(f"the largest arrays of the same program on {self.refusal.roomier}, which has room for it:")
            lines += [f"  {buffer}" for buffer in self.refusal.largest]
        return lines


@dataclass(frozen=True)
class Roofline:
    """Seconds at the chip's peak: of the matmuls, which no program beats, and of all bytes over one wire, one way."""

    matmuls: float
    transfers: float

    def __str__(self) -> str:
        return (
            f"roofline, an estimate and no measurement: matmuls {_time(self.matmuls)} at the peak, transfers "
            f"{_time(self.transfers)} over one wire, one way ({SOURCE})"
        )


def _beside(collective: Collective) -> str:
    return f", beside {collective.meanwhile:,} FLOPs a turn" if collective.meanwhile else ", beside nothing"


def _gib(count: int) -> str:
    return f"{count / GIB:,.2f} GiB" if count >= GIB / 100 else f"{count:,} B"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.3g} µs"


@overload
def communication(fn: Callable[..., Any], *args: Any, on: None = None, seconds: float = 300.0) -> Report: ...
@overload
def communication(fn: Callable[..., Any], *args: Any, on: str, seconds: float = 300.0) -> PodReport: ...
def communication(
    fn: Callable[..., Any], *args: Any, on: str | None = None, seconds: float = 300.0
) -> Report | PodReport:
    """Report what `fn(*args)` communicates, computes and keeps on each device; `fn` is not run.

    Args:
      fn: any function that JAX can trace; `jax.jit` is applied for you. What it is jitted with (donated arguments,
        layouts of results) counts on a pod.
      *args: arrays as they are laid out on their devices, or each a `jax.ShapeDtypeStruct` with a sharding.
      on: a pod, such as "v5e:16x16": the program is then compiled for it by the TPU's own compiler, which needs no TPU.
        The arguments' mesh has as many devices as the pod; a `jax.sharding.AbstractMesh` will do. `grader chips` lists
        pods.
      seconds: after how long compiling for a pod is stopped.

    Raises:
      NoCompiler: on a pod: the TPU's compiler is not here, or was not done in time.
      ValueError: there is no such pod, or the arguments' mesh is not of its size.

    Example:
      >>> mesh = jax.make_mesh((4,), ("x",))
      >>> array = jax.device_put(np.arange(8.0), jax.NamedSharding(mesh, P("x")))
      >>> total = jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
      >>> print(grader.communication(total, array).collectives[0])
      all_reduce of f32[2] over x: 12 B sent per device
    """
    if on is None:
        return report(trace(fn, *args), *args)
    pod = topology(on)
    asked = request(fn, args, pod)
    found = answer(asked, seconds)
    read = pod_report(pod, asked, found)
    return read if read.fits else replace(read, refusal=_with_largest(asked, read, seconds))


def pod_report(pod: Topology, asked: Request, found: Mapping[str, Any]) -> PodReport:
    """The report on what the compiler said to a request."""
    if "refusal" in found:
        words = found["refusal"].removeprefix("RESOURCE_EXHAUSTED: ")
        refusal = Refusal(words, _wanted(words))
        return PodReport(pod, asked.mesh, asked.order, (), 0, None, refusal, found["seconds"])
    memory = found["memory"]
    done = schedule(parsed(found["text"]), asked.mesh)
    held = Memory(
        memory["argument"],
        memory["output"],
        memory["temp"],
        memory["alias"],
        memory["peak_memory"],
        max(0, memory["argument"] - _logical(asked)),
    )
    return PodReport(pod, asked.mesh, asked.order, tuple(done.collectives), done.flops, held, None, found["seconds"])


@dataclass(frozen=True)
class Fit:
    """What is judged of a program for a pod, on each device: the compiler's refusal, "" where it takes the program; the
    bytes that are held at the peak, or were wanted; FLOPs of matmuls."""

    refusal: str
    held: int
    flops: int


def fit_of(asked: Request, found: Mapping[str, Any]) -> Fit:
    """What the compiler said to a request, in short."""
    read = pod_report(topology(asked.pod), asked, found)
    return Fit(read.refusal.words if read.refusal else "", read.held, read.flops)


def _wanted(words: str) -> int:
    """The bytes that a refusal says the program needs: the first size in it."""
    found = re.search(r"\((\d+(?:\.\d+)?)([KMGT])\)|[Uu]sed (\d+(?:\.\d+)?)([KMGT])", words)
    if not found:
        return 0
    size, unit = (part for part in found.groups() if part)
    return int(float(size) * 1024 ** ("KMGT".index(unit) + 1))


def _logical(asked: Request) -> int:
    """Bytes that the arguments' own entries take on one device."""
    return sum(_shard_bytes(shape, dtype, spec, asked.mesh) for shape, dtype, spec in asked.arguments)


def _shard_bytes(shape: Any, dtype: str, spec: Any, mesh: Mapping[str, int]) -> int:
    import jax.numpy as jnp

    axes = (a for part in spec if part for a in ([part] if isinstance(part, str) else part))
    return math.prod(shape) * jnp.dtype(dtype).itemsize // math.prod(mesh[a] for a in axes)


def _with_largest(asked: Request, refused: PodReport, seconds: float) -> Refusal:
    """The refusal with the program's largest arrays, found where there is room for them."""
    assert refused.refusal is not None
    for name in _roomier(refused.topology):
        try:
            pod = topology(name)
            found = answer(replace(asked, pod=name, order=pod.order(asked.mesh)), seconds)
        except (NoCompiler, ValueError):
            return refused.refusal
        if "text" in found:
            buffers = tuple(largest(parsed(found["text"])))
            return replace(refused.refusal, largest=buffers, roomier=name)
    return refused.refusal


def _roomier(pod: Topology) -> list[str]:
    """A pod with as many devices of a kind with more memory, if there is one."""
    chip = CHIPS["v5p"]
    if pod.chip.room >= chip.room:
        return []
    sides = ((x, y, pod.devices // (x * y)) for x, y in ((2, 2), (2, 4), (4, 4), (8, 8), (16, 16)))
    fitting = [side for side in sides if math.prod(side) == pod.devices and max(side) <= chip.longest]
    return [f"v5p:{'x'.join(map(str, side))}" for side in fitting[:1]]
