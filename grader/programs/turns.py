"""How often each device comes by a place of a program, where the text alone says it.

Whole numbers without dimensions are followed: constants, a device's own number, and arithmetic on them. They decide
who takes a branch, and how often each device goes round a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import stablehlo

from grader.jax_versions import is_argument
from grader.programs.operations import callee_of, last

DEEPEST = 100  # operations followed one behind the other; what is deeper counts as unknown

_TYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
}
_ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "divide": np.floor_divide,
    "remainder": np.remainder,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "negate": np.negative,
    "select": np.where,
    "convert": np.copy,
    "copy": np.copy,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
}
_COMPARED = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}

Numbers = np.ndarray | None  # one for each device; None where the text does not say


class Known:
    """The whole numbers of one function that its text fixes: one for each of so many devices."""

    def __init__(self, devices: int, functions: Mapping[str, ir.Operation], depth: int = 0):
        self.devices, self.functions, self._depth = devices, functions, depth
        self._numbers: dict[ir.Value, Numbers] = {}
        self._given: dict[ir.Value, ir.Value] = {}

    def inside(self, function: ir.Operation, operands: Iterable[ir.Value]) -> Known:
        """What is known in a function that is called with these operands."""
        called = Known(self.devices, self.functions, self._depth)
        arguments: list[ir.Value] = [ir.Value(argument) for argument in function.regions[0].blocks[0].arguments]
        for argument, value in zip(arguments, operands, strict=True):
            called._numbers[argument] = self(value)
            called._given[argument] = self.as_given(value)
        return called

    def as_given(self, value: ir.Value) -> ir.Value:
        """What a function was called with where the value is an argument of it; else the value itself."""
        return self._given.get(value, value)

    def __call__(self, value: ir.Value) -> Numbers:
        if value not in self._numbers:
            self._depth += 1
            self._numbers[value] = self._worked_out(value) if self._depth < DEEPEST else None
            self._depth -= 1
        return self._numbers[value]

    def _worked_out(self, value: ir.Value) -> Numbers:
        element = _TYPES.get(str(value.type).removeprefix("tensor<").removesuffix(">"))
        if element is None:
            return None
        if is_argument(value):
            return self._carried(ir.BlockArgument(value))
        op = ir.OpResult(value).owner.operation
        if callee := callee_of(op):
            function = self.functions[callee]
            returned = last(function.regions[0].blocks[0]).operands[ir.OpResult(value).result_number]
            return self.inside(function, op.operands)(returned)
        name = op.name.removeprefix("mhlo.").removeprefix("stablehlo.")  # a copy is mhlo's
        if name == "partition_id":
            return np.arange(self.devices, dtype=element)
        if name == "constant":
            return np.full(self.devices, np.array(ir.DenseElementsAttr(op.attributes["value"])), element)
        if name not in _ARITHMETIC and name != "compare":
            return None
        numbers = [n for v in op.operands if (n := self(v)) is not None]
        if len(numbers) < len(op.operands):
            return None
        if name == "compare":
            return _COMPARED[_direction(op)](*numbers)
        if name in ("divide", "remainder") and np.any((numbers[0] < 0) | (numbers[1] <= 0)):
            return None  # NumPy and the devices round negative numbers differently
        with np.errstate(over="ignore"):
            return _ARITHMETIC[name](*numbers).astype(element)

    def _carried(self, argument: ir.BlockArgument) -> Numbers:
        """A value that a loop carries along unchanged is what it was before."""
        loop = argument.owner.owner
        if loop is None or loop.operation.name != "stablehlo.while":
            return None
        op, number = loop.operation, argument.arg_number
        body = op.regions[1].blocks[0]
        unchanged = last(body).operands[number] == body.arguments[number]
        return self(op.operands[number]) if unchanged else None

    def branch(self, op: ir.Operation) -> Numbers:
        """Which region of a branch each device takes."""
        chosen = self(op.operands[0])
        if chosen is None:
            return None
        if op.name == "stablehlo.if":
            return np.where(chosen, 0, 1)
        outside = (chosen < 0) | (chosen >= len(op.regions))  # the last one is then taken
        return np.where(outside, len(op.regions) - 1, chosen)

    def turns(self, op: ir.Operation) -> Numbers:
        """Turns of a loop `while i < limit` that counts up by a fixed step."""
        condition, body = (region.blocks[0] for region in op.regions)
        compared = _made_by(last(condition).operands[0], "stablehlo.compare")
        if compared is None or _direction(compared) != "LT":
            return None
        counted = _as_it_was(compared.operands[0])
        if not is_argument(counted):
            return None
        counter: ir.BlockArgument = ir.BlockArgument(counted)
        if counter.owner != condition:
            return None
        addition = _made_by(last(body).operands[counter.arg_number], "stablehlo.add")
        if addition is None:
            return None
        steps = [v for v in addition.operands if _as_it_was(v) != body.arguments[counter.arg_number]]
        if len(steps) != 1:
            return None
        first, limit, step = self(op.operands[counter.arg_number]), self(compared.operands[1]), self(steps[0])
        if first is None or limit is None or step is None or (step <= 0).any():
            return None
        most = np.iinfo(limit.dtype).max
        first, limit, step = (n.astype(object) for n in (first, limit, step))  # whole numbers of any size
        turns = np.maximum(0, -((first - limit) // step))
        return turns if (first + turns * step <= most).all() else None  # else the counter turns over


def _as_it_was(value: ir.Value) -> ir.Value:
    """The value itself, without conversions to the type that it has already, and without the compiler's copies."""
    made = _made_by(value, "stablehlo.convert") or _made_by(value, "mhlo.copy")
    return made.operands[0] if made is not None and made.operands[0].type == value.type else value


def _made_by(value: ir.Value, name: str) -> ir.Operation | None:
    if is_argument(value):
        return None
    op = ir.OpResult(value).owner
    return op.operation if op.operation.name == name else None


def _direction(op: ir.Operation) -> str:
    return stablehlo.ComparisonDirectionAttr(op.attributes["comparison_direction"]).value


def only(numbers: Any) -> int | None:
    """The number that is the same for every device; None where there is none."""
    return int(numbers[0]) if numbers is not None and (numbers == numbers[0]).all() else None
