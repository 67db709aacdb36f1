"""What an answer depends on: the few cells of a notebook that have to run for it.

A hand-in is mostly what its lesson was, with definitions where the answers go. When a student's own cells
only define (functions, constants, tables, imports), running one of them changes nothing but its own names.
Then the lesson's worked examples show what they showed to us, and an answer comes out of its **slice**: the
cells that bind the names it uses, and those that these use. Slices run by themselves, so the same slice of
another student need not run again. Any other hand-in is run whole, from its first cell to its last.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

# Modules whose import does nothing but bind names.
LIBRARIES = {"jax", "numpy", "functools", "math", "operator", "itertools", "typing", "dataclasses", "collections",
             "grader"}
# What a definition may call while it is made, as long as nobody has given the name another meaning.
MAKERS = {"P", "PartitionSpec", "jax.P", "jax.sharding.PartitionSpec", "partial", "functools.partial", "jax.jit",
          "tuple", "list", "dict", "set", "frozenset", "range", "slice"}
# What else a table may be worked out with: these functions, and these methods, change nothing.
PURE = {"len", "sum", "min", "max", "abs", "round", "sorted", "zip", "enumerate", "reversed", "divmod", "int", "float",
        "str", "bool", "math.prod", "math.ceil", "math.floor", "math.log2", "math.sqrt", "np.prod"}
METHODS = {"split", "join", "strip", "replace", "format", "startswith", "endswith", "items", "keys", "values", "get",
           "index", "count", "copy"}
# Ways to names that this cannot see.
HIDDEN = {"globals", "locals", "vars", "eval", "exec", "compile", "open", "input", "get_ipython", "breakpoint",
          "setattr", "delattr", "__import__", "__builtins__"}


@dataclass(frozen=True)
class Cell:
    """A code cell: its text, the answer that it checks ("" for none), and whether it is the lesson's own.

    A check cell's text is the expression that it checks.
    """

    source: str
    check: str = ""
    given: bool = False


@dataclass(frozen=True)
class _Names:
    """The names that a cell binds, and those that it reads, as the notebook sees them.

    What it binds `afresh` owes nothing to what the name meant before. `imports` says what its imports bind names to.
    """

    binds: frozenset[str]
    uses: frozenset[str]
    afresh: frozenset[str] = frozenset()
    imports: Mapping[str, str] = field(default_factory=dict)


def slices(cells: Sequence[Cell]) -> dict[str, tuple[str, ...]] | None:
    """For every check the cells that its answer needs, in order, comments and spacing aside.

    None when the notebook has to be run whole: it does more than define, or it cannot be told what it does.
    """
    try:
        trees = [ast.parse(cell.source) for cell in cells]
        names = [_names(symtable.symtable(cell.source, "cell", "exec")) for cell in cells]
        names = [_Names(n.binds | _filled(tree), n.uses, _afresh(tree), _imported(tree))
                 for n, tree in zip(names, trees, strict=True)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    own = [k for k, cell in enumerate(cells) if not cell.given and not cell.check]
    made = {name for k in own for name in names[k].binds - names[k].imports.keys()}
    makers = {maker for maker in MAKERS | PURE if maker.split(".")[0] not in made}
    if not all(_only_defines(trees[k], makers) and not HIDDEN & names[k].uses for k in own):
        return None
    known = set(dir(builtins)).union(*(n.binds for n in names))
    if any(names[k].uses - known for k in own):
        return None  # it stops with an error, which its author should see
    same = {pair for k, cell in enumerate(cells) if cell.given for pair in names[k].imports.items()}
    theirs = made | {name for k in own for name, what in names[k].imports.items() if (name, what) not in same}
    if any(cell.given and names[k].uses & theirs for k, cell in enumerate(cells)):
        return None  # a worked example that uses what they made shows what only a run can tell
    return {cell.check: tuple(ast.unparse(trees[j]) for j in _needs(k, names))
            for k, cell in enumerate(cells) if cell.check}


def _needs(check: int, names: Sequence[_Names]) -> list[int]:
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
            known = {name for name in names[k].imports if _imports_agree(name, names[:check])}
            uses = names[k].uses - known
            todo += [(used, check) for used in uses]
            todo += [(used, k) for used in uses - names[k].afresh]
    return sorted(needed)


def _imports_agree(name: str, names: Sequence[_Names]) -> bool:
    """Whether all cells that bind a name import the same under it."""
    return len({cell.imports.get(name, k) for k, cell in enumerate(names) if name in cell.binds}) == 1


def _meaning(name: str, names: Sequence[_Names]) -> list[int]:
    """The cells to which a name owes its meaning behind them all: the last that binds it afresh, and those after it
    that bind it too. One is enough where all import the same."""
    binders = [k for k, cell in enumerate(names) if name in cell.binds]
    if _imports_agree(name, names):
        return binders[:1]
    last = max((k for k in binders if name in names[k].afresh), default=0)
    return [k for k in binders if k >= last]


def _names(table: symtable.SymbolTable, top: bool = True) -> _Names:
    symbols = [s for s in table.get_symbols() if top or s.is_global()]
    inner = [_names(child, False) for child in table.get_children()]
    return _Names(frozenset(s.get_name() for s in symbols if s.is_assigned() or s.is_imported())
                  .union(*(n.binds for n in inner)),
                  frozenset(s.get_name() for s in symbols if s.is_referenced()).union(*(n.uses for n in inner)))


def _filled(tree: ast.Module) -> set[str]:
    """The tables of which a cell sets entries: as good as binding them."""
    outside = (node for statement in tree.body if not isinstance(statement, ast.FunctionDef)
               for node in ast.walk(statement))
    return {node.value.id for node in outside if isinstance(node, ast.Subscript)
            and not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name)}


def _afresh(tree: ast.Module) -> frozenset[str]:
    """The names that a cell binds, whatever happens, before it has read them."""
    bound: set[str] = set()
    read: set[str] = set()
    for statement in tree.body:
        read |= _read(statement) - bound
        bound |= _bound(statement) - read
    return frozenset(bound)


def _read(statement: ast.stmt) -> set[str]:
    """The names that a statement may read while it runs, as far as one can see; those it only mends among them."""
    if isinstance(statement, ast.FunctionDef):
        parts = [*statement.decorator_list, statement.args, *filter(None, [statement.returns])]
    else:
        parts = [statement]
    mended = {statement.target.id} if (isinstance(statement, ast.AugAssign)
                                       and isinstance(statement.target, ast.Name)) else set()
    nodes = (node for part in parts for node in ast.walk(part))
    return mended | {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement binds whatever happens."""
    match statement:
        case ast.FunctionDef(name=name):
            return {name}
        case ast.Import() | ast.ImportFrom():
            return set(_imported(ast.Module([statement], [])))
        case ast.Assign(targets=targets):
            return {node.id for target in targets for node in ast.walk(target)
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return set()


def _imported(tree: ast.Module) -> dict[str, str]:
    """The names that a cell's imports bind, and what to."""
    found = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            found |= {n.asname: n.name for n in statement.names if n.asname}
            found |= {n.name.split(".")[0]: n.name.split(".")[0] for n in statement.names if not n.asname}
        elif isinstance(statement, ast.ImportFrom):
            found |= {n.asname or n.name: f"{statement.module}.{n.name}" for n in statement.names}
    return found


def _only_defines(tree: ast.Module, makers: Collection[str]) -> bool:
    imports = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return all(map(_from_libraries, imports)) and all(_is_definition(statement, makers) for statement in tree.body)


def _from_libraries(node: ast.Import | ast.ImportFrom) -> bool:
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
    return all(m.split(".")[0] in LIBRARIES for m in modules) and all(name.name != "*" for name in node.names)


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


def _evaluated(expression: ast.expr) -> Iterator[ast.AST]:
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
    if isinstance(expression, ast.Name):
        return expression.id
    before = _dotted(expression.value) if isinstance(expression, ast.Attribute) else ""
    return f"{before}.{expression.attr}" if before else ""
