"""From what people have to a compiled program: a function and its arguments, JAX's stages, or a text of HLO."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
from jax.sharding import AbstractMesh, Mesh, NamedSharding

from grader.hlo.sources import LineFinder
from grader.hlo.text import Module, parsed
from grader.hlo.written import WrittenCollective, written_in
from grader.programs.execution import peak_bytes
from grader.programs.operations import meshes_in

_IN_TEXT = re.compile(r"mesh\[((?:'\w+'=\d+,?)+)\]")

Meshes = tuple[Mapping[str, int], ...]  # the sizes of the axes of each


@dataclass(frozen=True)
class CompiledProgram:
    """A compiled program, for which backend, the meshes that name its axes, and what its author wrote.

    `written` is None where only compiled text is known. `peak_bytes` is what one device holds at the peak, None where
    nobody says. `lines` knows where operations were written, where the text does not.
    """

    module: Module
    backend: str
    meshes: Meshes
    written: tuple[WrittenCollective, ...] | None
    peak_bytes: int | None
    lines: LineFinder | None = None


class NoReport(ValueError):
    """No report can be made; the text says what was expected, what was found, and what to do."""


def compiled_program(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any], mesh_axes: Any = None) -> CompiledProgram:
    """The compiled program of `fn(*args, **kwargs)`, which is not run.

    Args:
      fn: a function, jitted or not (with `jax.jit` or `nnx.jit`); a `jax.stages.Lowered` or `Compiled`; the text of a
        compiled program, or the path of a file that holds it.
      args, kwargs: whatever `jax.jit(fn).lower` takes; nothing for what is no function.
      mesh_axes: names the axes where the program itself does not: a mesh, or its axes' sizes by name.

    Raises:
      NoReport: there is nothing to compile, or XLA's compiler does not take the program.
    """
    own = _named(mesh_axes)
    is_stage = hasattr(fn, "memory_analysis") or hasattr(fn, "as_text")
    if (args or kwargs) and (is_stage or isinstance(fn, (str, os.PathLike))):
        given = [*(["arguments"] if args else []), *(f"`{name}=`" for name in kwargs)]
        raise NoReport(f"a program that is lowered or compiled takes no arguments; found {', '.join(given)}")
    if isinstance(fn, (str, os.PathLike)):
        return _of_text(_text(fn), own)
    if hasattr(fn, "memory_analysis"):
        return _of_executable(unwrapped(fn), own or _meshes_of(fn), None)
    if hasattr(fn, "as_text"):
        return _of_lowered(unwrapped(fn), own, None)
    if not callable(fn):
        raise NoReport(
            "expected a function, a `jax.stages.Lowered` or `Compiled`, HLO text, or the path of a file with it; found "
            f"{type(fn).__name__}"
        )
    if own:
        raise NoReport("`mesh_axes` names the axes of a text; a function's arguments say which mesh they are on")
    _refuse_abstract((args, kwargs))
    wrapped, args = jitted(fn, args)
    if not hasattr(wrapped, "trace"):  # jax.pmap
        return _of_lowered(unwrapped(wrapped.lower(*args, **kwargs)), own, None)
    traced = unwrapped(wrapped.trace(*args, **kwargs))
    try:
        lowered = traced.lower()
    except Exception as error:  # of what kind depends on what the backend lacks
        raise NoReport(f"JAX cannot lower this program for {jax.default_backend()}: {_first_line(error)}") from error
    return _of_lowered(lowered, own, tuple(written_in(traced.jaxpr)))


def jitted(fn: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """A function as `jax.jit` returns it, and its arguments: the first of a jitted method is its object."""
    if inspect.ismethod(fn) and hasattr(fn.__func__, "lower"):
        return fn.__func__, (fn.__self__, *args)
    return (fn if hasattr(fn, "lower") else jax.jit(fn)), args


def unwrapped(stage: Any) -> Any:
    """JAX's own stage of a program where Flax wraps it."""
    return next((getattr(stage, name) for name in ("traced", "lowered", "compiled") if hasattr(stage, name)), stage)


def _of_lowered(lowered: Any, own: Meshes, written: tuple[WrittenCollective, ...] | None) -> CompiledProgram:
    meshes = own or tuple(filter(None, meshes_in(lowered.compiler_ir()).values()))
    try:
        executable = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        raise NoReport(
            f"XLA's compiler for {jax.default_backend()} does not take this program: {_first_line(error)}. "
            'Another backend may: `on="v5e:2x4"` asks the TPU\'s compiler.'
        ) from None
    return _of_executable(executable, meshes, written)


def _of_executable(executable: Any, meshes: Meshes, written: tuple[WrittenCollective, ...] | None) -> CompiledProgram:
    held = None if executable.memory_analysis() is None else peak_bytes(executable)
    return CompiledProgram(parsed(executable.as_text()), jax.default_backend(), meshes, written, held)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _meshes_of(executable: Any) -> Meshes:
    """The meshes of a compiled program's arguments and results."""
    shardings = jax.tree.leaves((executable.input_shardings, executable.output_shardings))
    meshes = dict.fromkeys(s.mesh for s in shardings if isinstance(s, NamedSharding))
    return tuple(dict(mesh.shape) for mesh in meshes)


def _meshes_in_text(text: str) -> Meshes:
    """The meshes that compiled text names by axes of the program's own: XLA calls its own axis_0, axis_1, …"""
    listed = (dict(re.findall(r"'(\w+)'=(\d+)", mesh)) for mesh in dict.fromkeys(_IN_TEXT.findall(text)))
    return tuple(
        {name: int(size) for name, size in sizes.items()}
        for sizes in listed
        if not any(name.startswith("axis_") for name in sizes)
    )


def _text(given: str | os.PathLike[str]) -> str:
    if isinstance(given, str) and ("\n" in given or given.startswith("HloModule")):
        return given
    if not os.fspath(given):
        raise NoReport("expected HLO text or the path of a file with it; found an empty string")
    try:
        return Path(given).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NoReport(f"expected HLO text or the path of a file with it; {os.fspath(given)!r}: {error}") from None


def _of_text(text: str, own: Meshes) -> CompiledProgram:
    module = parsed(text)
    devices = math.prod(own[0].values()) if own and module.heading else module.devices
    if devices != module.devices:
        raise NoReport(f"`mesh_axes` has {devices} devices, and the program was compiled for {module.devices}")
    return CompiledProgram(module, _backend_of(text), own or _meshes_in_text(text), None, None)


def _named(mesh_axes: Any) -> Meshes:
    """The mesh that somebody names: a mesh of JAX's, or its axes' sizes."""
    sizes = getattr(mesh_axes, "shape", mesh_axes)
    if sizes is None:
        return ()
    if not isinstance(sizes, Mapping) or not all(isinstance(size, int) for size in sizes.values()):
        raise NoReport(f"expected the sizes of a mesh's axes, as `mesh_axes={{'data': 4}}`; found {mesh_axes!r}")
    return (dict(sizes),)


def _backend_of(text: str) -> str:
    """The backend whose compiler wrote a text, by its spelling: a TPU's has tiles, the others call their libraries."""
    if re.search(r"\{[\d,]*:T\(\d", text):
        return "tpu"
    if re.search(r"__cu|__gpu\$|__triton|\bcu_|gpu_version", text):
        return "gpu"
    return "cpu" if re.search(r"__ynn_|xla_cpu_|outer_dimension_partitions", text) else ""


def _refuse_abstract(tree: Any) -> None:
    """An AbstractMesh has no devices to compile for."""
    for leaf in jax.tree.leaves(tree):
        mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
        if isinstance(mesh, AbstractMesh) and not isinstance(mesh, Mesh):
            raise NoReport(
                f"the arguments are on an AbstractMesh ({dict(mesh.shape)}), which names no devices. Compile for a pod "
                'with on="v5e:2x4", or give arrays or shapes with a sharding on a mesh of devices, as `jax.make_mesh` '
                "makes it."
            )
