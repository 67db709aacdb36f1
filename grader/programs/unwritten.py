"""What the compiler sends besides what is written: the same program without its collectives, compiled.

To compare what is compiled with what is written would not do: a written collective that nobody needs is dropped by
the compiler, and one that the compiler chose stands in its place, of the same kind and size. So the written ones are
taken out, and whatever is sent then was written by nobody.

That takes a second compilation, which is spared where every collective of the first one bears the mark that the written
ones were given before: then there is no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from grader.programs.collectives import OF_STABLEHLO
from grader.programs.operations import blocks_in, operations_in

# The channel of every written collective, which the compiler leaves as it is. Its own collectives get the next number
# behind the largest that is left, and JAX itself gives 1.
MARK = 1_000_003
CUT_IN_PIECES = "mhlo.all_to_all"  # of one operand for each piece; others have several where the compiler merged them


def mark_collectives(lowered: jax.stages.Lowered) -> None:
    """Have every collective of a program bear the mark of what is written."""
    module: Any = lowered.compiler_ir()
    with module.context:
        for op in _collectives(module.operation):
            if "channel_handle" in op.attributes:
                op.attributes["channel_handle"] = stablehlo.ChannelHandle.get(MARK, 1)


def is_marked(module: ir.Module) -> bool:
    """Whether each collective of a compiled program bears that mark, and is none that was merged of several."""
    return all(
        "channel_handle" in op.attributes
        and f"handle = {MARK}," in str(op.attributes["channel_handle"])
        and (len(op.operands) == 1 or op.name == CUT_IN_PIECES)
        for op in _collectives(module.operation)
    )


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
    if op.name in OF_STABLEHLO:
        yield op
        return
    for block in blocks_in(op):
        for inner in operations_in(block):
            yield from _collectives(inner)


def _of_its_own(operand: ir.Value, due: ir.RankedTensorType) -> ir.Value:
    """The operand's numbers, repeated or cut so that they fill a tensor of another shape.

    Dimension by dimension: along axes that shard_map leaves to the compiler, no number is to move for this. They come
    from behind a barrier, for the compiler must not see that they are the operand's.
    """
    value = stablehlo.OptimizationBarrierOp([operand]).results[0]
    for dimension, needed in enumerate(due.shape):
        have = ir.RankedTensorType(value.type).shape
        if have[dimension] < needed:
            value = stablehlo.concatenate([value] * -(-needed // have[dimension]), dimension)
        if ir.RankedTensorType(value.type).shape[dimension] > needed:
            limits = [*have[:dimension], needed, *have[dimension + 1 :]]
            value = stablehlo.slice(value, [0] * due.rank, limits, [1] * due.rank)
    return value
