"""Changes of single steps of a program: left out, exchanged, turned round, moved on by one, or followed by another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from grader.programs.operations import operations_in
from grader.programs.sites import (
    AT_A_PRODUCT,
    AT_A_RESULT,
    AT_AN_INDEX,
    Site,
    constant_of,
    is_condition,
    is_constant,
    is_whole,
    like,
    maker_of,
    stride_of,
)

UNARY_STEPS = ("exponential", "log", "tanh", "logistic", "sqrt", "rsqrt", "abs", "negate", "square")
OPPOSED = {"maximum": "minimum", "add": "subtract", "multiply": "divide"}
EXCHANGED = {f"stablehlo.{a}": f"stablehlo.{b}" for one, two in OPPOSED.items() for a, b in ((one, two), (two, one))}
MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "NE", "NE": "EQ"}
WITH_EQUAL = {"LT": "LE", "LE": "LT", "GT": "GE", "GE": "GT"}
SIDES = ("stablehlo.subtract", "stablehlo.divide")
STARTS = {"stablehlo.dynamic_slice": 1, "stablehlo.dynamic_update_slice": 2}  # the operands from which on starts stand
STEPS_ASIDE = {"one more": 1, "one less": -1, "one further": 1, "one back": -1}

# What could follow a step: a function of its result, in StableHLO.
FOLLOWING: Mapping[str, Callable[[ir.Value], ir.Value]] = {
    "relu": lambda value: stablehlo.maximum(value, like(value, 0)),
    "the square": lambda value: stablehlo.multiply(value, value),
    "the square root": lambda value: stablehlo.sqrt(value),
    "the other sign": lambda value: stablehlo.negate(value),
    "twice": lambda value: stablehlo.multiply(value, like(value, 2)),
    "half": lambda value: stablehlo.multiply(value, like(value, 0.5)),
}
TRANSPOSED, OVER_THE_ROOT = "transposed", "over the root"
STEP_WAYS = (
    *("turn about", "opposite", "other", "or equal", "one more", "one less", "one further", "one back", "other axis"),
    *("skip", OVER_THE_ROOT, "relu", "keep first", "keep second", TRANSPOSED),
    *(way for way in FOLLOWING if way != "relu"),
)


def step_ways(site: Site) -> Iterator[str]:
    """How a step could be changed, but for the index along another axis."""
    op, name = site.op, site.op.name
    if site.kind == AT_AN_INDEX:
        yield from STEPS_ASIDE
    elif name == "stablehlo.collective_permute":
        yield from ("one further", "one back")
    elif site.kind in (AT_A_PRODUCT, AT_A_RESULT, "all_reduce", "reduce_scatter"):
        yield from _following(site)
    elif name == "stablehlo.slice":
        yield from _slides(op) if op.operands[0].type.rank else ()
    elif name in STARTS:
        yield from ("one more", "one less")
    elif name.partition(".")[2] in UNARY_STEPS:
        yield "skip"
    else:
        yield from _of_two(op)


def _following(site: Site) -> Iterator[str]:
    if site.is_float:
        yield from ("relu", OVER_THE_ROOT) if site.kind == AT_A_PRODUCT else FOLLOWING
    if len(shape := site.tensor.shape) == 2 and shape[0] == shape[1] > 1:
        yield TRANSPOSED


def _of_two(op: ir.Operation) -> Iterator[str]:
    """Changes of a step of two operands, or of a choice between two."""
    name, whole = op.name, is_whole(op.operands[-1])
    by_constant = name == "stablehlo.divide" and is_constant(op.operands[1])  # as in a mean: no slip turns that about
    if (name in SIDES and not by_constant) or (name == "stablehlo.concatenate" and len(op.operands) > 1):
        yield "turn about"
    if name == "stablehlo.select":
        yield "turn about"
    if name == "stablehlo.compare" and not is_condition(op):
        yield "opposite" if _direction(op) in ("EQ", "NE") else "turn about"
    if name in EXCHANGED and not whole:
        yield "other"
    if name == "stablehlo.compare" and _direction(op) in WITH_EQUAL:
        yield "or equal"
    if any(constant_of(operand) is not None for operand in op.operands):
        yield from ("one more", "one less")
    if name in (*EXCHANGED, *SIDES) and not whole:
        yield "keep first"
        if name != "stablehlo.divide":
            yield "keep second"


def change_step(way: str, site: Site, along: tuple[str, ...], mesh: Mapping[str, int]) -> None:
    """Change a step in one of these ways; the operations made for it stand beside it."""
    op = site.op
    if way in ("turn about", "opposite"):
        _turn_about(op)
    elif way == "or equal":
        _compare_as(op, WITH_EQUAL[_direction(op)])
    elif way in ("skip", "keep first", "keep second"):
        op.results[0].replace_all_uses_with(op.operands[way == "keep second"])
    elif way == "other":
        with ir.InsertionPoint(op):
            made = ir.Operation.create(EXCHANGED[op.name], [op.results[0].type], list(op.operands))
        op.results[0].replace_all_uses_with(made.results[0])
    elif way == "other axis":
        _index_along(op, along[0], mesh)
    elif op.name == "stablehlo.collective_permute":
        pairs = np.array(ir.DenseIntElementsAttr(op.attributes["source_target_pairs"]))
        op.attributes["source_target_pairs"] = numbers_of(_moved(pairs, along[0], STEPS_ASIDE[way], mesh))
    elif site.kind == AT_AN_INDEX:
        turns = mesh[site.index[0]] if way in ("one further", "one back") else 0
        follow(site, lambda value: _added(value, STEPS_ASIDE[way], turns))
    elif op.name == "stablehlo.slice":
        _slide(op, STEPS_ASIDE[way])
    elif way in STEPS_ASIDE:
        _recount(op, STEPS_ASIDE[way])
    else:
        follow(site, lambda value: _next(way, site, value))


def _next(way: str, site: Site, value: ir.Value) -> ir.Value:
    if way == TRANSPOSED:
        return stablehlo.transpose(value, [1, 0])
    if way == OVER_THE_ROOT:
        return stablehlo.multiply(value, like(value, summed(site.op) ** -0.5))
    return FOLLOWING[way](value)


def summed(product: ir.Operation) -> int:
    """How many numbers are added up for each entry of a product of matrices."""
    dims: Any = stablehlo.DotDimensionNumbers(product.attributes["dot_dimension_numbers"])
    shape = ir.RankedTensorType(product.operands[0].type).shape
    return int(np.prod([shape[k] for k in dims.lhs_contracting_dimensions]))


def follow(site: Site, step: Callable[[ir.Value], ir.Value]) -> None:
    """Let a step come behind what is made here, or, where the operation makes nothing, before it takes it."""
    op = site.op
    if site.kind == AT_A_RESULT:
        with ir.InsertionPoint(op):
            op.operands[site.operand] = step(op.operands[site.operand])
        return
    value = op.results[0]
    users = [(use.owner.operation, use.operand_number) for use in value.uses]
    with behind(op):
        made = step(value)
    for user, number in users:
        user.operands[number] = made


def behind(op: ir.Operation) -> ir.InsertionPoint:
    """Where operations are made that are to stand behind one."""
    following = list(operations_in(op.block))
    return ir.InsertionPoint(following[following.index(op) + 1])


def _turn_about(op: ir.Operation) -> None:
    if op.name == "stablehlo.compare":
        _compare_as(op, MIRRORED[_direction(op)])
        return
    first = 1 if op.name == "stablehlo.select" else 0  # behind the condition
    for k, operand in enumerate(reversed(list(op.operands)[first:])):
        op.operands[first + k] = operand


def _direction(op: ir.Operation) -> str:
    return str(stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value)


def _compare_as(op: ir.Operation, direction: str) -> None:
    op.attributes["comparison_direction"] = stablehlo.ComparisonDirectionAttr.get(direction)


def _index_along(op: ir.Operation, axis: str, mesh: Mapping[str, int]) -> None:
    """Let what computes the index along an axis compute that along another."""
    rest = maker_of(op.operands[0], "stablehlo.remainder")
    with ir.InsertionPoint(op):
        number = maker_of(rest.operands[0], "stablehlo.divide").operands[0]
        quotient = stablehlo.divide(number, like(number, stride_of(axis, mesh)))
        op.operands[0] = stablehlo.remainder(quotient, like(number, mesh[axis]))


def _added(value: ir.Value, step: int, turns: int) -> ir.Value:
    """A number that is one more or less, and where it counts round, begins again behind the last."""
    total = stablehlo.add(value, like(value, step + turns))
    return stablehlo.remainder(total, like(value, turns)) if turns else total


def _moved(pairs: np.ndarray, axis: str, step: int, mesh: Mapping[str, int]) -> np.ndarray:
    """Who sends to whom, where each receives what now its neighbour along an axis does."""
    devices = np.arange(np.prod(list(mesh.values()))).reshape(tuple(mesh.values()))
    neighbour = np.roll(devices, -step, list(mesh).index(axis)).ravel()
    return np.stack([pairs[:, 0], neighbour[pairs[:, 1]]], axis=1)


def numbers_of(table: np.ndarray) -> ir.DenseIntElementsAttr:
    """A table of whole numbers as an attribute."""
    contiguous: Any = np.ascontiguousarray(table)  # NumPy's stubs do not say that an array is a buffer
    return ir.DenseIntElementsAttr.get(contiguous)


def _slides(op: ir.Operation) -> Iterator[str]:
    """Whether a slice could begin and end one later, or one earlier."""
    start, limit, whole = _part(op)
    if limit - start < whole:
        yield from (["one more"] if limit < whole else [])
        yield from (["one less"] if start else [])


def _part(op: ir.Operation) -> tuple[int, int, int]:
    """Where a slice begins and ends along the first dimension of which it is a part, and how long that is."""
    k = _sliced(op)
    return (
        _ends(op, "start_indices")[k],
        _ends(op, "limit_indices")[k],
        ir.RankedTensorType(op.operands[0].type).shape[k],
    )


def _sliced(op: ir.Operation) -> int:
    whole = ir.RankedTensorType(op.operands[0].type).shape
    parts = zip(_ends(op, "start_indices"), _ends(op, "limit_indices"), whole, strict=True)
    return next((k for k, (start, limit, n) in enumerate(parts) if limit - start < n), 0)


def _ends(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def _slide(op: ir.Operation, step: int) -> None:
    """Let a slice begin and end one later or earlier, along the first dimension of which it is a part."""
    k = _sliced(op)
    for name in ("start_indices", "limit_indices"):
        ends = _ends(op, name)
        op.attributes[name] = ir.DenseI64ArrayAttr.get([*ends[:k], ends[k] + step, *ends[k + 1 :]])


def _recount(op: ir.Operation, step: int) -> None:
    """Let an operation take a whole number that is one more or less: where a slice starts, or the last constant."""
    starts = range(STARTS.get(op.name, len(op.operands)), len(op.operands))
    constants = [k for k, operand in enumerate(op.operands) if constant_of(operand) is not None]
    k = next((k for k in starts if k not in constants), starts[0]) if starts else constants[-1]
    with ir.InsertionPoint(op):
        op.operands[k] = stablehlo.add(op.operands[k], like(op.operands[k], step))
