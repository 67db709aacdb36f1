"""Repairs of a program: its text with one collective left out, run along other axes, turned round, or put in.

Where a repair makes a wrong program right on every mesh that is tried, what it changes is what is wrong with the
program. Nobody needs to have foreseen that mistake.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import jax
import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from grader.jax_versions import mlir_context
from grader.programs.operations import (
    blocks_in,
    callee_of,
    first_mesh,
    functions_in,
    manual_axes,
    meshes_in,
    operations_in,
)
from grader.programs.order import groups_of
from grader.programs.program import Program
from grader.programs.structure import KIND_OF, device_numbers_along
from grader.programs.walk import axes_of_groups

Way = Literal["leave out", "turn round", "run along", "average", "add up", "sum", "mean"]
WAYS: tuple[Way, ...] = get_args(Way)  # the likeliest first
AT_A_PRODUCT, AT_A_RESULT = "product", "result"
MOST_SPOTS = 24  # of a program: in a longer one there are too many repairs for somebody who waits
Meshes = Mapping[str, dict[str, int]]


@dataclass(frozen=True)
class Repair:
    """One change at one spot of a program.

    `kind` is what stands there: a kind of collective, or a "product" or a "result" of a shard_map, which a sum could
    follow. `number` counts those of that kind in the order of execution, from 0, loops once. `axes` are those that it
    runs along; `along` those that it would run along after the change.
    """

    kind: str
    number: int
    way: Way
    axes: tuple[str, ...] = ()
    along: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Spot:
    """An operation, which of its kind it is, the axes of the shard_map around it, and which operand is meant."""

    op: ir.Operation
    kind: str
    number: int
    manual: tuple[str, ...]
    operand: int = 0


def repairs_of(program: Program) -> tuple[Repair, ...]:
    """All repairs of a program with shard_map, the likeliest first; none of a long one."""
    with mlir_context():
        module = ir.Module.parse(program.exported.mlir_module())
        spots = list(itertools.islice(_spots(module), MOST_SPOTS + 1))
        if len(spots) > MOST_SPOTS:
            return ()
        meshes = meshes_in(module)
        found = [repair for spot in spots for repair in _repairs(spot, meshes)]
        return tuple(sorted(found, key=lambda repair: WAYS.index(repair.way)))


def make_repair(repair: Repair, lowered: jax.stages.Lowered) -> None:
    """Change the text of a lowered program, which then compiles to the repaired one."""
    module: Any = lowered.compiler_ir()
    with module.context, ir.Location.unknown():
        spot = next(spot for spot in _spots(module) if (spot.kind, spot.number) == (repair.kind, repair.number))
        _make(repair, spot, first_mesh(meshes_in(module)))


def _make(repair: Repair, spot: _Spot, mesh: Mapping[str, int]) -> None:
    op = spot.op
    if repair.way == "leave out":
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    elif repair.way == "turn round":
        pairs = np.array(ir.DenseIntElementsAttr(op.attributes["source_target_pairs"]))
        op.attributes["source_target_pairs"] = _numbers(pairs[:, ::-1])
    elif repair.way == "run along":
        op.attributes["replica_groups"] = _groups(repair.along, mesh)
        op.attributes["use_global_device_ids"] = ir.UnitAttr.get()
    elif repair.way in ("average", "add up"):
        devices = math.prod(mesh[a] for a in repair.axes)
        with _after(op):
            scaled = _scaled(op.results[0], 1 / devices if repair.way == "average" else devices)
        _instead(op.results[0], scaled.results[0], scaled)
    else:
        value = op.operands[spot.operand] if repair.kind == AT_A_RESULT else op.results[0]
        with ir.InsertionPoint(op) if repair.kind == AT_A_RESULT else _after(op):
            first = _sum(value, repair.along, mesh)
            total = first.results[0]
            if repair.way == "mean":
                total = _scaled(total, 1 / math.prod(mesh[a] for a in repair.along)).results[0]
        if repair.kind == AT_A_RESULT:
            op.operands[spot.operand] = total
        else:
            _instead(value, total, first)


def _after(op: ir.Operation) -> ir.InsertionPoint:
    following = list(operations_in(op.block))
    return ir.InsertionPoint(following[following.index(op) + 1])


def _instead(value: ir.Value, other: ir.Value, user: ir.Operation) -> None:
    """Let another value stand in the place of one, but for the operation that makes it of that one."""
    value.replace_all_uses_with(other)
    user.operands[0] = value


def _scaled(value: ir.Value, factor: float) -> ir.Operation:
    tensor = ir.RankedTensorType(value.type)
    splat = ir.DenseElementsAttr.get_splat(tensor, ir.FloatAttr.get(tensor.element_type, factor))
    return stablehlo.MulOp(value, stablehlo.constant(splat)).operation


def _sum(value: ir.Value, axes: Sequence[str], mesh: Mapping[str, int]) -> ir.Operation:
    """A psum of a value along these axes."""
    attributes = {
        "replica_groups": _groups(axes, mesh),
        "use_global_device_ids": ir.UnitAttr.get(),
        "channel_handle": stablehlo.ChannelHandle.get(1, 0),
    }
    op = ir.Operation.create("stablehlo.all_reduce", [value.type], [value], attributes, regions=1)
    number = ir.RankedTensorType.get([], ir.RankedTensorType(value.type).element_type)
    block = op.regions[0].blocks.append(number, number)
    with ir.InsertionPoint(block):
        stablehlo.return_([stablehlo.add(*block.arguments)])
    return op


def _groups(axes: Sequence[str], mesh: Mapping[str, int]) -> ir.DenseIntElementsAttr:
    """The devices that differ along these axes only, group by group."""
    return _numbers(device_numbers_along(axes, mesh))


def _numbers(table: np.ndarray) -> ir.DenseIntElementsAttr:
    contiguous: Any = np.ascontiguousarray(table)  # NumPy's stubs do not say that an array is a buffer
    return ir.DenseIntElementsAttr.get(contiguous)


def _repairs(spot: _Spot, meshes: Meshes) -> Iterator[Repair]:
    mesh, at = first_mesh(meshes), (spot.kind, spot.number)
    choices = list(_choices([a for a in spot.manual if mesh[a] > 1]))
    if spot.kind in (AT_A_PRODUCT, AT_A_RESULT):
        for along in choices if _is_float(spot) else ():
            yield Repair(*at, "sum", (), along)
            if spot.kind == AT_A_RESULT:
                yield Repair(*at, "mean", (), along)
        return
    axes = axes_of_groups(groups_of(spot.op, meshes), mesh)
    if not axes or len(spot.op.operands) != 1:
        return
    if spot.kind in ("all_reduce", "collective_permute"):
        yield Repair(*at, "leave out", axes)
    if spot.kind == "collective_permute":
        yield Repair(*at, "turn round", axes)
    if spot.kind == "all_reduce":
        yield from (Repair(*at, "run along", axes, along) for along in choices if {*along} != {*axes})
    if spot.kind in ("all_reduce", "reduce_scatter") and _is_float(spot):
        yield Repair(*at, "average", axes)
        yield Repair(*at, "add up", axes)
    if spot.kind in ("all_gather", "reduce_scatter", "all_to_all") and len(axes) > 1:
        yield Repair(*at, "run along", axes, axes[::-1])


def _choices(axes: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Along what a collective could run: one axis, or all."""
    yield from ((a,) for a in axes)
    if len(axes) > 1:
        yield tuple(axes)


def _is_float(spot: _Spot) -> bool:
    return str(ir.RankedTensorType(spot.op.operands[spot.operand].type).element_type) in ("f32", "f64", "bf16", "f16")


def _spots(module: ir.Module) -> Iterator[_Spot]:
    functions, met = functions_in(module), Counter[str]()
    for op, kind, manual, operand in _inside(functions["main"], functions, ()):
        yield _Spot(op, kind, met[kind], manual, operand)
        met[kind] += 1


def _inside(
    op: ir.Operation, functions: Mapping[str, ir.Operation], manual: tuple[str, ...]
) -> Iterator[tuple[ir.Operation, str, tuple[str, ...], int]]:
    """The operations at which there may be something to change: kind, the shard_map's axes, and which operand."""
    for inner in (inner for block in blocks_in(op) for inner in operations_in(block)):
        if inner.name in KIND_OF:
            yield inner, KIND_OF[inner.name], manual, 0
            continue
        if inner.name == "sdy.return":
            made = [operand.owner for operand in inner.operands]
            yield from ((inner, AT_A_RESULT, manual, k) for k, maker in enumerate(made) if not _may_be_summed(maker))
        elif inner.name == "stablehlo.dot_general" and manual:
            yield inner, AT_A_PRODUCT, manual, 0
        within = manual_axes(inner) if inner.name == "sdy.manual_computation" else manual
        yield from _inside(functions[callee] if (callee := callee_of(inner)) else inner, functions, within)


def _may_be_summed(maker: Any) -> bool:
    """Whether other repairs add up what this makes."""
    return getattr(maker, "name", "") in ("stablehlo.dot_general", "stablehlo.all_reduce")
