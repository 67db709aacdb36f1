"""One change at a time to the source of a Python function: what somebody might have written instead."""

from __future__ import annotations

import ast
import contextlib
import functools
import operator
from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass

from grader.findings.cases import FunctionChange

Changed = tuple[FunctionChange, ast.AST]

LARGEST_COUNT = 16  # up to here a number in a program is a count, of which one may have been missed
_INSTEAD = {  # of a function
    "min": ("max",),
    "max": ("min",),
    "argmin": ("argmax",),
    "argmax": ("argmin",),
    "minimum": ("maximum",),
    "maximum": ("minimum",),
    "sum": ("max", "mean"),
    "mean": ("sum",),
    "prod": ("sum",),
    "all": ("any",),
    "any": ("all",),
    "ceil": ("floor", "round"),
    "floor": ("ceil", "round"),
    "log2": ("log",),
}
OPERATORS: dict[type[ast.operator], tuple[str, tuple[tuple[type[ast.operator], str], ...]]] = {
    ast.Add: ("+", ((ast.Sub, "-"),)),
    ast.Sub: ("-", ((ast.Add, "+"), (ast.Div, "/"))),
    ast.Mult: ("*", ((ast.Div, "/"), (ast.Add, "+"))),
    ast.Div: ("/", ((ast.FloorDiv, "//"), (ast.Mult, "*"), (ast.Sub, "-"))),
    ast.FloorDiv: ("//", ((ast.Div, "/"), (ast.Mod, "%"))),
    ast.Mod: ("%", ((ast.FloorDiv, "//"),)),
}
WITH_EQUAL: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def changed_once(function: ast.AST, names: Collection[str]) -> Generator[FunctionChange]:
    """Each change, while it is made in the function; it is taken back before the next one. What is outside comes before
    what is inside it. `names` are the arguments that may be told."""
    for site in list(_sites(function)):
        for change, new in _changes(site.node, names):
            site.put(ast.fix_missing_locations(ast.copy_location(new, site.node)))
            with contextlib.ExitStack() as stack:
                stack.callback(site.put, site.node)
                yield change


@dataclass(frozen=True)
class _Site:
    """A place in a tree, its node, and how another node is put there."""

    node: ast.AST
    put: Callable[[ast.AST], None]


def _sites(function: ast.AST) -> Iterator[_Site]:
    for parent in ast.walk(function):
        for field, value in ast.iter_fields(parent):
            if isinstance(value, list):
                for k, node in enumerate(value):
                    yield _Site(node, functools.partial(operator.setitem, value, k))
            elif isinstance(value, ast.AST):
                yield _Site(value, functools.partial(setattr, parent, field))


def _changes(node: ast.AST, names: Collection[str]) -> Iterator[Changed]:
    """What might be in the place of this node."""
    rule = _RULES.get(type(node))
    if rule:
        yield from rule(node, names)


def _of_operation(node: ast.BinOp, names: Collection[str]) -> Iterator[Changed]:
    left, right = node.left, node.right
    sign, others = OPERATORS.get(type(node.op), ("", ()))
    for other, spelled in others:
        yield FunctionChange("instead", (spelled, sign)), ast.BinOp(left, other(), right)
    if isinstance(node.op, ast.Add):
        yield FunctionChange("not added", _named(right, names)), left
        yield FunctionChange("not added", _named(left, names)), right
    elif isinstance(node.op, ast.Sub):
        yield FunctionChange("not subtracted", _named(right, names)), left
    elif isinstance(node.op, ast.Mult):
        for factor, rest in ((right, left), (left, right)):
            yield FunctionChange("left out", _named(factor, names)), rest
    elif isinstance(node.op, (ast.Div, ast.FloorDiv)):
        yield FunctionChange("not divided by", _named(right, names)), left


def _named(part: ast.expr, names: Collection[str]) -> tuple[str, ...]:
    """An argument, or a number, by its name; nothing of anything else."""
    if isinstance(part, ast.Name) and part.id in names:
        return (part.id,)
    return (str(part.value),) if isinstance(part, ast.Constant) and type(part.value) in (int, float) else ()


def _of_comparison(node: ast.Compare, _: Collection[str]) -> Iterator[Changed]:
    if len(node.ops) == 1 and (other := WITH_EQUAL.get(type(node.ops[0]))):
        yield FunctionChange("equal numbers"), ast.Compare(node.left, [other()], node.comparators)


def _of_conditions(node: ast.BoolOp, _: Collection[str]) -> Iterator[Changed]:
    for k in range(len(node.values)):
        rest = [*node.values[:k], *node.values[k + 1 :]]
        yield FunctionChange("condition dropped"), rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _of_choice(node: ast.IfExp, _: Collection[str]) -> Iterator[Changed]:
    yield from ((FunctionChange("special case dropped"), part) for part in (node.body, node.orelse))


def _of_branch(node: ast.If, _: Collection[str]) -> Iterator[Changed]:
    for truth in (True, False):
        yield FunctionChange("special case dropped"), ast.If(ast.Constant(truth), node.body, node.orelse)


def _of_number(node: ast.Constant, _: Collection[str]) -> Iterator[Changed]:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > LARGEST_COUNT:
        return
    yield FunctionChange("number one larger"), ast.Constant(value + 1)
    yield FunctionChange("number one smaller"), ast.Constant(value - 1)


def _of_call(node: ast.Call, _: Collection[str]) -> Iterator[Changed]:
    name = _name_called(node)
    for other in _INSTEAD.get(name, ()):
        yield (
            FunctionChange("instead", (other, name)),
            ast.Call(_function_like(node.func, other), node.args, node.keywords),
        )


def _function_like(function: ast.expr, name: str) -> ast.expr:
    """A function of this name from the same module; rounding and summing are Python's own, and not of `math`."""
    if isinstance(function, ast.Attribute):
        of_math = isinstance(function.value, ast.Name) and function.value.id == "math"
        if not (of_math and name in ("round", "sum")):
            return ast.Attribute(function.value, name, ast.Load())
    return ast.Name(name, ast.Load())


def _name_called(node: ast.Call) -> str:
    """The name of a function that is called, without that of its module; "" if it has none."""
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")


def _of_attribute(node: ast.Attribute, _: Collection[str]) -> Iterator[Changed]:
    if node.attr == "T":
        yield FunctionChange("not transposed"), node.value


def _of_comprehension(node: ast.comprehension, _: Collection[str]) -> Iterator[Changed]:
    for k in range(len(node.ifs)):
        rest = [*node.ifs[:k], *node.ifs[k + 1 :]]
        yield FunctionChange("condition dropped"), ast.comprehension(node.target, node.iter, rest, node.is_async)


def _of_name(node: ast.Name, names: Collection[str]) -> Iterator[Changed]:
    if node.id in names and isinstance(node.ctx, ast.Load):
        for other in names:
            if other != node.id:
                yield FunctionChange("instead", (other, node.id)), ast.Name(other, ast.Load())
        yield FunctionChange("one less", (node.id,)), ast.BinOp(node, ast.Sub(), ast.Constant(1))
        yield FunctionChange("one more", (node.id,)), ast.BinOp(node, ast.Add(), ast.Constant(1))


_RULES: dict[type[ast.AST], Callable[..., Iterator[Changed]]] = {
    ast.BinOp: _of_operation,
    ast.Compare: _of_comparison,
    ast.BoolOp: _of_conditions,
    ast.IfExp: _of_choice,
    ast.If: _of_branch,
    ast.Constant: _of_number,
    ast.Call: _of_call,
    ast.Attribute: _of_attribute,
    ast.comprehension: _of_comprehension,
    ast.Name: _of_name,
}
