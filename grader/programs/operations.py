"""Single operations of a program's text, read through MLIR's Python bindings: plain values come out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from jax.extend.mlir import ir
from jax.extend.mlir.dialects import sdy, stablehlo
from jax.sharding import PartitionSpec as P

from grader.jax_versions import is_argument

ONE_HALF = 0.5  # a power of so much is a root


def name_of(op: ir.Operation) -> str:
    """The name of what stands at the top of a module: a function, or a mesh."""
    return ir.StringAttr(op.attributes["sym_name"]).value


def functions_in(module: ir.Module) -> dict[str, ir.Operation]:
    """The functions of a module, by name."""
    return {name_of(op.operation): op.operation for op in module.body.operations if op.operation.name == "func.func"}


def meshes_in(module: ir.Module) -> dict[str, dict[str, int]]:
    """The meshes of a module, by name."""
    top = (op.operation for op in module.body.operations)
    return {name_of(op): axes_of_mesh(op) for op in top if op.name == "sdy.mesh"}


def first_mesh(meshes: Mapping[str, dict[str, int]]) -> dict[str, int]:
    """The mesh that a module names first; none where it names none."""
    return next(filter(None, meshes.values()), {})


def axes_of_mesh(op: ir.Operation) -> dict[str, int]:
    axes = [sdy.MeshAxisAttr(a) for a in sdy.MeshAttr(op.attributes["mesh"]).axes]
    return {a.name: a.size for a in axes}


def callee_of(op: ir.Operation) -> str:
    """The function of the module that an operation calls; "" if it calls none."""
    attribute = {"func.call": "callee", "stablehlo.composite": "decomposition"}.get(op.name)
    return ir.FlatSymbolRefAttr(op.attributes[attribute]).value if attribute else ""


def blocks_in(op: ir.Operation) -> Iterator[ir.Block]:
    for region in op.regions:
        yield from region.blocks


def operations_in(block: ir.Block) -> Iterator[ir.Operation]:
    for view in block.operations:
        yield view.operation


def last(block: ir.Block) -> ir.Operation:
    """What a block ends with: its operands are the block's results."""
    return list(operations_in(block))[-1]


def open_fusions(block: ir.Block) -> None:
    """Put what a compiler has fused in the place of the fusion: it does the same, one operation after the other."""
    for op in list(operations_in(block)):
        for inner in blocks_in(op):
            open_fusions(inner)
        if op.name == "mhlo.fusion":
            _open(op)


def _open(fusion: ir.Operation) -> None:
    (body,) = blocks_in(fusion)
    *fused, returned = operations_in(body)
    for argument, operand in zip(body.arguments, fusion.operands, strict=True):
        ir.Value(argument).replace_all_uses_with(operand)
    for result, value in zip(fusion.results, returned.operands, strict=True):
        ir.Value(result).replace_all_uses_with(value)
    for op in fused:
        op.move_before(fusion)
    fusion.erase()


def values_used(op: ir.Operation) -> Iterator[ir.Value]:
    """The values that an operation needs, those inside its regions included."""
    yield from op.operands
    for block in blocks_in(op):
        for inner in operations_in(block):
            yield from values_used(inner)


def dot_flops(op: ir.Operation) -> int:
    """2 · (entries of the result) · (length contracted), per device."""
    dims = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    lhs = ir.RankedTensorType(op.operands[0].type)
    contracted = math.prod(lhs.shape[k] for k in dims.lhs_contracting_dimensions)
    return 2 * contracted * math.prod(ir.RankedTensorType(op.results[0].type).shape)


def roots(op: ir.Operation) -> int:
    """Of how many numbers an operation takes the root, per device; that of a constant, as of a length, is none."""
    taken = op.name in ("stablehlo.sqrt", "stablehlo.rsqrt") or (
        op.name == "stablehlo.power" and abs(_splat(op.operands[1]) or 0) == ONE_HALF
    )
    is_constant = taken and _splat(op.operands[0]) is not None
    return math.prod(ir.RankedTensorType(op.results[0].type).shape) if taken and not is_constant else 0


def _splat(value: ir.Value) -> float | None:
    """The float that a constant is everywhere; None for anything else."""
    while (op := _maker(value)) is not None and op.name in ("stablehlo.broadcast_in_dim", "stablehlo.convert"):
        value = op.operands[0]
    if op is None or op.name != "stablehlo.constant":
        return None
    numbers, kind = ir.DenseElementsAttr(op.attributes["value"]), str(ir.RankedTensorType(value.type).element_type)
    return float(ir.FloatAttr(numbers.get_splat_value()).value) if numbers.is_splat and "f" in kind else None


def _maker(value: ir.Value) -> ir.Operation | None:
    """The operation that makes a value; None for an argument."""
    owner: Any = value.owner
    return getattr(owner, "operation", None)


def width(tensor: ir.RankedTensorType) -> int:
    """Bytes of one element (a truth value takes one)."""
    element = tensor.element_type
    if str(element).startswith("complex"):
        return 2 * _bits(ir.ComplexType(element).element_type) // 8
    return max(1, _bits(element) // 8)


def _bits(element: ir.Type) -> int:
    return int("".join(itertools.takewhile(str.isdigit, str(element).lstrip("abcdefghijklmnopqrstuvwxyz"))))


def manual_axes(op: ir.Operation) -> tuple[str, ...]:
    """The axes that a shard_map is manual over."""
    axes: Any = sdy.ManualAxesAttr(op.attributes["manual_axes"])
    return tuple(map(str, axes))


def specs_of(op: ir.Operation, side: str) -> tuple[P, ...]:
    """The specs of what goes into a shard_map ("in_shardings"), or comes out of it ("out_shardings")."""
    values = sdy.TensorShardingPerValueAttr(op.attributes[side])
    return tuple(P(*(d[0] if len(d) == 1 else d or None for d in _dims(s))) for s in values.shardings)


def donated(function: ir.Operation) -> tuple[int, ...]:
    """The numbers of a function's arguments whose memory it may write over."""
    if "arg_attrs" not in function.attributes:
        return ()
    each = enumerate(map(ir.DictAttr, ir.ArrayAttr(function.attributes["arg_attrs"])))
    return tuple(k for k, said in each if "jax.buffer_donor" in said or "tf.aliasing_output" in said)


def spec_of_argument(value: ir.Value) -> list[tuple[str, ...]] | None:
    """How an argument of main is on the mesh, the axes per dimension; None for any other value."""
    if not is_argument(value):
        return None
    argument: ir.BlockArgument = ir.BlockArgument(value)
    function = argument.owner.owner.operation
    if function.name != "func.func" or "arg_attrs" not in function.attributes:
        return None
    attributes = ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[argument.arg_number])
    return _dims(attributes["sdy.sharding"]) if "sdy.sharding" in attributes else None


def specs_of_results(function: ir.Operation) -> list[list[tuple[str, ...]] | None]:
    """How each result of a function is to be on the mesh, the axes per dimension; None where that is left open."""
    if "res_attrs" not in function.attributes:
        return [None] * len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).results)
    each = map(ir.DictAttr, ir.ArrayAttr(function.attributes["res_attrs"]))
    return [_dims(said["sdy.sharding"]) if "sdy.sharding" in said else None for said in each]


def _dims(sharding: ir.Attribute) -> list[tuple[str, ...]]:
    dims = sdy.TensorShardingAttr(sharding).dimension_shardings
    return [tuple(sdy.AxisRefAttr(a).name for a in sdy.DimensionShardingAttr(d).axes) for d in dims]
