"""The sites of a program's text at which it could be changed: its collectives, products, results, and single steps."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from grader.programs.collectives import OF_STABLEHLO
from grader.programs.operations import (
    blocks_in,
    callee_of,
    first_mesh,
    functions_in,
    last,
    manual_axes,
    meshes_in,
    operations_in,
)

AT_A_PRODUCT, AT_A_RESULT, AT_AN_INDEX = "product", "result", "axis_index"
# Steps that a student writes, as one of them could be called in a sentence.
STEPS = {
    "stablehlo.add": "addition",
    "stablehlo.subtract": "subtraction",
    "stablehlo.multiply": "multiplication",
    "stablehlo.divide": "division",
    "stablehlo.maximum": "elementwise maximum",
    "stablehlo.minimum": "elementwise minimum",
    "stablehlo.compare": "comparison",
    "stablehlo.select": "`where`",
    "stablehlo.concatenate": "`concatenate`",
    "stablehlo.slice": "slice",
    "stablehlo.dynamic_slice": "`dynamic_slice`",
    "stablehlo.dynamic_update_slice": "`dynamic_update_slice`",
    "stablehlo.exponential": "`exp`",
    "stablehlo.log": "`log`",
    "stablehlo.tanh": "`tanh`",
    "stablehlo.logistic": "`sigmoid`",
    "stablehlo.sqrt": "square root",
    "stablehlo.rsqrt": "division by a root",
    "stablehlo.abs": "absolute value",
    "stablehlo.negate": "change of sign",
    "chlo.square": "square",
}
LOOPS = ("stablehlo.while", "stablehlo.case", "stablehlo.if")
ENDS = ("stablehlo.return", "func.return", "sdy.return")


@dataclass(frozen=True)
class Site:
    """An operation, which of its kind it is, the axes of the shard_map around it, and which operand is meant.

    `index` are the axes whose position on the mesh it computes, where it does. `shared`: it stands in a function that
    is called more than once, so that it cannot be changed for one call alone.
    """

    op: ir.Operation
    kind: str
    number: int
    manual: tuple[str, ...]
    operand: int = 0
    index: tuple[str, ...] = ()
    shared: bool = False

    @property
    def tensor(self) -> ir.RankedTensorType:
        """The type of what could be changed here: of the operand that is meant, where the operation makes nothing."""
        value = self.op.results[0] if len(self.op.results) else self.op.operands[self.operand]
        return ir.RankedTensorType(value.type)

    @property
    def is_float(self) -> bool:
        return str(self.tensor.element_type) in ("f32", "f64", "bf16", "f16")


@dataclass(frozen=True)
class _Walk:
    """What a walk through a module needs to know of it."""

    functions: Mapping[str, ir.Operation]
    mesh: Mapping[str, int]
    once: frozenset[str]  # the functions that are called from one place only
    steps: bool  # whether single steps may be changed, too
    whole_numbers: bool  # and whole numbers


def sites_of(module: ir.Module, root: str = "main") -> Iterator[Site]:
    """All sites of a function of a module, in the order of execution; what is called is followed, loops once.

    Where a collective stands in a loop or a branch, the whole numbers are left as they are: on them it depends who
    comes by, and one that nobody else reaches would wait for ever. So are all steps where a loop ends by a float.
    """
    functions, met = functions_in(module), Counter[str]()
    inside = list(_operations(functions[root], functions, ()))
    calls = Counter(callee_of(op) for op, _ in inside)
    loops = [op for op, _ in inside if op.name == "stablehlo.while"]
    steps = not any(_ends_by_a_float(op) for op in loops)
    numbers = not any(op.name in OF_STABLEHLO and around for op, around in inside)
    once = frozenset(name for name, count in calls.items() if count == 1)
    walk = _Walk(functions, first_mesh(meshes_in(module)), once, steps, numbers)
    for site in _inside(functions[root], walk, (), False):
        yield replace(site, number=met[site.kind])
        met[site.kind] += 1


def _operations(
    op: ir.Operation, functions: Mapping[str, ir.Operation], around: tuple[str, ...]
) -> Iterator[tuple[ir.Operation, tuple[str, ...]]]:
    """All operations that an operation comes by, with the loops and branches around them."""
    for inner in (inner for block in blocks_in(op) for inner in operations_in(block)):
        yield inner, around
        within = (*around, inner.name) if inner.name in LOOPS else around
        yield from _operations(functions[callee] if (callee := callee_of(inner)) else inner, functions, within)


def _ends_by_a_float(loop: ir.Operation) -> bool:
    """Whether a loop goes on until a float says so: with another number it might never end."""
    compared = (op for op in operations_in(next(blocks_in(loop))) if op.name == "stablehlo.compare")
    return any("i" not in str(ir.RankedTensorType(op.operands[0].type).element_type) for op in compared)


def _inside(op: ir.Operation, walk: _Walk, manual: tuple[str, ...], shared: bool) -> Iterator[Site]:
    for inner in (inner for block in blocks_in(op) for inner in operations_in(block)):
        if inner.name in OF_STABLEHLO:
            yield Site(inner, OF_STABLEHLO[inner.name], 0, manual, shared=shared)
            continue
        if inner.name == "sdy.return":
            yield from (Site(inner, AT_A_RESULT, 0, manual, k) for k in range(len(inner.operands)))
        elif inner.name == "stablehlo.dot_general" and manual:
            yield Site(inner, AT_A_PRODUCT, 0, manual, shared=shared)
        elif walk.steps and (axes := index_axes(inner, walk.mesh)):
            yield Site(inner, AT_AN_INDEX, 0, manual, 0, axes, shared)
        elif walk.steps and _may_change(inner, walk):
            yield Site(inner, _step_words(inner), 0, manual, shared=shared)
        if inner.name == "sdy.manual_computation":
            yield from _inside(inner, walk, manual_axes(inner), shared)
        elif callee := callee_of(inner):
            yield from _inside(walk.functions[callee], walk, manual, shared or callee not in walk.once)
        elif inner.name in LOOPS:
            yield from _inside(inner, walk, manual, shared)


def _may_change(op: ir.Operation, walk: _Walk) -> bool:
    """Whether a step is one of those that may be changed; the counters of loops, which are returned, are not."""
    if op.name not in STEPS:
        return False
    if is_whole(op.operands[-1]):
        counts = is_whole(op.results[0]) and any(use.owner.operation.name in ENDS for use in op.results[0].uses)
        return walk.whole_numbers and not counts
    return str(ir.RankedTensorType(op.operands[-1].type).element_type).startswith(("f", "bf"))


def _step_words(op: ir.Operation) -> str:
    """What a step is called. Sums of whole numbers count apart: of those JAX makes many where it finds a place."""
    computes = op.name in ("stablehlo.add", "stablehlo.subtract", "stablehlo.multiply", "stablehlo.divide")
    return f"{STEPS[op.name]}{' of whole numbers' if computes and is_whole(op.operands[-1]) else ''}"


def is_whole(value: ir.Value) -> bool:
    """Whether a value's entries are whole numbers that may be negative."""
    return str(ir.RankedTensorType(value.type).element_type) in ("i32", "i64")


def index_axes(op: ir.Operation, mesh: Mapping[str, int]) -> tuple[str, ...]:
    """The axis whose index this computes of the device's number, as `jax.lax.axis_index` does: number // a % b."""
    if op.name != "stablehlo.convert" or not (rest := maker_of(op.operands[0], "stablehlo.remainder")):
        return ()
    quotient = maker_of(rest.operands[0], "stablehlo.divide")
    if not quotient or not maker_of(quotient.operands[0], "stablehlo.partition_id"):
        return ()
    stride, size = constant_of(quotient.operands[1]), constant_of(rest.operands[1])
    found = (name for name in mesh if (stride_of(name, mesh), mesh[name]) == (stride, size))
    return tuple(itertools.islice(found, 1))


def stride_of(axis: str, mesh: Mapping[str, int]) -> int:
    """By how much the numbers of neighbours along an axis differ."""
    names = list(mesh)
    return math.prod(mesh[name] for name in names[names.index(axis) + 1 :])


def maker_of(value: ir.Value, name: str) -> Any:
    """The operation of this name that makes a value; None where another does."""
    owner: Any = value.owner
    op = getattr(owner, "operation", None)
    return op if op is not None and op.name == name else None


def is_constant(value: ir.Value) -> bool:
    """Whether a value is known before the program runs."""
    return _constant_behind(value) is not None


def constant_of(value: ir.Value) -> int | None:
    """The whole number that a value is everywhere; None for any other."""
    made = _constant_behind(value)
    if made is None or not str(ir.RankedTensorType(made.results[0].type).element_type).lstrip("u").startswith("i"):
        return None
    numbers = np.unique(np.array(ir.DenseIntElementsAttr(made.attributes["value"])))
    return int(numbers[0]) if len(numbers) == 1 else None


def _constant_behind(value: ir.Value) -> Any:
    """The constant that a value is made of without being changed; None where there is none."""
    while spread := maker_of(value, "stablehlo.broadcast_in_dim") or maker_of(value, "stablehlo.convert"):
        value = spread.operands[0]
    return maker_of(value, "stablehlo.constant")


def is_condition(op: ir.Operation) -> bool:
    """Whether a step decides if a loop goes on."""
    parent = op.parent
    return (
        parent is not None
        and parent.name == "stablehlo.while"
        and last(next(blocks_in(parent))).operands[0] == (op.results[0])
    )


def is_summed(maker: Any) -> bool:
    """Whether other repairs add up what this makes."""
    return getattr(maker, "name", "") in ("stablehlo.dot_general", "stablehlo.all_reduce")


def like(value: ir.Value, number: float) -> ir.Value:
    """The same number everywhere, in a tensor of a value's type."""
    tensor = ir.RankedTensorType(value.type)
    element = tensor.element_type
    kind: Any = ir.IntegerAttr if str(element).lstrip("u").startswith("i") else ir.FloatAttr
    return stablehlo.constant(ir.DenseElementsAttr.get_splat(tensor, kind.get(element, number)))
