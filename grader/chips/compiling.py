"""Asks the TPU's compiler, and keeps what it said: the same program for the same pod is compiled once.

Each compilation is a process of its own with a time limit. What it said is kept by content in the student's cache.
What the lessons ask for is beside this file in `stored/`, so that they can be read without the compiler. A program's
bytes differ between versions of JAX; there it is also found by what its author wrote.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
from jax import export
from jax.extend.mlir import ir
from jax.sharding import NamedSharding

from grader.chips.topologies import Topology
from grader.hlo.lowering import NoReport, jitted, unwrapped
from grader.hlo.sources import SourceLine
from grader.hlo.written import WrittenCollective, lines_in, written_in
from grader.jax_versions import mlir_context
from grader.programs.operations import functions_in, meshes_in, spec_of_argument, specs_of_results
from grader.programs.program import without_places

CACHE = "MANY_DEVICES_CACHE"  # the folder for what was compiled, where somebody has chosen one
STORED = Path(__file__).parent / "stored"
ALONE = Path(__file__).parent / "alone.py"
# Said to libtpu, which would otherwise look for its chips, let one process at a time load it, and fill /tmp with logs.
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "JAX_TRACEBACK_FILTERING": "off",  # an error then ends with what it is
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5e-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_LOG_DIR": "disabled",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_MIN_LOG_LEVEL": "3",
}


class NoCompiler(RuntimeError):
    """The TPU's compiler cannot be had, or said nothing in time; the text says what to do, and is all that shows."""

    def _render_traceback_(self) -> list[str]:  # by this name IPython asks for it
        return [f"NoCompiler: {self}"]


@dataclass(frozen=True)
class Request:
    """A program for a pod: its bytes, its arguments (shape, dtype, spec) leaf by leaf, which of them are given away.

    `mesh` has the sizes of the axes, `order` the pod's devices row by row through it; `written` is the source of the
    function and of those that it calls by name, "" where it cannot be read. `results` has the spec of each result,
    None where the compiler chooses; () if it chooses for all. `collectives` are those that its author wrote, `lines`
    where each of its operations is, forward and backward, as far as one line alone has it, `meshes` all that it names.
    """

    program: bytes = field(repr=False)
    pod: str
    mesh: Mapping[str, int]
    order: tuple[int, ...]
    arguments: tuple[Any, ...]
    donated: tuple[int, ...]
    written: str = ""
    results: tuple[Any, ...] = ()
    collectives: tuple[WrittenCollective, ...] = field(default=(), compare=False, repr=False)
    lines: Mapping[tuple[str, bool], SourceLine] = field(default_factory=dict, compare=False, repr=False)
    meshes: tuple[Mapping[str, int], ...] = field(default=(), compare=False, repr=False)

    @property
    def facts(self) -> dict[str, Any]:
        """All but the program, as JSON."""
        return {
            "pod": self.pod,
            "mesh": dict(self.mesh),
            "order": self.order,
            "arguments": self.arguments,
            "donated": self.donated,
            **({"results": self.results} if self.results else {}),
        }

    @property
    def key(self) -> str:
        """Names the program, byte for byte."""
        return _digest(self.facts, self.program)

    @property
    def key_of_source(self) -> str:
        """Names the program by its source, whatever the versions of JAX and of Python."""
        return _digest(self.facts | {"order": ()}, self.written.encode())


def _digest(facts: Mapping[str, Any], content: bytes) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode() + content).hexdigest()


def request(
    fn: Callable[..., Any], args: Sequence[Any], pod: Topology, kwargs: Mapping[str, Any] | None = None
) -> Request:
    """`fn(*args, **kwargs)` as a program for a pod, which nothing is run for.

    Args:
      fn: any function that JAX can trace. What it is jitted with counts.
      args, kwargs: arrays, or shapes (`jax.ShapeDtypeStruct`). They, or what `fn` is jitted with, say how they are
        sharded over a mesh of the pod's size.
      pod: for which.

    Raises:
      ValueError: the program is on no mesh, its arguments are on several, or the mesh is not of the pod's size.
    """
    wrapped, args = jitted(fn, args)
    own, named = jax.tree.map(_shape, (tuple(args), dict(kwargs or {})))
    traced = unwrapped(wrapped.trace(*own, **named))
    unchecked = [export.DisabledSafetyCheck.custom_call("ragged_all_to_all")]  # it is compiled by this very JAX
    with without_places():
        try:
            exported = export.export(_AlreadyTraced(traced), platforms=["tpu"], disabled_checks=unchecked)()
        except (NotImplementedError, ValueError) as error:
            raise NoReport(f"JAX cannot lower this program for a TPU here: {error}") from error
    meshes, specs, results = _shardings(exported)
    return Request(
        bytes(_flat(exported).serialize()),
        pod.name,
        meshes[0],
        pod.order(meshes[0]),
        tuple(
            (list(aval.shape), str(aval.dtype), [] if spec is None else spec)
            for aval, spec in zip(exported.in_avals, specs, strict=True)
        ),
        tuple(k for k, info in enumerate(jax.tree.leaves(traced.args_info)) if info.donated),
        "\n".join(_sources(inspect.unwrap(fn), set())),
        results,
        tuple(written_in(traced.jaxpr)),
        lines_in(traced.jaxpr),
        meshes,
    )


def _shape(leaf: Any) -> Any:
    """An array's shape with its sharding on a mesh, if it has one; what is no array stays what it is."""
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
        return leaf
    sharding = getattr(leaf, "sharding", None)
    return jax.ShapeDtypeStruct(
        leaf.shape, leaf.dtype, sharding=sharding if isinstance(sharding, NamedSharding) else None
    )


def _shardings(exported: export.Exported) -> tuple[tuple[dict[str, int], ...], tuple[Any, ...], tuple[Any, ...]]:
    """How a program is sharded, by its own text: there, what a function is jitted with and its arguments agree.

    Returns its meshes, that of its arguments first, and the spec of each argument and of each result as JSON, None
    where it has none.

    Raises:
      ValueError: it is on no mesh, or its arguments are on several.
    """
    with mlir_context():
        module = ir.Module.parse(exported.mlir_module())
        main = functions_in(module)["main"]
        meshes = [mesh for mesh in meshes_in(module).values() if mesh]
        given = map(spec_of_argument, main.regions[0].blocks[0].arguments)
        kept = dict(zip(exported.module_kept_var_idx, given, strict=True))
        results = specs_of_results(main)
    if not meshes:
        raise ValueError(
            "no argument says how it is sharded over a mesh. Give shapes with shardings, such as "
            "`jax.ShapeDtypeStruct((4096, 4096), jnp.bfloat16, sharding=NamedSharding(mesh, P('x')))`."
        )
    specs = [kept.get(k) for k in range(len(exported.in_avals))]
    named = {axis for spec in (*specs, *results) for axes in spec or () for axis in axes}
    if not named <= {*meshes[0]}:
        raise ValueError(
            "expected arguments and results on one mesh to compile for a pod; found "
            f"{' and '.join(str(mesh) for mesh in meshes if named & {*mesh})}"
        )
    return tuple(meshes), tuple(map(_as_json, specs)), tuple(map(_as_json, results))


def _as_json(spec: Sequence[Sequence[str]] | None) -> Any:
    """A spec as `spec_as_json` has it, without the dimensions at its end that are not sharded."""
    if spec is None:
        return None
    last = max((k for k, axes in enumerate(spec, 1) if axes), default=0)
    return [axes[0] if len(axes) == 1 else list(axes) or None for axes in spec[:last]]


@dataclass(frozen=True)
class _AlreadyTraced:
    """What `jax.jit` returns, as far as `jax.export` asks: for a function that was traced before."""

    traced: Any

    def __call__(self) -> Any:
        raise NotImplementedError("it is compiled, not run")

    def trace(self) -> Any:
        return self.traced

    def lower(self, **options: Any) -> Any:
        return self.traced.lower(**options)

    def eval_shape(self) -> Any:
        return self.traced.out_info


def _flat(exported: export.Exported) -> export.Exported:
    """The same, of arrays in a row: not every pytree can be written down, and none of them matters to the compiler."""
    given, returned = (None,) * len(exported.in_avals), (None,) * len(exported.out_avals)
    leaf: Callable[[Any], bool] = lambda part: part is None  # noqa: E731
    in_tree = jax.tree.structure((given, {}), is_leaf=leaf)
    return replace(exported, in_tree=in_tree, out_tree=jax.tree.structure(returned, is_leaf=leaf))


def _sources(fn: Any, seen: set[str]) -> list[str]:
    """The source of a function, and of the functions of its module that it names, in the order of their names."""
    if not inspect.isfunction(fn) or fn.__qualname__ in seen:
        return []
    seen.add(fn.__qualname__)
    try:
        own = inspect.getsource(fn)
    except (OSError, TypeError):
        return []
    named = sorted(set(re.findall(r"\w+", own)) & set(fn.__globals__))
    others = [inspect.unwrap(fn.__globals__[name]) for name in named if callable(fn.__globals__[name])]
    same = [other for other in others if getattr(other, "__module__", None) == fn.__module__]
    return [own, *(text for other in same for text in _sources(other, seen))]


def spec_as_json(spec: Any) -> list[Any]:
    """A spec as a request has it: names, lists of names, and None."""
    return [list(part) if isinstance(part, tuple) else part for part in spec]


def answer(asked: Request, seconds: float = 300.0) -> dict[str, Any]:
    """What the compiler says to a request: kept, stored with the course, or asked for now.

    Raises:
      NoCompiler: it cannot be had here, ended without a word, or took longer than so many seconds.
    """
    if (known := known_answer(asked)) is not None:
        return known
    found = _compile(asked, seconds)
    for place in _stored(asked) if _cache() == STORED else [_kept(asked)]:  # stored: for the course itself
        keep_answer(place, found)
    return found


def known_answer(asked: Request) -> Any:
    """What the compiler has said to a request before, here or to the course's authors; None where that is not known.

    Where there is no compiler, an answer to the same source will do.
    """
    same, *alike = _stored(asked)
    places = [_kept(asked), same, *(alike if libtpu() is None else [])]
    return next((known for place in places if (known := kept_answer(place)) is not None), None)


def _kept(asked: Request) -> Path:
    return _cache() / f"{asked.key}.json.gz"


def _stored(asked: Request) -> list[Path]:
    """Where an answer stands in the course: by the program itself, and by its source where that is known."""
    return [STORED / f"{key}.json.gz" for key in (asked.key, *([asked.key_of_source] if asked.written else []))]


def kept_answer(place: Path) -> Any:
    """An answer that was kept; None where there is none, or a damaged one."""
    try:
        return json.loads(gzip.decompress(place.read_bytes()))
    except (OSError, EOFError, ValueError, zlib.error):
        return None


def keep_answer(place: Path, found: Any) -> None:
    """Keep an answer: whole, or not at all. Where nothing can be written, nothing is kept."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as unfinished:
            unfinished.write(gzip.compress(json.dumps(found).encode(), mtime=0))
        os.replace(unfinished.name, place)
    except OSError:
        pass


def _cache() -> Path:
    if chosen := os.environ.get(CACHE):
        return Path(chosen)
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return base / "many-devices-jax" / "chips" / (libtpu_version() or "none")


def _compile(asked: Request, seconds: float) -> dict[str, Any]:
    library = libtpu()
    if library is None:
        raise NoCompiler(f"This program is not among the course's stored compilations. {how_to_get()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "request.json").write_text(json.dumps(asked.facts))
        (folder / "program").write_bytes(asked.program)
        environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")}
        environment["JAX_ENABLE_X64"] = str(int(jax.config.jax_enable_x64))  # type: ignore[attr-defined]  # made at run time
        command = [sys.executable, "-P", str(ALONE), name]
        try:
            ended = subprocess.run(
                command,
                env=environment | ENVIRONMENT | {"TPU_LIBRARY_PATH": str(library)},
                capture_output=True,
                text=True,
                timeout=seconds,
            )
        except PermissionError:
            raise NoCompiler(
                "The compiler is a process of its own, and none may be started here: as in grading."
            ) from None
        except subprocess.TimeoutExpired:
            raise NoCompiler(
                f"compiling for {asked.pod} was not done after {seconds:g} seconds, and was stopped. Try fewer layers "
                "or fewer chips, or allow it longer: `seconds=900`."
            ) from None
        try:
            return json.loads((folder / "answer.json").read_text())
        except FileNotFoundError:
            raise NoCompiler(
                f"the compiler for {asked.pod} ended with status {ended.returncode}: {_last_words(ended.stderr)}"
            ) from None


def _last_words(errors: str) -> str:
    """The line of an error that says most: the last one of a traceback, or what the compiler failed on."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    failed = [line for line in lines if "Check failed" in line]
    return (failed or lines or ["it said nothing"])[-1 if not failed else 0][:600]


def libtpu() -> Path | None:
    """The TPU's compiler on this machine: where somebody says, or `make tpu` put it, or pip; None where it is not."""
    if chosen := os.environ.get("TPU_LIBRARY_PATH"):
        return Path(chosen) if Path(chosen).is_file() else None
    found = importlib.util.find_spec("libtpu")
    folders = [Path(sys.prefix) / "tpu" / "libtpu", *map(Path, (found and found.submodule_search_locations) or ())]
    return next((place for folder in folders if (place := folder / "libtpu.so").is_file()), None)


def libtpu_version() -> str:
    """The version of the TPU's compiler here; "" where there is none."""
    library = libtpu()
    if library is None:
        return ""
    beside = importlib.metadata.distributions(name="libtpu", path=[str(library.parents[1])])
    return next((found.version for found in beside), "unknown")


def wanted() -> str:
    """The version of libtpu that goes with this JAX, as JAX says it itself."""
    told = (name for name in importlib.metadata.requires("jax") or () if name.startswith("libtpu"))
    return next((name.partition(";")[0].strip() for name in told), "libtpu")


def how_to_get() -> str:
    """What to do where there is no compiler."""
    if sys.platform != "linux":
        return "The TPU's compiler exists for Linux on x86-64 only; in Colab it can be had."
    return (
        f"The TPU's compiler is not here: `pip install --no-deps --target {Path(sys.prefix) / 'tpu'} '{wanted()}'` "
        "(200 MB) puts it where JAX itself takes no notice of it."
    )
