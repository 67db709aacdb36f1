"""Where JAX's versions differ, and what JAX has no public name for: the rest of the house asks for neither.

From 0.7.2, which Colab ships, to the newest. What another version needs is here, but for the texts of errors, which
`exercises/errors.py` lists.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import export, lax
from jax.extend.core import Jaxpr
from jax.extend.mlir import ir, passmanager
from jax.extend.mlir.dialects import sdy, stablehlo
from jax.interpreters.partial_eval import dce_jaxpr

# Starting, and compiling.


def has_backend() -> bool:
    """Whether JAX has started a backend, and with it settled its devices.

    `jax.extend.backend` has no question that does not start one.
    """
    from jax._src import xla_bridge

    return xla_bridge.backends_are_initialized()


def find_plugins() -> None:
    """Have JAX look for plugins now, which starts nothing, and not when a backend starts: it takes 12 ms."""
    from jax._src import xla_bridge

    xla_bridge._discover_and_register_pjrt_plugins()


def timeouts(warn: int, terminate: int) -> dict[str, int]:
    """XLA's flags for a collective that not every device reaches: warn after so many seconds, and end the process
    after so many more, in place of waiting for ever.

    An older XLA ends the process over a flag it does not know: seen on 0.7.2, fine from 0.10 on.
    """
    if jax.__version_info__ < (0, 10):
        return {}
    return {
        "--xla_cpu_collective_call_warn_stuck_timeout_seconds": warn,
        "--xla_cpu_collective_call_terminate_timeout_seconds": terminate,
    }


# (The fusion emitters, which take time to compile, can be switched off until JAX 0.10; the option is gone later.)
_EMITTERS = {"xla_cpu_use_fusion_emitters": False} if jax.__version_info__ < (0, 11) else {}
QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0, **_EMITTERS}
# (By default a program is cut into up to 32 parts, for as many threads: to compile these takes twice as much work.)
_IN_ONE_PART = {"xla_cpu_parallel_codegen_split_count": 1}


@functools.cache
def quick_options() -> dict[str, Any]:
    """XLA's options to compile quickly what runs once, on simulated devices."""
    if jax.default_backend() != "cpu":
        return {}
    return QUICK | _IN_ONE_PART if _takes(_IN_ONE_PART) else QUICK


@contextlib.contextmanager
def option_set(name: str, value: Any) -> Iterator[None]:
    """In a `with` block, an option of JAX has this value. Nothing changes if this JAX doesn't have the option."""
    if name not in jax.config.values:
        yield
        return
    before = jax.config.values[name]
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


def compiled_quickly() -> contextlib.AbstractContextManager[None]:
    """All that is compiled in a `with` block is compiled quickly, by whatever function it is called."""
    return option_set("jax_disable_most_optimizations", True)


def unmerged_options() -> dict[str, Any]:
    """XLA's options to compile quickly what is read, too: no sums over devices are merged.

    A name of a pass that XLA does not know is no error.
    """
    return quick_options() | {"xla_disable_hlo_passes": "cpu-all-reduce-combiner"}


def _takes(options: dict[str, Any]) -> bool:
    """Whether XLA knows these options: it refuses a program for which one is set that it does not know."""
    try:
        jax.jit(lambda: 0).lower().compile(options)
    except Exception:  # of which kind depends on the version
        return False
    return True


# Jaxprs, and names.


def open_jaxpr(jaxpr: Any) -> Jaxpr:
    """The jaxpr without the constants it closes over. Since JAX 0.12 open and closed ones are of one class."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def as_needed(closed: Any, only: int | None = None) -> Any:
    """A traced function without what its results do not need; of these one alone is left where that is said."""
    jaxpr: Any = open_jaxpr(closed)
    kept, _ = dce_jaxpr(jaxpr, [only in (None, k) for k in range(len(jaxpr.outvars))], instantiate=True)
    return closed.replace(jaxpr=kept) if jaxpr is not closed else kept


@dataclass(frozen=True)
class Spot:
    """A piece of a source: lines count from 1, columns from 0."""

    file: str
    function: str
    first: int
    start: int
    last: int
    end: int


def spots(eqn: Any) -> list[Spot]:
    """Where an equation of a jaxpr was written, its callers behind it; JAX's own files are left out."""
    from jax._src import source_info_util

    return [
        Spot(f.file_name, f.function_name, f.start_line, f.start_column, f.end_line, f.end_column)
        for f in source_info_util.user_frames(eqn.source_info.traceback)
    ]


def is_backward(eqn: Any) -> bool:
    """Whether an equation belongs to a gradient's way back."""
    return "transpose(" in str(eqn.source_info.name_stack)


def argument_names(jaxpr: Any) -> tuple[str, ...]:
    """What the author of a traced function calls its arguments, as far as JAX knows."""
    return tuple(name or "" for name in getattr(jaxpr.debug_info, "arg_names", None) or ())


def definition(jaxpr: Any) -> Spot | None:
    """Where a traced function is defined, as far as JAX knows."""
    told = jaxpr.debug_info
    line = getattr(told, "func_lineno", None)
    return Spot(told.func_filename, told.func_name, line, 0, line, 0) if line else None


def scan_parts(params: Mapping[str, Any]) -> tuple[int, int]:
    """How many of a scan's operands are constants, and how many are carried. JAX 0.12 writes them as trees."""
    if "ft_in" in params:
        constants, carried, _ = (len(list(part)) for part in params["ft_in"].unpack())
        return constants, carried
    return params["num_consts"], params["num_carry"]


def newly_manual(params: Mapping[str, Any]) -> frozenset[str]:
    """The axes that a shard_map is manual over. JAX from 0.8 on leaves out those that were so before."""
    return frozenset(params["newly_manual_axes"] if "newly_manual_axes" in params else params["manual_axes"])


def entries_of(spec: Any) -> tuple[Any, ...]:
    """The entries of a spec, one per dimension. JAX 0.10.2 refuses to iterate over a reduced or unreduced spec."""
    return spec.partitions if hasattr(spec, "partitions") else tuple(spec)


def public_module(module: str) -> str:
    """Where JAX shows the classes that it keeps, and says that it keeps, in private modules."""
    return "jax.sharding" if module.startswith("jax._src.") else module


# What varies between devices, inside shard_map.


def varying(tree: Any, axes: str | tuple[str, ...]) -> Any:
    """The same arrays, typed as ones that may differ between the devices along these mesh axes."""
    if hasattr(lax, "pcast"):
        return jax.tree.map(lambda leaf: lax.pcast(leaf, axes, to="varying"), tree)
    return jax.tree.map(lambda leaf: lax.pvary(leaf, axes), tree)  # type: ignore[attr-defined] # JAX before 0.8.2


def all_gather(
    x: Any, axis_name: str | tuple[str, ...], *, axis: int = 0, tiled: bool = False, to: str = "varying"
) -> Any:
    """`jax.lax.all_gather`, also before JAX 0.10.0, which added `to="invarying"` (0.8.2 added the argument `to`).

    Args:
      x: a device's block, inside shard_map.
      axis_name: the mesh axis, or axes, along which the blocks are collected.
      axis: the dimension in which they are put together.
      tiled: one behind the other; else along a new dimension.
      to: "invarying" for one value, the same on all devices; "varying" for a copy on each.

    Example:
      >>> line = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
      >>> whole = lambda block: grader.all_gather(block, "x", tiled=True, to="invarying")
      >>> print(jax.shard_map(whole, mesh=line, in_specs=P("x"), out_specs=P())(jnp.arange(4)))
      [0 1 2 3]
    """
    if to == "invarying" and jax.__version_info__ < (0, 10):
        from jax._src.lax.parallel import all_gather_invariant

        return all_gather_invariant(x, axis_name, axis=axis, tiled=tiled)
    said = {} if to == "varying" else {"to": to}  # what JAX does without it, in every version
    return lax.all_gather(x, axis_name, axis=axis, tiled=tiled, **said)


def permuted_axes(axes: Sequence[str], mesh: Iterable[str]) -> Sequence[str] | None:
    """ppermute's axes, in the order in which JAX counts devices along them; None if JAX refuses the order given.

    JAX up to 0.11.0 counts in the mesh's order. A newer one refuses any other, or takes it if its option says so.
    """
    by_mesh = [axis for axis in mesh if axis in axes]
    refuses = getattr(jax.config, "jax_raise_on_ppermute_sort_diff", None)
    if refuses and by_mesh != [*axes]:
        return None
    return by_mesh if refuses is None else axes


def axes_varied(kind: Any) -> list[str]:
    """The mesh axes along which values of a type may vary."""
    return sorted(kind.vma if hasattr(kind, "vma") else kind.manual_axis_type.varying)


# Programs as text, through MLIR's bindings.


def mlir_context() -> ir.Context:
    """A context that knows JAX's dialects. `jax.extend.mlir` makes none that does."""
    from jax._src.interpreters.mlir import make_ir_context

    return make_ir_context()


@contextlib.contextmanager
def one_mlir_context() -> Iterator[None]:
    """Have JAX lower and export everything in this block in a single context of MLIR's.

    It makes two for every program, and to fill and empty them is more than half of the time that a small one takes.
    The bytes are the same. A block inside another shares its context.
    """
    from jax._src.interpreters import mlir

    make = mlir.make_ir_context
    mlir.make_ir_context = functools.cache(make)
    try:
        yield
    finally:
        mlir.make_ir_context = make


def artefact(jitted: jax.stages.Wrapped, args: Sequence[Any]) -> bytes:
    """The bytes of `jax.export` for a jitted function, for readers of this JAX alone.

    They hold the StableHLO as it is, without names of scopes, and each mesh, layout and type once. JAX would write that
    of a month ago, for readers who are behind, and all the rest anew for every array: a third of the time that a small
    program takes. An older one reads no other.
    """
    own = _writers() if jax.__version_info__ >= (0, 10, 2) else {}
    before = {(module, name): getattr(module, name) for module, name in own}
    try:
        for (module, name), write in own.items():
            setattr(module, name, write)
        return bytes(export.export(jitted)(*args).serialize())
    finally:
        for (module, name), write in before.items():
            setattr(module, name, write)


def _writers() -> dict[tuple[Any, str], Callable[..., Any]]:
    """What is to write the parts of a single artefact, and which functions of JAX's that stands for.

    What another version does not have, it writes in its own way.
    """
    from jax._src.export import _export, serialization

    parts = ("abstract_mesh", "named_sharding", "sharding", "partition_spec_one_axis", "aval")
    repeated = [f"_serialize_{part}" for part in parts]
    known = [name for name in repeated if hasattr(serialization, name)]
    own: dict[tuple[Any, str], Callable[..., Any]]
    own = {(serialization, name): _once(getattr(serialization, name)) for name in known}
    return own | ({(_export, "_module_to_bytecode"): _as_it_is} if hasattr(_export, "_module_to_bytecode") else {})


def _once(write: Callable[..., int]) -> Callable[..., int]:
    """A writer that refers to what it has written before, by its place."""
    places: dict[Any, int] = {}

    def written(builder: Any, part: Any, **more: Any) -> int:
        if part not in places:
            places[part] = write(builder, part, **more)
        return places[part]

    return written


def _as_it_is(module: ir.Module) -> bytes:
    from jax._src.interpreters import mlir

    with module.context:
        passmanager.PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
    return mlir.module_to_bytecode(module)


def stablehlo_of(compiled: jax.stages.Compiled) -> str:
    """The StableHLO of what the compiler made. In public JAX tells only HLO's text, for which there is no reader."""
    from jax._src.lib import _jax

    executable: Any = compiled.runtime_executable()
    (module,) = executable.hlo_modules()
    return _jax.mlir.hlo_to_stablehlo(_numbered(module).as_serialized_hlo_module_proto())


def is_argument(value: ir.Value) -> bool:
    """Whether a value is an argument of a block. The bindings of older versions do not downcast values."""
    by_hand = getattr(ir.BlockArgument, "isinstance", None)
    return by_hand(value) if by_hand else isinstance(value, ir.BlockArgument)


def device_groups(op: ir.Operation, meshes: Mapping[str, Mapping[str, int]]) -> list[list[int]]:
    """The devices that take part in a collective together, by their position in the mesh.

    JAX 0.12 writes axes of one of the module's meshes where older versions write numbers.
    """
    groups = op.attributes["replica_groups"]
    if isinstance(groups, ir.DenseElementsAttr):
        return np.array(ir.DenseIntElementsAttr(groups)).tolist()
    by_axes = stablehlo.ReplicaGroupMeshAxesAttr(groups)
    mesh = meshes[ir.FlatSymbolRefAttr(by_axes.mesh).value]
    axes: Any = by_axes.axes
    return _groups_along([_part_of_axis(stablehlo.AxisRefAttr(axis), mesh) for axis in axes], mesh)


# Groups of devices by the axes of a mesh, whose devices may come in another order: XLA writes them so from JAX 0.10 on.
# MLIR refuses to read that of an all-to-all, and elsewhere forgets the order.
BY_AXES = re.compile(
    r"(?<=replica_groups=)mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))?"
    r" \{([^}]*)\}"
)


def _numbered(module: Any) -> Any:
    """A compiled module, the groups of its collectives by device numbers."""
    text = module.to_string()
    numbered = BY_AXES.sub(numbers_for, text)
    if numbered == text:
        return module
    from jaxlib import _hlo  # type: ignore[attr-defined]  # as old as the notation

    return _hlo.hlo_module_from_text(numbered)


def numbers_for(match: re.Match[str]) -> str:
    """Groups such as {{0,2},{1,3}} for a mesh 'a'=2,'b'=2, its axes 'a' (or a part of one: 'a':(1)2), and its order.

    The order is that of numbers counted through `dimensions` that were then `turned`, as np.transpose does.
    """
    mesh, dimensions, turned, axes = match.groups(default="")
    sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", mesh)}
    parts = [
        (name, int(before or 1), int(size or sizes[name]))
        for name, before, size in re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", axes)
    ]
    order = np.arange(math.prod(sizes.values()))
    if dimensions:
        order = order.reshape(_integers(dimensions)).transpose(_integers(turned) or None).ravel()
    groups = order[np.array(_groups_along(parts, sizes))].tolist()
    return f"{{{','.join('{' + ','.join(map(str, group)) + '}' for group in groups)}}}"


def _integers(listed: str) -> list[int]:
    return [int(number) for number in listed.split(",") if number]


PartOfAxis = tuple[str, int, int]  # an axis's name, how many stand before the part, and the part's own size


def _part_of_axis(axis: Any, mesh: Mapping[str, int]) -> PartOfAxis:
    """An axis, or a part of one, that a text refers to."""
    if axis.sub_axis_info is None:
        return axis.name, 1, mesh[axis.name]
    part = sdy.SubAxisInfoAttr(axis.sub_axis_info)
    return axis.name, part.pre_size, part.size


def _groups_along(parts: Sequence[PartOfAxis], mesh: Mapping[str, int]) -> list[list[int]]:
    """Device groups along parts of a mesh's axes, other coordinates held fixed."""
    shape: list[int] = []
    along: list[int] = []
    for name, size in mesh.items():
        spans = [(before, before * length) for axis, before, length in parts if axis == name]
        cuts = sorted({1, size} | {cut for span in spans for cut in span})
        for low, high in itertools.pairwise(cuts):
            if any(first <= low and high <= last for first, last in spans):
                along.append(len(shape))
            shape.append(high // low)
    ids = np.arange(math.prod(shape)).reshape(shape)
    ids = np.moveaxis(ids, along, range(ids.ndim - len(along), ids.ndim))
    return ids.reshape(-1, math.prod(shape[k] for k in along)).tolist()
