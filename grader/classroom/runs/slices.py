"""What an answer depends on: the few cells of a notebook that have to run for it.

A hand-in is mostly what its lesson was, with definitions where the answers go. When a student's own cells
only define (functions, constants, tables, imports), running one of them changes nothing but its own names.
Then the lesson's worked examples show what they showed to us, and an answer comes out of its **slice**: the
cells that bind the names it uses, and those that these use. Slices run by themselves, so the same slice of
another student need not run again. Any other hand-in is run from its first cell to its last, and only those worked
examples are spared that neither use what it makes nor make what it uses.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable, Iterator, Sequence

from grader.classroom.runs.cells import Cell, Names, imports_agree, texts

# Modules whose import does nothing but bind names.
HARMLESS = {
    "jax",
    "numpy",
    "functools",
    "math",
    "operator",
    "itertools",
    "typing",
    "dataclasses",
    "collections",
    "grader",
}
# What a definition may call while it is made, as long as nobody has given the name another meaning.
MAKERS = {
    "P",
    "PartitionSpec",
    "jax.P",
    "jax.sharding.PartitionSpec",
    "partial",
    "functools.partial",
    "jax.jit",
    "tuple",
    "list",
    "dict",
    "set",
    "frozenset",
    "range",
    "slice",
}
# What else a table may be worked out with: these functions, and these methods, change nothing.
PURE = {
    "len",
    "sum",
    "min",
    "max",
    "abs",
    "round",
    "sorted",
    "zip",
    "enumerate",
    "reversed",
    "divmod",
    "int",
    "float",
    "str",
    "bool",
    "math.prod",
    "math.ceil",
    "math.floor",
    "math.log2",
    "math.sqrt",
    "np.prod",
}
METHODS = {
    "split",
    "join",
    "strip",
    "replace",
    "format",
    "startswith",
    "endswith",
    "items",
    "keys",
    "values",
    "get",
    "index",
    "count",
    "copy",
}
# Ways to names that this cannot see.
HIDDEN = {
    "globals",
    "locals",
    "vars",
    "eval",
    "exec",
    "compile",
    "open",
    "input",
    "get_ipython",
    "breakpoint",
    "setattr",
    "delattr",
    "__import__",
    "__builtins__",
    "__main__",
    "sys",
    "In",
    "Out",
    "_",
}


def slices(cells: Sequence[Cell]) -> dict[str, tuple[str, ...]] | None:
    """For every check the cells that its answer needs, in order, comments and spacing aside.

    None when the notebook has to be run whole: it does more than define, or it cannot be told what it does.
    """
    if (said := texts([cell.source for cell in cells])) is None:
        return None
    names = [text.names for text in said]
    own = [k for k, cell in enumerate(cells) if not cell.given and not cell.check]
    made = {name for k in own for name in names[k].binds - names[k].imports.keys()}
    makers = {maker for maker in MAKERS | PURE if maker.split(".")[0] not in made}
    if not all(_only_defines(said[k].tree, makers) and not HIDDEN & names[k].uses for k in own):
        return None
    known = set(dir(builtins)).union(*(n.binds for n in names))
    if any(names[k].uses - known for k in own):
        return None  # it stops with an error, which its author should see
    theirs = _made(own, cells, names)
    if any(cell.given and names[k].uses & theirs for k, cell in enumerate(cells)):
        return None  # a worked example that uses what they made shows what only a run can tell
    return {cell.check: tuple(said[j].plain for j in _needs(k, names)) for k, cell in enumerate(cells) if cell.check}


def _made(own: Sequence[int], cells: Sequence[Cell], names: Sequence[Names]) -> set[str]:
    """The names that a student's own cells give a meaning of their own: to import what examples import gives none."""
    same = {pair for k, cell in enumerate(cells) if cell.given for pair in names[k].imports.items()}
    return {name for k in own for name in names[k].binds if (name, names[k].imports.get(name)) not in same}


def spared(cells: Sequence[Cell], absent: Sequence[str] = ()) -> frozenset[int]:
    """The worked examples that need not run with a hand-in which does more than define; `absent` are those it lacks.

    They use nothing that its own cells make, nor lack, nor what such examples make in turn; and they make nothing
    that any cell which has to run uses.
    """
    if (said := texts([*(cell.source for cell in cells), *absent])) is None:
        return frozenset()
    names = [text.names for text in said]
    given = {k for k, cell in enumerate(cells) if cell.given}
    own = [k for k, cell in enumerate(cells) if not cell.given and not cell.check]
    if any(HIDDEN & names[k].uses or "*" in names[k].imports for k in own):
        return frozenset()
    made = _made(own, cells, names).union(*(n.binds for n in names[len(cells) :]))
    touched: set[int] = set()
    while more := {k for k in given - touched if names[k].uses & made}:
        touched |= more
        made |= frozenset().union(*(names[k].binds for k in more))
    run = set(range(len(cells))) - given | touched
    imported = {name for n in names for name in n.imports}
    alike = {name for name in imported if imports_agree(name, names)}
    changes = {}
    before: set[str] = set()  # imports that a cell need not make again
    for k, text in enumerate(said):
        changes[k] = text.names.binds - before | _spoken_to(text.tree) - imported
        before |= alike & text.names.imports.keys()
    sought = set().union(*(names[k].uses for k in run))
    while more := {k for k in given - run if changes[k] & sought}:
        run |= more
        sought |= set().union(*(names[k].uses for k in more))
    return frozenset(given - run)


def _spoken_to(tree: ast.Module) -> set[str]:
    """The names whose objects a cell has do something, for nothing but that: it may change them."""
    calls = (s.value.func for s in tree.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
    return {_dotted(function).partition(".")[0] for function in calls if isinstance(function, ast.Attribute)}


def _needs(check: int, names: Sequence[Names]) -> list[int]:
    """The cells before this one that give a name it needs its meaning, or one that they need; in order.

    A cell reads names when it runs, and its functions read them when they are called, which is at the check.
    """
    needed: set[int] = set()
    asked: set[tuple[str, int]] = set()
    todo = [(name, check) for name in names[check].uses]
    while todo:
        name, place = todo.pop()
        if (name, place) in asked:
            continue
        asked.add((name, place))
        for k in set(_meaning(name, names[:place])) - needed:
            needed.add(k)
            known = {name for name in names[k].imports if imports_agree(name, names[:check])}
            uses = names[k].uses - known
            todo += [(used, check) for used in uses]
            todo += [(used, k) for used in uses - names[k].afresh]
    return sorted(needed)


def _meaning(name: str, names: Sequence[Names]) -> list[int]:
    """The cells to which a name owes its meaning behind them all: the last that binds it afresh, and those after it
    that bind it too. One is enough where all import the same."""
    binders = [k for k, cell in enumerate(names) if name in cell.binds]
    if imports_agree(name, names):
        return binders[:1]
    last = max((k for k in binders if name in names[k].afresh), default=0)
    return [k for k in binders if k >= last]


def _only_defines(tree: ast.Module, makers: Collection[str]) -> bool:
    imports = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return all(map(_from_libraries, imports)) and all(_is_definition(statement, makers) for statement in tree.body)


def _from_libraries(node: ast.Import | ast.ImportFrom) -> bool:
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
    return all(m.split(".")[0] in HARMLESS for m in modules) and all(name.name != "*" for name in node.names)


def _is_definition(statement: ast.stmt, makers: Collection[str]) -> bool:
    """Whether running it changes no more than names and tables of its own."""
    match statement:
        case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef(args=given, decorator_list=decorators, returns=returns):
            parameters = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
            said = [parameter.annotation for parameter in parameters if parameter]
            called = all(isinstance(d, ast.Call) or _dotted(d) in makers for d in decorators)
            return called and _are_values([*decorators, *given.defaults, *given.kw_defaults, *said, returns], makers)
        case ast.Assign(targets=targets, value=value):
            return all(map(_is_own, targets)) and _are_values([*targets, value], makers)
        case ast.AnnAssign(target=target, value=value, annotation=said) if _is_own(target):
            return _are_values([target, said, value], makers)
        case ast.AugAssign(target=target, value=value) if _is_own(target):
            return _are_values([target, value], makers)
        case ast.For(target=target, iter=turns, body=body, orelse=[]) if _is_own(target):
            return _are_values([turns], makers) and all(_is_definition(inner, makers) for inner in body)
    return False


def _is_own(target: ast.expr) -> bool:
    """A name, an entry of a named table, or several of these."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(_is_own, parts))
        case ast.Subscript(value=ast.Name()) | ast.Name():
            return True
    return False


def _are_values(expressions: Iterable[ast.expr | None], makers: Collection[str]) -> bool:
    """Whether evaluating these runs no code but Python's own and the makers', and changes nothing."""
    nodes = (node for expression in filter(None, expressions) for node in _evaluated(expression))
    return all(_is_value(node, makers) for node in nodes)


def _evaluated(expression: ast.AST) -> Iterator[ast.AST]:
    """All parts of an expression but the bodies of functions that it makes."""
    yield expression
    if not isinstance(expression, ast.Lambda):
        for part in ast.iter_child_nodes(expression):
            yield from _evaluated(part)


def _is_value(node: ast.AST, makers: Collection[str]) -> bool:
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
        return False
    if not isinstance(node, ast.Call):
        return True
    name = _dotted(node.func)
    if name in makers:
        return name not in PURE or not node.keywords  # `key=` would call a function
    return isinstance(node.func, ast.Attribute) and node.func.attr in METHODS


def _dotted(expression: ast.expr) -> str:
    """`jax.sharding.PartitionSpec` for the attribute it is; "" for anything else."""
    match expression:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name) if before := _dotted(value):
            return f"{before}.{name}"
    return ""
