"""One change at a time to a Python function: what somebody might have written in its place, in words.

The words go on from "when": they name a kind of operation, and an argument where it is one of the student's own, and
never a line of the function.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import operator
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

_Change = tuple[str, ast.AST]

LARGEST_COUNT = 16  # up to here a number in a program is a count, of which one may have been missed
DROPPED = {
    "abs": "an absolute value is not taken",
    "ceil": "a number is not rounded up",
    "floor": "a number is not rounded down",
    "round": "a number is not rounded",
    "sqrt": "a root is not taken",
    "exp": "an exponential is left out",
    "log": "a logarithm is not taken",
    "log2": "a logarithm is not taken",
    "softmax": "a softmax is left out",
    "relu": "a relu is left out",
    "sorted": "a list is not sorted",
    "argsort": "numbers themselves stand where their order should",
    "reversed": "an order is not turned round",
    "cumsum": "numbers are not added up on the way",
}
IN_PLACE_OF = {
    "min": [("max", "the largest is taken where the smallest should be")],
    "max": [("min", "the smallest is taken where the largest should be")],
    "argmin": [("argmax", "the largest is looked for where the smallest should be")],
    "argmax": [("argmin", "the smallest is looked for where the largest should be")],
    "minimum": [("maximum", "the larger of two is taken where the smaller should be")],
    "maximum": [("minimum", "the smaller of two is taken where the larger should be")],
    "sum": [
        ("max", "the largest is taken where all should be added up"),
        ("mean", "a mean is taken where a sum should be"),
    ],
    "mean": [("sum", "a sum is taken where a mean should be")],
    "prod": [("sum", "things are added that should be multiplied")],
    "all": [("any", "it is enough that one of them is so, where all should be")],
    "any": [("all", "all of them must be so, where one is enough")],
    "ceil": [
        ("floor", "it is rounded down where it should be rounded up"),
        ("round", "it is rounded to the nearest where it should be rounded up"),
    ],
    "floor": [
        ("ceil", "it is rounded up where it should be rounded down"),
        ("round", "it is rounded to the nearest where it should be rounded down"),
    ],
    "log2": [("log", "the natural logarithm is taken for that to base 2")],
}
ROUNDINGS_HANDED_ON = ("ceil", "floor")
OPERATIONS: dict[type[ast.operator], list[tuple[type[ast.operator], str]]] = {
    ast.Add: [(ast.Sub, "something is subtracted that should be added")],
    ast.Sub: [
        (ast.Add, "something is added that should be subtracted"),
        (ast.Div, "a quotient is taken where a difference should be"),
    ],
    ast.Mult: [
        (ast.Div, "something is a divisor that should be a factor"),
        (ast.Add, "two things are added that should be multiplied"),
    ],
    ast.Div: [
        (ast.FloorDiv, "a quotient is rounded down"),
        (ast.Mult, "something is a factor that should be a divisor"),
        (ast.Sub, "a difference is taken where a quotient should be"),
    ],
    ast.FloorDiv: [
        (ast.Div, "a quotient is not rounded"),
        (ast.Mod, "the remainder is taken where the quotient should be"),
    ],
    ast.Mod: [(ast.FloorDiv, "the quotient is taken where the remainder should be")],
    ast.MatMult: [(ast.Mult, "matrices are multiplied entry by entry")],
}
# (Whether that lets equal numbers in or keeps them out depends on how a condition is written.)
OF_EQUALS = "a comparison of two equal numbers comes out the other way"
TURNED = "a comparison is turned round"
NEGATED = "a condition is turned into its opposite"
COMPARISONS: dict[type[ast.cmpop], list[tuple[type[ast.cmpop], str]]] = {
    ast.Lt: [(ast.LtE, OF_EQUALS), (ast.Gt, TURNED)],
    ast.LtE: [(ast.Lt, OF_EQUALS), (ast.GtE, TURNED)],
    ast.Gt: [(ast.GtE, OF_EQUALS), (ast.Lt, TURNED)],
    ast.GtE: [(ast.Gt, OF_EQUALS), (ast.LtE, TURNED)],
    ast.Eq: [(ast.NotEq, NEGATED)],
    ast.NotEq: [(ast.Eq, NEGATED)],
    ast.In: [(ast.NotIn, NEGATED)],
    ast.NotIn: [(ast.In, NEGATED)],
}
ONE_CASE = "a case that is different is not told apart from the others"
NOT_ASKED = "one of several conditions is not asked for"
AND_OR = "`or` joins conditions where `and` should, or `and` where `or` should"


def changed_once(function: ast.AST, names: Collection[str]) -> Generator[str]:
    """Each change in words, while it is made in the function, in one place and then in all places at once; it is taken
    back before the next one.

    `names` are those of the arguments that may be told.
    """
    sites = list(_sites(function))
    places: Counter[str] = Counter()
    for site in sites:
        for words in dict.fromkeys(words for words, _ in _changes(site.node, names)):
            places[words] += not isinstance(site.node, ast.Constant)
        for words, new in _changes(site.node, names):
            with _made([(site, new)]):
                yield words
    for everywhere in (words for words, count in places.items() if count > 1):
        with _made(_everywhere(sites, everywhere, names)):
            yield everywhere


@dataclass(frozen=True)
class _Site:
    """A place in a tree, what stands there, and how another node is put there."""

    node: ast.AST
    put: Callable[[ast.AST], None]


def _sites(function: ast.AST) -> Iterator[_Site]:
    """What is outside comes before what is in it."""
    for parent in ast.walk(function):
        for field, value in ast.iter_fields(parent):
            if isinstance(value, list):
                for k, node in enumerate(value):
                    yield _Site(node, functools.partial(operator.setitem, value, k))
            elif isinstance(value, ast.AST):
                yield _Site(value, functools.partial(setattr, parent, field))


def _everywhere(sites: Sequence[_Site], words: str, names: Collection[str]) -> Iterator[tuple[_Site, ast.AST]]:
    """The same change in all its places; each is worked out when those inside have been made."""
    for site in reversed(sites):
        new = next((new for said, new in _changes(site.node, names) if said == words), None)
        if new:
            yield site, new


@contextlib.contextmanager
def _made(changes: Iterable[tuple[_Site, ast.AST]]) -> Iterator[None]:
    done = []
    try:
        for site, new in changes:
            done.append(site)
            site.put(ast.fix_missing_locations(ast.copy_location(new, site.node)))
        yield
    finally:
        for site in done:
            site.put(site.node)


def _changes(node: ast.AST, names: Collection[str]) -> Iterator[_Change]:
    """What might stand in the place of this node, in words."""
    if isinstance(node, ast.BinOp):
        yield from _of_operation(node, names)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        yield NEGATED if isinstance(node.op, ast.Not) else "a sign is left out", node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for op, words in COMPARISONS.get(type(node.ops[0]), []):
            yield words, ast.Compare(node.left, [op()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield from _of_conditions(node)
    elif isinstance(node, ast.IfExp):
        yield from ((ONE_CASE, node.body), (ONE_CASE, node.orelse))
    elif isinstance(node, ast.If):
        yield from ((ONE_CASE, ast.If(ast.Constant(truth), node.body, node.orelse)) for truth in (True, False))
    elif isinstance(node, ast.Constant):
        yield from _of_number(node)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Subscript):
        yield from _of_part(node)
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield "a matrix is not transposed", node.value
    elif isinstance(node, ast.Attribute) and node.attr in ROUNDINGS_HANDED_ON:  # a function that is handed on
        for other, words in IN_PLACE_OF[node.attr]:
            yield words, _function_like(node, other)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield "only the last is kept of what should be added up", ast.Assign([node.target], node.value)
    elif isinstance(node, ast.For):
        for words, turns in _of_turns(node.iter):
            yield words, ast.For(node.target, turns, node.body, node.orelse)
    elif isinstance(node, ast.comprehension):
        yield from _of_comprehension(node)
    elif isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load):
        for other in names:
            if other != node.id:
                yield f"`{other}` stands where `{node.id}` should", ast.Name(other, ast.Load())
        for by, words in ((-1, "one less than"), (1, "one more than")):
            yield f"{words} `{node.id}` stands where `{node.id}` should", ast.BinOp(node, ast.Add(), ast.Constant(by))


def _of_operation(node: ast.BinOp, names: Collection[str]) -> Iterator[_Change]:
    left, right = node.left, node.right
    for op, words in OPERATIONS.get(type(node.op), []):
        yield words, ast.BinOp(left, op(), right)
    if isinstance(node.op, ast.Add):
        yield from _of_a_sum(left, right)
        yield _without(right, names, "`{}` is not added", "a term of a sum is left out"), left
        yield _without(left, names, "`{}` is not added", "a term of a sum is left out"), right
    elif isinstance(node.op, ast.Sub):
        yield _without(right, names, "`{}` is not subtracted", "something is not subtracted that should be"), left
        yield "the two sides of a difference are exchanged", ast.BinOp(right, node.op, left)
    elif isinstance(node.op, ast.Mult):
        for factor, other in ((right, left), (left, right)):
            yield from _of_one_term(factor, other)
            yield _without(factor, names, "the factor `{}` is left out", "a factor is left out"), other
            yield (
                _without(factor, names, "the factor `{}` is taken twice", "a factor is taken twice"),
                ast.BinOp(node, ast.Mult(), factor),
            )
    elif isinstance(node.op, (ast.Div, ast.FloorDiv)):
        yield _without(right, names, "it is not divided by `{}`", "a divisor is left out"), left
        yield "a quotient is turned upside down", ast.BinOp(right, node.op, left)
        up = ast.UnaryOp(ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), left), ast.FloorDiv(), right))
        yield "a quotient is rounded up", up
    elif isinstance(node.op, ast.MatMult):
        yield "the two factors of a matrix product are exchanged", ast.BinOp(right, node.op, left)
    elif isinstance(node.op, (ast.Mod, ast.Pow)):
        yield ("a remainder is not taken" if isinstance(node.op, ast.Mod) else "a power is left out"), left


def _of_a_sum(left: ast.expr, right: ast.expr) -> Iterator[_Change]:
    """A function of numbers that is taken of a sum, and should be taken of each of its two terms."""
    if not isinstance(left, ast.Call) or not isinstance(right, ast.Call) or _name_called(left) not in DROPPED:
        return
    if ast.dump(left.func) == ast.dump(right.func) and len(left.args) == len(right.args) == 1:
        words = f"`{_name_called(left)}` is taken of a sum, and should be taken of each of its terms"
        yield words, ast.Call(left.func, [ast.BinOp(left.args[0], ast.Add(), right.args[0])], [])


def _of_one_term(factor: ast.expr, whole: ast.expr) -> Iterator[_Change]:
    """A factor of one term of a sum that should be a factor of all of it, as where brackets are forgotten."""
    if isinstance(whole, ast.BinOp) and isinstance(whole.op, (ast.Add, ast.Sub)):
        words = "a factor of a whole sum or difference is a factor of one of its terms only"
        yield words, ast.BinOp(ast.BinOp(factor, ast.Mult(), whole.left), whole.op, whole.right)
        yield words, ast.BinOp(whole.left, whole.op, ast.BinOp(factor, ast.Mult(), whole.right))


def _without(part: ast.expr, names: Collection[str], named: str, unnamed: str) -> str:
    if isinstance(part, ast.Name) and part.id in names:
        return named.format(part.id)
    if isinstance(part, ast.Constant) and type(part.value) in (int, float):
        return named.format(part.value)
    return unnamed


def _of_conditions(node: ast.BoolOp) -> Iterator[_Change]:
    for k in range(len(node.values)):
        rest = [*node.values[:k], *node.values[k + 1 :]]
        yield NOT_ASKED, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    yield AND_OR, ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def _of_number(node: ast.Constant) -> Iterator[_Change]:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > LARGEST_COUNT:
        return
    yield "a number in it is one larger than it should be", ast.Constant(value + 1)
    yield "a number in it is one smaller than it should be", ast.Constant(value - 1)
    if value > 1:
        yield "a number in it is twice as large as it should be", ast.Constant(2 * value)


def _of_call(node: ast.Call) -> Iterator[_Change]:
    name = _name_called(node)
    for other, words in IN_PLACE_OF.get(name, []):
        yield words, ast.Call(_function_like(node.func, other), node.args, node.keywords)
    if name in DROPPED and node.args:
        yield DROPPED[name], node.args[0]
    if len(node.args) == 2 and (name in ("minimum", "maximum") or _is_builtin(node, ("min", "max"))):
        yield from (("a bound is left out", argument) for argument in node.args)
    if name == "range":
        yield from _of_range(node)
    elif len(node.args) == 2 and name not in ("min", "max", "minimum", "maximum", "zip"):
        yield (
            "two things are exchanged that are given to a function",
            ast.Call(node.func, node.args[::-1], node.keywords),
        )


def _of_range(node: ast.Call) -> Iterator[_Change]:
    """A range that ends one step later, or earlier; where it goes down, its end is a smaller number."""
    end, step = int(len(node.args) > 1), node.args[2] if len(node.args) > 2 else ast.Constant(1)
    for later, words in ((True, "it goes one step too far"), (False, "it stops one step early")):
        arguments = [*node.args]
        arguments[end] = ast.BinOp(arguments[end], ast.Add() if later else ast.Sub(), step)
        yield words, ast.Call(node.func, arguments, node.keywords)


def _function_like(function: ast.expr, name: str) -> ast.expr:
    """A function of this name from where another one is; to round, or to add up, is Python's own, and not of `math`."""
    if isinstance(function, ast.Attribute) and not (name in ("round", "sum") and _is_of_math(function)):
        return ast.Attribute(function.value, name, ast.Load())
    return ast.Name(name, ast.Load())


def _is_of_math(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Name) and function.value.id == "math"


def _is_builtin(node: ast.Call, names: Collection[str]) -> bool:
    """Whether it calls one of these functions of Python's own, which are called without a module."""
    return isinstance(node.func, ast.Name) and node.func.id in names


def _name_called(node: ast.Call) -> str:
    """The name of a function that is called, without that of its module; "" where it has none."""
    function = node.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _of_part(node: ast.Subscript) -> Iterator[_Change]:
    if not isinstance(node.slice, ast.Slice) or not isinstance(node.ctx, ast.Load):
        return
    turned = isinstance(node.slice.step, ast.UnaryOp)
    yield ("the order is not turned round" if turned else "the whole is taken where a part should be"), node.value


def _of_turns(turns: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """A loop that leaves out the first or the last turn, or goes the other way."""
    whole = ast.Call(ast.Name("list", ast.Load()), [turns], [])
    one, minus_one = ast.Constant(1), ast.UnaryOp(ast.USub(), ast.Constant(1))
    yield "the first is left out", ast.Subscript(whole, ast.Slice(one), ast.Load())
    yield "the last is left out", ast.Subscript(whole, ast.Slice(None, minus_one), ast.Load())
    yield "it is gone through in the opposite order", ast.Subscript(whole, ast.Slice(step=minus_one), ast.Load())


def _of_comprehension(node: ast.comprehension) -> Iterator[_Change]:
    for words, turns in _of_turns(node.iter):
        yield words, ast.comprehension(node.target, turns, node.ifs, node.is_async)
    for k in range(len(node.ifs)):
        yield NOT_ASKED, ast.comprehension(node.target, node.iter, [*node.ifs[:k], *node.ifs[k + 1 :]], node.is_async)
