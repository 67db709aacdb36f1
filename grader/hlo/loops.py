"""How often a compiled loop runs, where its text says so."""

from __future__ import annotations

import re

from grader.hlo.text import Computation, Module, Operation

_KNOWN = re.compile(r"known_trip_count[^\d}]*(\d+)")
_SAME_VALUE = ("copy", "bitcast", "convert")


def iterations(loop: Operation, beside: Computation, module: Module) -> int | None:
    """How often a `while` runs that counts from a constant up to a constant; None where its text does not say."""
    known = _KNOWN.search(loop.rest)
    if known:
        return int(known[1])
    condition = module.computations[loop.attribute("condition")]
    body = module.computations[loop.attribute("body")]
    compared = next(op for op in condition.values() if op.root)
    if compared.attribute("direction") != "LT":
        return None
    counter, limit = _origin(compared.operands[0], condition), _constant(compared.operands[1], condition)
    if counter is None or not _is_carried(counter, condition):
        return None
    place = int(counter.attribute("index"))
    first = _constant(_element(loop.operands[0], place, beside), beside)
    root = next(op for op in body.values() if op.root)
    step = _step(root.operands[place], place, body) if root.kind == "tuple" else None
    if limit is None or first is None or step is None or step <= 0:
        return None
    return max(0, -((first - limit) // step))


def _element(name: str, place: int, beside: Computation) -> str:
    """The operand of a tuple that is at this place; "" where it is made elsewhere."""
    op = beside[name]
    return op.operands[place] if op.kind == "tuple" else ""


def _is_carried(op: Operation, beside: Computation) -> bool:
    """Whether an operation takes one of the values that the loop itself carries, and not another loop's result."""
    return op.kind == "get-tuple-element" and beside[op.operands[0]].kind == "parameter"


def _step(name: str, place: int, body: Computation) -> int | None:
    """By how much an iteration moves what is at this place of the loop's tuple, if by a constant."""
    added = _origin(name, body)
    if added is None or added.kind != "add":
        return None
    sides = [_origin(operand, body) for operand in added.operands]
    is_counter = any(op and _is_carried(op, body) and int(op.attribute("index")) == place for op in sides)
    constants = (_constant(operand, body) for operand in added.operands) if is_counter else ()
    return next((c for c in constants if c is not None), None)


def _constant(name: str, beside: Computation) -> int | None:
    """The integer that a name stands for."""
    op = _origin(name, beside)
    is_integer = op is not None and op.kind == "constant" and op.inputs.lstrip("-").isdecimal()
    return int(op.inputs) if op is not None and is_integer else None


def _origin(name: str, beside: Computation) -> Operation | None:
    """The operation that makes a value, behind copies of it."""
    op = beside.get(name)
    while op is not None and op.kind in _SAME_VALUE:
        op = beside.get(op.operands[0])
    return op
