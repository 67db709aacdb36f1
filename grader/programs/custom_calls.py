"""Calls of a program by name: which of them JAX itself writes, and what each may look like.

What is called by a name is code on the machine that believes the shapes it is told. So a name alone is not enough: a
result of another size would have it read or write what is beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jax.extend.mlir import ir

from grader.programs.operations import blocks_in, operations_in

# What a call may say besides its name. None of it names other code, or lets a result be in an operand's place.
SAID = {
    *("call_target_name", "has_side_effect", "mhlo.attributes", "mhlo.frontend_attributes", "mhlo.sharding"),
    *("mhlo.version", "operand_layouts", "result_layouts", "sdy.sharding"),
}


def foreign(op: ir.Operation) -> Iterator[str]:
    """The names of what an operation calls that JAX does not call in this way, at any depth, reached or not."""
    if op.name == "stablehlo.custom_call":
        name = ir.StringAttr(op.attributes["call_target_name"]).value
        if name not in _OURS or not SAID.issuperset(_attributes(op)) or not _OURS[name](op):
            yield name
    for block in blocks_in(op):
        for inner in operations_in(block):
            yield from foreign(inner)


def _attributes(op: ir.Operation) -> list[str]:
    names = (attribute if isinstance(attribute, str) else attribute.name for attribute in op.attributes)
    return list(names)


def _as_it_was(op: ir.Operation) -> bool:
    """One tensor in, and one of the same type out."""
    return [value.type for value in op.operands] == [value.type for value in op.results] and len(op.operands) == 1


def _largest(op: ir.Operation) -> bool:
    """Of the last dimension the k largest, and where they stand in it."""
    if len(op.operands) != 1 or len(op.results) != 2 or "mhlo.attributes" not in op.attributes:
        return False
    given, values, places = (ir.RankedTensorType(value.type) for value in (*op.operands, *op.results))
    said = ir.DictAttr(op.attributes["mhlo.attributes"])
    k = ir.IntegerAttr(said["k"]).value if "k" in said else -1
    return (
        given.rank > 0
        and 0 <= k <= given.shape[-1]
        and values.shape == places.shape == [*given.shape[:-1], k]
        and values.element_type == given.element_type
        and str(places.element_type) == "i32"
    )


_OURS: Mapping[str, Callable[[ir.Operation], bool]] = {
    "LayoutConstraint": _as_it_was,
    "Sharding": _as_it_was,
    "annotate_device_placement": _as_it_was,
    "mhlo.erf": _as_it_was,  # so written by JAX 0.7, and the next
    "mhlo.topk": _largest,
}
