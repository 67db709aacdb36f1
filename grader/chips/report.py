"""`grader.communication`: what a function says over the wire, on the devices here or on a pod that nobody here has."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, overload

from grader.chips.buffers import Buffer, largest
from grader.chips.compiling import NoCompiler, Request, answer, request
from grader.chips.topologies import CHIPS, GIB, SOURCE, Topology, topology
from grader.hlo.collectives import CompiledCollective
from grader.hlo.lowering import CompiledProgram, NoReport, compiled_program
from grader.hlo.reading import UNREAD
from grader.hlo.report import Report, report
from grader.hlo.sources import traced_lines
from grader.hlo.text import parsed


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
class CompilerRefusal:
    """What the compiler says to a program that does not fit: its words, the bytes it wants, the largest arrays.

    The arrays are those of the same program compiled for as many chips of a kind with more memory, `roomier`.
    """

    words: str
    wanted: int
    largest: tuple[Buffer, ...] = ()
    roomier: str = ""


@dataclass(frozen=True, repr=False)
class PodReport(Report):
    """A program as the compiler of a pod's chips made it.

    `collectives` come in the order in which they start; `overlappable_flops` of each is the FLOPs of matmuls between
    its start and the point where its result is waited for, in one iteration of the loop around it. `order` has the
    pod's devices row by row through the mesh. `seconds` is how long compiling took.
    """

    topology: Topology
    order: tuple[int, ...]
    memory: Memory | None
    refusal: CompilerRefusal | None
    seconds: float

    @property
    def fits(self) -> bool:
        return self.refusal is None

    @property
    def held(self) -> int:
        """Bytes that are held at the peak; what was wanted, where the compiler refuses."""
        return self.refusal.wanted if self.refusal else self.peak_bytes or 0

    @property
    def roofline(self) -> Roofline:
        """The least time that matmuls and transfers can take, from the chip's peak numbers: an estimate."""
        chip = self.topology.chip
        return Roofline(self.flops / chip.flops, self.bytes_sent / chip.link)

    def heading(self) -> str:
        return f"{super().heading()}, on {self.topology}"

    def lines(self) -> Iterator[str]:
        if self.refusal is not None:
            yield self.heading()
            yield f"REFUSED: {self.refusal.words}"
            if self.refusal.largest:
                yield f"the largest arrays of the same program on {self.refusal.roomier}, which has room for it:"
                yield from (f"  {buffer}" for buffer in self.refusal.largest)
            return
        yield from super().lines()
        if self.memory is not None:
            room = _gib(self.topology.chip.room)
            yield f"HBM per device: peak memory {_gib(self.memory.peak)} of {room} ({self.memory})"
        if self.sent.is_bounded and self.reading.work.matmul_flops.is_bounded:
            yield str(self.roofline)

    def _refuse_claims(self) -> None:
        if self.refusal is not None:
            raise AssertionError(f"nothing is known of a program that the compiler refuses: {self.refusal.words}")

    def as_dict(self) -> dict[str, Any]:
        """The report as plain types: a `refusal` leaves the rest unknown."""
        memory = asdict(self.memory) if self.memory else None
        return super().as_dict() | {
            "pod": self.topology.name,
            "memory": memory,
            "refusal": self.refusal.words if self.refusal else None,
        }

    def described(self, c: CompiledCollective) -> str:
        overlapping = f"{c.overlappable_flops:,} FLOPs an iteration" if c.overlappable_flops else "nothing"
        return f"{c}, overlaps with {overlapping}"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


@dataclass(frozen=True)
class Roofline:
    """Seconds at the chip's peak speed: of the matmuls, and of all bytes over one link in one direction."""

    matmuls: float
    transfers: float

    def __str__(self) -> str:
        return (
            f"roofline, an estimate and no measurement: matmuls {_time(self.matmuls)} at peak speed, "
            f"transfers {_time(self.transfers)} over one link in one direction ({SOURCE})"
        )


def _gib(count: int) -> str:
    return f"{count / GIB:,.2f} GiB" if count >= GIB / 100 else f"{count:,} B"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.3g} µs"


@overload
def communication(
    fn: Any, /, *args: Any, on: None = None, mesh_axes: Any = None, seconds: float = 300.0, **kwargs: Any
) -> Report: ...
@overload
def communication(
    fn: Any, /, *args: Any, on: str, mesh_axes: Any = None, seconds: float = 300.0, **kwargs: Any
) -> PodReport: ...
def communication(
    fn: Any, /, *args: Any, on: str | None = None, mesh_axes: Any = None, seconds: float = 300.0, **kwargs: Any
) -> Report | PodReport:
    """Report what `fn(*args, **kwargs)` communicates, computes, and keeps on each device; `fn` is compiled, not run.

    Args:
      fn: any function that `jax.jit` takes, jitted or not. What it is jitted with (static and donated arguments,
        shardings of results) counts. Or, without arguments, a `jax.stages.Lowered` or `Compiled`; the text of a
        compiled program, as `compiled.as_text()` gives it; or the path of a file with such a text.
      *args: whatever `jax.jit(fn).lower` takes: arrays, NumPy's too, or a `jax.ShapeDtypeStruct` with a
        sharding for each, in pytrees of any kind.
      on: a pod, such as "v5e:16x16": the program is then compiled for it by the TPU's own compiler, which needs no TPU.
        The arguments' mesh has as many devices as the pod; a `jax.sharding.AbstractMesh` will do. `grader chips` lists
        pods.
      mesh_axes: the sizes of the mesh's axes by name, for a text which doesn't name them itself.
      seconds: after how long compiling for a pod is stopped.
      **kwargs: more arguments, by name.

    Raises:
      NoCompiler: on a pod: the TPU's compiler is not here, or was not done in time.
      NoReport (a ValueError): `fn` is nothing that can be compiled, or the backend's compiler does not take it.
      ValueError: there is no such pod, or the arguments' mesh is not of its size.

    Example:
      >>> mesh = jax.make_mesh((4,), ("x",))
      >>> array = jax.device_put(np.arange(8.0), jax.NamedSharding(mesh, P("x")))
      >>> total = jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
      >>> print(grader.communication(total, array).collectives[0].bytes_sent)
      12
    """
    if on is None:
        return report(compiled_program(fn, args, kwargs, mesh_axes))
    if not isinstance(on, str):
        raise NoReport(
            f'`on` names a pod, such as "v5e:2x4"; found {on!r}. If the function has an argument of that name, pass '
            "`functools.partial(fn, on=...)`."
        )
    if not isinstance(seconds, (int, float)):
        raise NoReport(f"`seconds` is how long compiling may take; found {seconds!r}")
    if not callable(fn) or hasattr(fn, "memory_analysis"):
        raise NoReport("a program that is lowered or compiled can't be compiled for a pod: pass its function")
    pod = topology(on)
    asked = request(fn, args, pod, kwargs)
    found = answer(asked, seconds)
    read = pod_report(pod, asked, found)
    return read if read.fits else replace(read, refusal=_with_largest(asked, read, seconds))


def pod_report(pod: Topology, asked: Request, found: Mapping[str, Any]) -> PodReport:
    """The report on what the compiler said to a request."""
    meshes = asked.meshes or (asked.mesh,)
    if "refusal" in found:
        words = found["refusal"].removeprefix("RESOURCE_EXHAUSTED: ")
        refusal = CompilerRefusal(words, _wanted(words))
        return PodReport("tpu", meshes, UNREAD, (), (), None, pod, asked.order, None, refusal, found["seconds"])
    memory = found["memory"]
    held = Memory(
        memory["argument"],
        memory["output"],
        memory["temp"],
        memory["alias"],
        memory["peak_memory"],
        max(0, memory["argument"] - _logical(asked)),
    )
    done = report(
        CompiledProgram(parsed(found["text"]), "tpu", meshes, asked.collectives, held.peak, traced_lines(asked.lines))
    )
    parts = (done.backend, meshes, done.reading, done.collectives, done.removed, done.peak_bytes)
    return PodReport(*parts, pod, asked.order, held, None, found["seconds"])


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


_KEYS = {"key<fry>": 8, "key<rbg>": 16, "key<urbg>": 16}  # bytes of a random key, which is no dtype of NumPy's


def _shard_bytes(shape: Any, dtype: str, spec: Any, mesh: Mapping[str, int]) -> int:
    import jax.numpy as jnp

    axes = (a for part in spec if part for a in ([part] if isinstance(part, str) else part))
    size = _KEYS.get(dtype) or jnp.dtype(dtype).itemsize
    return math.prod(shape) * size // math.prod(mesh[a] for a in axes)


def _with_largest(asked: Request, refused: PodReport, seconds: float) -> CompilerRefusal:
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
