"""Answers with one small change, as a slip makes it: another axis, a bound, an index, a collective left out."""

import ast
import copy
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

EXCHANGED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip
NAMES = {"max": "min", "any": "all", "psum": "pmean", "pmax": "pmin", "ceil": "floor", "maximum": "minimum"}
NAMES |= {other: name for name, other in NAMES.items()} | {"zeros": "ones", "zeros_like": "ones_like"}
COLLECTIVES = ("psum", "pmean", "pmax", "all_gather", "psum_scatter", "all_to_all", "ppermute", "pvary", "pcast")
LEFT_OUT = (
    *COLLECTIVES,
    "sorted",
    "abs",
    "set",
    "stop_gradient",
    "checkpoint",
    "with_sharding_constraint",
    "exp",
    "log",
)
WORDS = 12  # characters of a text that may be a name of something
NAMED = 3  # other names that are tried for one
WORD = re.compile(r"(\w+|[<>!])$")  # one that is cut short
AROUND, MOST = 30, 60  # characters that are shown: on each side of a change, and of a change


@dataclass(frozen=True)
class Mutant:
    """A cell with one change in a function: what changed, and the whole."""

    change: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every cell that differs from this one by one change in one of its functions; none twice."""
    tree = ast.parse(source)
    before = ast.unparse(tree)
    seen = {before}
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        axes = names(function)
        for parent, field, place, node in list(children(function)):
            for other in others(node, axes):
                put(parent, field, place, other)
                after = ast.unparse(tree)
                put(parent, field, place, node)
                if after not in seen:
                    seen.add(after)
                    yield Mutant(difference(before, after), after)


def children(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """All that is computed below a node, with its place; not what is said (a docstring, the text of an error)."""
    for field, value in ast.iter_fields(node):
        if field in ("args", "exc", "annotation", "returns", "ctx") and not isinstance(node, ast.Call):
            continue
        for place, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not is_said(child):
                yield node, field, place, child
                yield from children(child)


def is_said(node: ast.AST) -> bool:
    """A docstring, or a text with values in it."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def names(function: ast.FunctionDef) -> list[str]:
    """The short texts of a function: names of axes, most of them."""
    constants = (node.value for node in ast.walk(function) if isinstance(node, ast.Constant))
    return sorted({value for value in constants if isinstance(value, str) and len(value) < WORDS})


def put(parent: ast.AST, field: str, place: int | None, node: ast.AST) -> None:
    """Put a node where another is."""
    if place is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[place] = node


def difference(before: str, after: str) -> str:
    """What went and what came, with some of what stands around it."""
    before, after = " ".join(before.split()), " ".join(after.split())
    start = len(WORD.sub("", os.path.commonprefix([before, after])))
    same = len(WORD.sub("", os.path.commonprefix([before[start:][::-1], after[start:][::-1]])))
    went, came = before[start : len(before) - same], after[start : len(after) - same]
    left, right = before[:start][-AROUND:], before[len(before) - same :][:AROUND]
    return f"{left}[{went[:MOST]} -> {came[:MOST]}]{right}"


def others(node: ast.AST, axes: list[str]) -> Iterator[ast.AST]:
    """What a slip writes in place of a node."""
    rule = RULES.get(type(node))
    if rule:
        yield from rule(node)
    if isinstance(node, ast.Constant) and node.value in axes:
        yield from [ast.Constant(name) for name in axes if name != node.value][:NAMED]


def changed(node: ast.AST, **fields: object) -> ast.AST:
    """A copy with other fields."""
    new = copy.copy(node)
    for field, value in fields.items():
        setattr(new, field, value)
    return new


def without(values: list, place: int) -> list:
    """A list without one of its entries."""
    return values[:place] + values[place + 1 :]


def replaced(values: list, place: int, other: object) -> list:
    """A list with another entry in this place."""
    return [*values[:place], other, *values[place + 1 :]]


def comparisons(node: ast.Compare) -> Iterator[ast.AST]:
    """Each relation with its bound moved, or turned round."""
    for place, relation in enumerate(node.ops):
        yield changed(node, ops=replaced(node.ops, place, EXCHANGED[type(relation)]()))


def operations(node: ast.BinOp) -> Iterator[ast.AST]:
    """Another operation, or none."""
    if type(node.op) in EXCHANGED:
        yield changed(node, op=EXCHANGED[type(node.op)]())
    yield node.left
    if isinstance(node.op, (ast.Sub, ast.MatMult)):
        yield changed(node, left=node.right, right=node.left)


def conditions(node: ast.BoolOp) -> Iterator[ast.AST]:
    """`and` for `or`, and all conditions but one."""
    yield changed(node, op=EXCHANGED[type(node.op)]())
    for place in range(len(node.values)):
        rest = without(node.values, place)
        yield changed(node, values=rest) if rest[1:] else rest[0]


def constants(node: ast.Constant) -> Iterator[ast.AST]:
    """The numbers beside one, and the other truth."""
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)


def calls(node: ast.Call) -> Iterator[ast.AST]:
    """Another function, none, an argument left out, two exchanged, a dimension that a spec does not cut."""
    named = node.func
    name = named.id if isinstance(named, ast.Name) else named.attr if isinstance(named, ast.Attribute) else ""
    if name in NAMES:
        field = "id" if isinstance(named, ast.Name) else "attr"
        yield changed(node, func=changed(named, **{field: NAMES[name]}))
    if name in LEFT_OUT and node.args:
        yield node.args[0]
    for place, keyword in enumerate(node.keywords):
        if keyword.arg:
            yield changed(node, keywords=without(node.keywords, place))
    if len(node.args) >= 2:
        first, second, *rest = node.args
        yield changed(node, args=[second, first, *rest])
    if name == "P":
        for place, entry in enumerate(node.args):
            if not isinstance(entry, ast.Starred):
                yield changed(node, args=replaced(node.args, place, ast.Constant(None)))


def comprehensions(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Iterator[ast.AST]:
    """All that there is, not only what meets a condition."""
    for place, loop in enumerate(node.generators):
        if loop.ifs:
            yield changed(node, generators=replaced(node.generators, place, changed(loop, ifs=[])))


def parts(node: ast.Slice) -> Iterator[ast.AST]:
    """A slice without one of its bounds."""
    for field in ("lower", "upper", "step"):
        if getattr(node, field) is not None:
            yield changed(node, **{field: None})


def left_out(node: ast.stmt) -> Iterator[ast.AST]:
    """Nothing in place of a statement."""
    yield ast.Pass()


RULES: dict[type[ast.AST], Callable[..., Iterator[ast.AST]]] = {
    ast.Compare: comparisons,
    ast.BinOp: operations,
    ast.BoolOp: conditions,
    ast.Constant: constants,
    ast.Call: calls,
    ast.Slice: parts,
    ast.IfExp: lambda node: iter([node.body, node.orelse]),
    ast.UnaryOp: lambda node: iter([node.operand]),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), comprehensions),
    **dict.fromkeys((ast.If, ast.Expr, ast.AugAssign, ast.Raise), left_out),
}
