"""What the compiler sends besides what is written: the same program without its collectives, compiled.

To compare what is compiled with what is written would not do: a written collective that nobody needs is dropped by
the compiler, and one that the compiler chose stands in its place, of the same kind and size. So the written ones are
taken out, and whatever is sent then was written by nobody.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from grader.programs.operations import blocks_in, operations_in
from grader.programs.structure import KIND_OF


def take_out_collectives(lowered: jax.stages.Lowered) -> None:
    """Have every device go on with numbers of its own where it would have got others'. Only to be compiled, not run."""
    module: Any = lowered.compiler_ir()
    with module.context, ir.Location.unknown():
        for op in list(_collectives(module.operation)):
            with ir.InsertionPoint(op):
                for operand, result in zip(op.operands, op.results, strict=True):
                    result.replace_all_uses_with(_of_its_own(operand, ir.RankedTensorType(result.type)))
            op.erase()


def _collectives(op: ir.Operation) -> Iterator[ir.Operation]:
    """All collectives in an operation, at any depth, reached or not."""
    if op.name in KIND_OF:
        yield op
        return
    for block in blocks_in(op):
        for inner in operations_in(block):
            yield from _collectives(inner)


def _of_its_own(operand: ir.Value, due: ir.RankedTensorType) -> ir.Value:
    """The operand's numbers, repeated or cut so that they fill a tensor of another shape.

    They come from behind a barrier, for the compiler must not see that they are the operand's.
    """
    have = ir.RankedTensorType(operand.type)
    count, needed = math.prod(have.shape), math.prod(due.shape)
    hidden = stablehlo.OptimizationBarrierOp([operand]).results[0]
    flat = stablehlo.reshape(ir.RankedTensorType.get([count], have.element_type), hidden)
    copies = stablehlo.concatenate([flat] * max(1, -(-needed // max(1, count))), 0)
    return stablehlo.reshape(due, stablehlo.slice(copies, [0], [needed], [1]))
