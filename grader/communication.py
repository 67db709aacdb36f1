"""What a program says over the wire: its collectives, their axes and bytes, and what each device does.

`communication(fn, *args)` reports on any JAX function. Under `shard_map` the collectives are read from
the traced StableHLO, as their author wrote them, through MLIR's Python bindings; without it the compiler
chooses, so they are read from the compiled program (`grader.hlo`).

Bytes sent per device follow the ring algorithm on n devices (Thakur, Rabenseifner and Gropp,
"Optimization of collective communication operations in MPICH", 2005): see `ring_bytes`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax._src.interpreters.mlir import make_ir_context  # the only way to a context with JAX's dialects
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import sdy, stablehlo
from jax.sharding import PartitionSpec as P

from grader import hlo
from grader.program import Program, trace

KINDS = {
    "stablehlo.all_reduce": "all_reduce",
    "stablehlo.all_gather": "all_gather",
    "stablehlo.reduce_scatter": "reduce_scatter",
    "stablehlo.all_to_all": "all_to_all",
    "stablehlo.collective_permute": "collective_permute",
    "stablehlo.collective_broadcast": "collective_broadcast",
}
COLLECTIVES = tuple(KINDS.values())

# What JAX itself calls by name on a CPU: layout annotations, top-k, and LAPACK's routines. The rest may be anything.
OURS = re.compile(r"Sharding|SPMD\w+Shape|annotate_device_placement|LayoutConstraint|xla\.sdy\.\w+|mhlo\.topk|"
                  r"lapack_\w+_ffi")


def ring_bytes(kind: str, operand_bytes: float, devices: int) -> float:
    """Bytes one device sends in one collective on a ring of `devices`, given its operand's bytes.

    With b bytes of operand per device and n devices: all_gather (n-1)·b; reduce_scatter and
    all_to_all (n-1)/n·b; all_reduce 2(n-1)/n·b (it is a reduce_scatter and an all_gather);
    a permute or broadcast b. On one device nothing is sent.
    """
    if devices <= 1:
        return 0.0
    share = (devices - 1) / devices
    factor = {"all_gather": devices - 1, "reduce_scatter": share, "all_to_all": share, "all_reduce": 2 * share}
    return operand_bytes * factor.get(kind, 1)


@dataclass(frozen=True)
class Collective:
    """One collective of a program.

    `operand` is the shape held by each device before it, `bytes` that shape's size in bytes, `axes` the
    mesh axes it runs over (() when its groups follow none), `group` how many devices take part together.
    `times` counts turns of the loops around it; None means that this is only known at run time (a
    branch, or a loop without fixed length). `implicit`: nobody wrote it; the compiler moves data so that
    an operand fits shard_map's in_specs.
    """

    kind: str
    axes: tuple[str, ...]
    group: int
    operand: tuple[int, ...]
    dtype: str
    bytes: int
    times: int | None = 1
    implicit: bool = False

    @property
    def bytes_sent(self) -> int:
        """Bytes each device sends, all turns together, by the ring algorithm."""
        return round(ring_bytes(self.kind, self.bytes, self.group) * (1 if self.times is None else self.times))

    def __str__(self) -> str:
        turns = "" if self.times == 1 else f" × {'?' if self.times is None else self.times}"
        shape = f"{self.dtype}[{','.join(map(str, self.operand))}]"
        over = f" over {', '.join(self.axes)}" if self.axes else ""
        note = " (implicit, to fit in_specs)" if self.implicit else ""
        return f"{self.kind} of {shape}{over}{turns}: {self.bytes_sent:,} B sent per device{note}"


@dataclass(frozen=True)
class Manual:
    """One shard_map: the axes it is manual over, and the specs of what goes in and out."""

    axes: tuple[str, ...]
    in_specs: tuple[P, ...]
    out_specs: tuple[P, ...]


@dataclass(frozen=True)
class Structure:
    """What a program's text says: its mesh, its shard_maps, its collectives, its matmuls' FLOPs.

    `dot_flops` counts the matmuls inside the shard_maps, per device, loops multiplied out. `foreign` names
    what it calls that is no operation of the devices, wherever in the text.
    """

    mesh: Mapping[str, int]
    manual: tuple[Manual, ...]
    collectives: tuple[Collective, ...]
    dot_flops: int
    foreign: tuple[str, ...] = ()

    @property
    def bytes_sent(self) -> int:
        return sum(c.bytes_sent for c in self.collectives)


@dataclass(frozen=True)
class Report:
    """A structure together with what the compiled program costs on each device."""

    structure: Structure
    by_compiler: bool
    flops: int
    peak_bytes: int

    @property
    def collectives(self) -> tuple[Collective, ...]:
        return self.structure.collectives

    @property
    def bytes_sent(self) -> int:
        return self.structure.bytes_sent

    def __repr__(self) -> str:
        mesh = " × ".join(f"{name}={size}" for name, size in self.structure.mesh.items()) or "one device"
        chosen = "chosen by the compiler" if self.by_compiler else "as written"
        lines = [f"mesh: {mesh}"]
        for region in self.structure.manual:
            lines.append(f"shard_map over {', '.join(region.axes)}: {_specs(region.in_specs)}"
                         f" → {_specs(region.out_specs)}")
        lines.append(f"collectives ({chosen}):" if self.collectives else f"collectives ({chosen}): none")
        lines += [f"  {c}" for c in self.collectives]
        lines.append(f"per device: {self.bytes_sent:,} B sent, {self.flops:,} FLOPs, "
                     f"{self.peak_bytes:,} B at the peak")
        return "\n".join(lines)


def _specs(specs: tuple[P, ...]) -> str:
    return ", ".join(f"P({', '.join(map(repr, spec))})" for spec in specs)


def communication(fn: Callable[..., Any], *args: Any) -> Report:
    """Report what `fn(*args)` communicates, computes and keeps on each device; `fn` is not run.

    Args:
      fn: any function that JAX can trace; `jax.jit` is applied for you.
      *args: arrays as they lie on their devices (or `jax.ShapeDtypeStruct`s with shardings).
    """
    return report(trace(fn, *args), *args)


def report(program: Program, *args: Any) -> Report:
    """The report on a program, compiled for the devices of `args`."""
    written = structure(program)
    compiled = program.compile(*args)
    chosen = written if written.manual else compiled_structure(compiled, written.mesh)
    return Report(chosen, not written.manual, flops(compiled, written), peak_bytes(compiled))


def flops(compiled: jax.stages.Compiled, written: Structure) -> int:
    """FLOPs per device: XLA's count, or the text's where loops make that count too low."""
    return max(int((compiled.cost_analysis() or {}).get("flops", 0)), written.dot_flops)


def peak_bytes(compiled: jax.stages.Compiled) -> int:
    """Bytes that one device holds at the peak: arguments, results and what lies between."""
    memory = compiled.memory_analysis()
    held = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return held - memory.alias_size_in_bytes


def structure(program: Program) -> Structure:
    """Read a program's text: every collective in the order of execution, and every shard_map."""
    with make_ir_context():
        return _Walk(ir.Module.parse(program.exported.mlir_module())).structure()


def compiled_structure(compiled: jax.stages.Compiled, mesh: Mapping[str, int]) -> Structure:
    """Read what the compiler made of a program; `mesh` names the axes of its device groups."""
    found = (c for sent in hlo.sent(compiled.as_text()) for c in _from_compiled(sent, mesh))
    return Structure(mesh, (), tuple(found), 0)


def _from_compiled(sent: hlo.Sent, mesh: Mapping[str, int]) -> Iterator[Collective]:
    """A collective of several arrays at once, into which a compiler merges several, counts as these."""
    everyone = tuple(range(math.prod(mesh.values())))
    groups = [list(group) for group in sent.groups or (everyone,)]
    axes = _axes_along(groups, mesh)
    group = math.prod(mesh[a] for a in axes) if sent.kind == "collective_permute" else len(groups[0])
    for element, shape in sent.operands:
        yield Collective(sent.kind, axes, group, shape, _mlir_name(element), math.prod(shape) * _hlo_width(element),
                         sent.times)


def _mlir_name(element: str) -> str:
    """XLA's name of an element's type as StableHLO spells it: s32 is i32, pred is i1."""
    complex_kinds = {"c64": "complex<f32>", "c128": "complex<f64>", "pred": "i1"}
    return complex_kinds.get(element) or re.sub(r"^s(?=\d)", "i", re.sub(r"^u(?=\d)", "ui", element))


def _hlo_width(element: str) -> int:
    """Bytes of one element (a truth value takes one)."""
    bits = re.search(r"\d+", element)
    return max(1, int(bits[0]) // 8) if bits else 1


class _Walk:
    """One walk through a module, calls followed, turns of loops multiplied."""

    def __init__(self, module: ir.Module):
        top = [op.operation for op in module.body.operations]
        self.functions = {_name(op): op for op in top if op.name == "func.func"}
        self.meshes = {_name(op): _axes_of(op) for op in top if op.name == "sdy.mesh"}
        self.mesh = next(iter(self.meshes.values()), {})
        self.collectives: list[Collective] = []
        self.manual: list[Manual] = []
        self.dot_flops = 0
        self.foreign = tuple(sorted({name for op in top for name in _called_by_name(op) if not OURS.fullmatch(name)}))
        self.function("main", 1)

    def structure(self) -> Structure:
        return Structure(self.mesh, tuple(self.manual), tuple(self.collectives), self.dot_flops, self.foreign)

    def function(self, name: str, times: int | None) -> None:
        self.regions(self.functions[name], times)

    def regions(self, op: ir.Operation, times: int | None) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    self.visit(inner.operation, times)

    def visit(self, op: ir.Operation, times: int | None) -> None:
        if op.name in KINDS:
            self.collectives += self.one_per_operand(op, times)
        elif op.name == "func.call":
            self.function(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, times)
        elif op.name == "stablehlo.while":
            turns = _trip_count(op)
            self.regions(op, None if times is None or turns is None else times * turns)
        elif op.name in ("stablehlo.case", "stablehlo.if"):
            self.regions(op, None)
        elif op.name == "stablehlo.composite":
            self.function(ir.FlatSymbolRefAttr(op.attributes["decomposition"]).value, times)
        elif op.name == "sdy.manual_computation":
            self.shard_map(op, times)
        else:
            if op.name == "stablehlo.dot_general" and self.manual:
                self.dot_flops += _dot_flops(op) * (times or 1)
            self.regions(op, times)

    def shard_map(self, op: ir.Operation, times: int | None) -> None:
        axes = tuple(str(a) for a in sdy.ManualAxesAttr(op.attributes["manual_axes"]))
        ins, outs = (_shardings(op.attributes[side]) for side in ("in_shardings", "out_shardings"))
        self.manual.append(Manual(axes, ins, outs))
        for operand, spec in zip(op.operands, ins, strict=True):
            self.collectives += self.moved_to_fit(operand, spec)
        self.regions(op, times)

    def moved_to_fit(self, operand: ir.Value, wanted: P) -> Iterator[Collective]:
        """What the compiler must gather when an argument does not lie as in_specs want it."""
        if not (held := _argument_spec(operand)):
            return
        kind = ir.RankedTensorType(operand.type)
        local = [n // _parts(part, self.mesh) for n, part in zip(kind.shape, held, strict=True)]
        axes = tuple(a for part in held for a in part if a not in _flat(wanted))
        moved = any(a in _flat(held) and _dim(held, a) != _dim(wanted, a) for a in _flat(wanted))
        if axes or moved:
            over = axes or tuple(a for a in _flat(held) if _dim(held, a) != _dim(wanted, a))
            group = math.prod(self.mesh[a] for a in over)
            yield Collective("all_gather" if axes else "all_to_all", over, group, tuple(local),
                             str(kind.element_type), math.prod(local) * _width(kind), implicit=True)

    def one_per_operand(self, op: ir.Operation, times: int | None) -> Iterator[Collective]:
        """A collective of several arrays at once counts as these."""
        groups = self.groups(op)
        axes = _axes_along(groups, self.mesh)
        permute = op.name == "stablehlo.collective_permute"
        group = math.prod(self.mesh[a] for a in axes) if permute else len(groups[0])
        for kind in (ir.RankedTensorType(operand.type) for operand in op.operands):
            yield Collective(KINDS[op.name], axes, group, tuple(kind.shape), str(kind.element_type),
                             math.prod(kind.shape) * _width(kind), times)

    def groups(self, op: ir.Operation) -> list[list[int]]:
        """The devices that take part together, by their position in the mesh."""
        if "source_target_pairs" in op.attributes:
            return np.array(ir.DenseIntElementsAttr(op.attributes["source_target_pairs"])).tolist()
        groups = op.attributes["replica_groups"]
        if isinstance(groups, ir.DenseElementsAttr):
            return np.array(ir.DenseIntElementsAttr(groups)).tolist()
        named = stablehlo.ReplicaGroupMeshAxesAttr(groups)  # JAX 0.12 writes mesh axes here
        mesh = self.meshes[ir.FlatSymbolRefAttr(named.mesh).value]
        return _groups_of([stablehlo.AxisRefAttr(a) for a in named.axes], mesh)


def _called_by_name(op: ir.Operation) -> Iterator[str]:
    """The targets of all custom calls in an operation, at any depth, reached or not."""
    if op.name == "stablehlo.custom_call":
        yield ir.StringAttr(op.attributes["call_target_name"]).value
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _called_by_name(inner.operation)


def _name(op: ir.Operation) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _axes_of(op: ir.Operation) -> dict[str, int]:
    axes = [sdy.MeshAxisAttr(a) for a in sdy.MeshAttr(op.attributes["mesh"]).axes]
    return {a.name: a.size for a in axes}


def _width(kind: ir.RankedTensorType) -> int:
    """Bytes of one element (a truth value takes one)."""
    element = kind.element_type
    if isinstance(element, ir.ComplexType) or str(element).startswith("complex"):
        return 2 * _bits(ir.ComplexType(element).element_type) // 8
    return max(1, _bits(element) // 8)


def _bits(element: ir.Type) -> int:
    return int("".join(itertools.takewhile(str.isdigit, str(element).lstrip("abcdefghijklmnopqrstuvwxyz"))))


def _groups_of(refs: list[Any], mesh: Mapping[str, int]) -> list[list[int]]:
    """Device groups along axes (or parts of axes) of a mesh, other coordinates held fixed."""
    shape: list[int] = []
    along: list[int] = []
    for name, size in mesh.items():
        parts = [r.sub_axis_info for r in refs if r.name == name]
        infos = [sdy.SubAxisInfoAttr(i) if i is not None else None for i in parts]
        cuts = sorted({1, size} | {c for i in infos if i for c in (i.pre_size, i.pre_size * i.size)})
        for low, high in itertools.pairwise(cuts):
            if any(i is None or i.pre_size <= low and high <= i.pre_size * i.size for i in infos):
                along.append(len(shape))
            shape.append(high // low)
    ids = np.arange(math.prod(shape)).reshape(shape)
    ids = np.moveaxis(ids, along, range(ids.ndim - len(along), ids.ndim))
    return ids.reshape(-1, math.prod(shape[k] for k in along)).tolist()


def _axes_along(groups: list[list[int]], mesh: Mapping[str, int]) -> tuple[str, ...]:
    """The mesh axes along which the members of each group differ."""
    ids = np.unravel_index(np.arange(math.prod(mesh.values())), tuple(mesh.values()))
    places = np.stack(ids, axis=-1) if mesh else np.zeros((1, 0), int)
    differ = np.zeros(len(mesh), bool)
    for group in groups:
        differ |= (places[group] != places[group[0]]).any(axis=0)
    return tuple(name for name, moved in zip(mesh, differ, strict=True) if moved)


def _shardings(attribute: ir.Attribute) -> tuple[P, ...]:
    values = sdy.TensorShardingPerValueAttr(attribute)
    return tuple(P(*(d[0] if len(d) == 1 else d or None for d in _dims(s))) for s in values.shardings)


def _dims(sharding: ir.Attribute) -> list[tuple[str, ...]]:
    dims = sdy.TensorShardingAttr(sharding).dimension_shardings
    return [tuple(sdy.AxisRefAttr(a).name for a in sdy.DimensionShardingAttr(d).axes) for d in dims]


def _argument_spec(value: ir.Value) -> list[tuple[str, ...]] | None:
    """How an argument of main lies on the mesh, per dimension; None for any other value."""
    if not _is_argument(value):
        return None
    argument = ir.BlockArgument(value)
    owner = argument.owner.owner
    if owner.operation.name != "func.func" or "arg_attrs" not in owner.operation.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(owner.operation.attributes["arg_attrs"])[argument.arg_number])
    return _dims(attributes["sdy.sharding"]) if "sdy.sharding" in attributes else None


def _flat(spec: Any) -> tuple[str, ...]:
    return tuple(a for part in spec for a in _parts_of(part))


def _parts_of(part: Any) -> tuple[str, ...]:
    return () if part is None else (part,) if isinstance(part, str) else tuple(part)


def _dim(spec: Any, axis: str) -> int:
    return next(k for k, part in enumerate(spec) if axis in _parts_of(part))


def _parts(part: Any, mesh: Mapping[str, int]) -> int:
    return math.prod(mesh[a] for a in _parts_of(part))


def _dot_flops(op: ir.Operation) -> int:
    """2 · (entries of the result) · (length contracted), per device."""
    dims = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs = ir.RankedTensorType(op.operands[0].type)
    contracted = math.prod(lhs.shape[k] for k in dims.lhs_contracting_dimensions)
    return 2 * contracted * math.prod(ir.RankedTensorType(op.results[0].type).shape)


def _trip_count(op: ir.Operation) -> int | None:
    """Turns of a loop `while i < constant` that counts up by a constant; None for any other."""
    condition, body = (region.blocks[0] for region in op.regions)
    returned = _made_by(_last(condition).operands[0], "stablehlo.compare")
    if returned is None or "LT" not in str(returned.attributes["comparison_direction"]):
        return None
    counter, limit = returned.operands
    if not _is_argument(counter):
        return None
    position = ir.BlockArgument(counter).arg_number
    added = _made_by(_last(body).operands[position], "stablehlo.add")
    if added is None:
        return None
    first, last = _constant(op.operands[position]), _constant(_through(limit, op))
    steps = [v for v in added.operands if not (_is_argument(v) and ir.BlockArgument(v).arg_number == position)]
    step = _constant(_through(steps[0], op)) if len(steps) == 1 else None
    if None in (first, last, step) or step <= 0:
        return None
    return max(0, math.ceil((last - first) / step))


def _last(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation


def _is_argument(value: ir.Value) -> bool:
    by_hand = getattr(ir.BlockArgument, "isinstance", None)  # old bindings do not downcast values
    return by_hand(value) if by_hand else isinstance(value, ir.BlockArgument)


def _through(value: ir.Value, loop: ir.Operation) -> ir.Value:
    """A value carried into a loop, seen from outside (the constants of old exporters)."""
    return loop.operands[ir.BlockArgument(value).arg_number] if _is_argument(value) else value


def _made_by(value: ir.Value, name: str) -> ir.Operation | None:
    if _is_argument(value):
        return None
    op = ir.OpResult(value).owner
    return op.operation if op.operation.name == name else None


def _constant(value: ir.Value) -> int | None:
    made = _made_by(value, "stablehlo.constant")
    return None if made is None else int(np.array(ir.DenseIntElementsAttr(made.attributes["value"])).item())
