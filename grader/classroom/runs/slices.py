"""What an answer depends on: the few cells of a notebook that have to run for it.

A hand-in is mostly its lesson, with definitions where the answers go. When a student's own cells only define
(functions, constants, tables, imports) or show values, running one of them changes nothing but its own names. The
lesson's worked examples then show what they show in the solved lesson, but for those that use what a student's cell
makes; and an answer comes out of its **slice**: the cells that bind the names it uses, and the names that these use in
turn. A slice runs by itself, so another student's equal slice need not run again; equal are also two that differ in no
more than what they call things inside their functions. Of a worked example in a slice only the imports
and functions run that it begins with, where nothing else of it is needed. Any other hand-in is run from its first cell
to its last. Only those worked examples are left out that neither use what the student's cells make nor make what these
use.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from grader.classroom.course.cells import Cell, CellText, Names, imports_agree, parse_cells
from grader.classroom.course.spelling import spelling_of

# Modules whose import does nothing but bind names.
HARMLESS = {
    *("jax", "numpy", "functools", "math", "operator", "itertools", "typing", "dataclasses", "collections", "grader"),
}
# What a definition may call while it is made, as long as nothing gives the name another meaning.
MAKERS = {
    *("P", "PartitionSpec", "jax.P", "jax.sharding.PartitionSpec", "partial", "functools.partial", "jax.jit", "tuple"),
    *("list", "dict", "set", "frozenset", "range", "slice"),
}
# These functions and these methods change nothing, so a table may also be computed with them.
PURE = {
    *("len", "sum", "min", "max", "abs", "round", "sorted", "zip", "enumerate", "reversed", "divmod", "int", "float"),
    *("str", "bool", "math.prod", "math.ceil", "math.floor", "math.log2", "math.sqrt", "np.prod"),
}
METHODS = {
    *("split", "join", "strip", "replace", "format", "startswith", "endswith", "items", "keys", "values", "get"),
    *("index", "count", "copy"),
}
# What shows values, and changes nothing.
SHOWING = {"print"}
# What reaches names in ways that the text does not show.
HIDDEN = {
    *("globals", "locals", "vars", "eval", "exec", "compile", "open", "input", "get_ipython", "breakpoint", "setattr"),
    *("delattr", "__import__", "__builtins__", "__main__", "sys", "In", "Out", "_"),
}


@dataclass(frozen=True)
class CellNumbers:
    """The numbers of some cells, in order. Of those that are `begun` only the beginning is meant: imports and functions
    that a worked example makes before it shows something."""

    cells: tuple[int, ...] = ()
    begun: frozenset[int] = frozenset()

    def __or__(self, other: CellNumbers) -> CellNumbers:
        cells = {*self.cells, *other.cells}
        whole = {k for part in (self, other) for k in part.cells if k not in part.begun}
        return CellNumbers(tuple(sorted(cells)), frozenset(cells - whole))


@dataclass(frozen=True)
class Needed:
    """A notebook that need not be run whole: the cells that its parts need.

    `answers` has a part for every check, under the number of its cell. `shown` are the worked examples whose outputs
    depend on the student's cells; `told` are the student's own cells that show something. `for_shown` and `for_told`
    are the cells that these need, themselves among them.
    """

    answers: Mapping[int, CellNumbers]
    shown: Sequence[int]
    for_shown: Sequence[int]
    told: Sequence[int]
    for_told: Sequence[int]


def plain_texts(cells: Sequence[Cell], part: CellNumbers) -> tuple[str, ...]:
    """The cells of a part, without comments and spacing; in the student's own, names that nobody else sees are
    numbers."""
    texts = parse_cells([cell.source for cell in cells]) or []
    return tuple(
        _plain_beginning(texts[k]) if k in part.begun else spelling_of(cells[k], texts[k]).plain for k in part.cells
    )


def names_in(cells: Sequence[Cell]) -> Mapping[str, str]:
    """What the student calls what is numbered in the plain texts of these cells."""
    texts = parse_cells([cell.source for cell in cells]) or []
    spellings = map(spelling_of, cells, texts)
    return {number: name for spelling in spellings for number, name in spelling.names.items()}


def typed_texts(cells: Sequence[Cell], part: CellNumbers) -> tuple[str, ...]:
    """The cells of a part, as they were typed, line for line."""
    texts = parse_cells([cell.source for cell in cells]) or []
    ends = {k: _first_line(texts[k].tree.body[_begins(texts[k].tree)]) - 1 for k in part.begun}
    return tuple("\n".join(cells[k].source.split("\n")[: ends.get(k)]) for k in part.cells)


@functools.lru_cache(maxsize=256)
def _plain_beginning(text: CellText) -> str:
    return ast.unparse(ast.Module(text.tree.body[: _begins(text.tree)], []))


def _first_line(statement: ast.stmt) -> int:
    return min(node.lineno for node in (statement, *getattr(statement, "decorator_list", ())))


def _begins(tree: ast.Module) -> int:
    """How many statements a cell begins with that only import or define a function."""
    makes = (isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef)) for statement in tree.body)
    return next((number for number, made in enumerate(makes) if not made), len(tree.body))


def parts_of(cells: Sequence[Cell]) -> Needed | None:
    """What the answers of a notebook need, and what its worked examples.

    None when the notebook has to be run whole: it does more than define, or nobody can tell what it does.
    """
    if (texts := parse_cells([cell.source for cell in cells])) is None:
        return None
    names = [text.names for text in texts]
    own, examples = _own(cells), [k for k, cell in enumerate(cells) if cell.example]
    redefined = {name for k in own for name in names[k].binds - names[k].imports.keys()}
    makers = {maker for maker in MAKERS | PURE | SHOWING if maker.split(".")[0] not in redefined}
    if not all(_only_defines(texts[k].tree, makers) and not HIDDEN & names[k].uses for k in own):
        return None
    made = frozenset[str]().union(*(names[k].binds for k in examples))
    if any(_altered(texts[k]) & made for k in own):
        return None  # what a worked example has made is another thing then
    known = set(dir(builtins)).union(*(n.binds for n in names))
    if any(names[k].uses - known for k in own):
        return None  # it stops with an error, which its author should see
    changed = [replace(n, binds=n.binds | changes) for n, changes in zip(names, _changes(texts), strict=True)]
    unsure = _own_meanings(cells, names)
    before = {k: _needs(k, changed) for k in examples} if unsure else {}
    shown = [k for k, part in before.items() if any(names[j].binds & unsure for j in set(part) & set(own))]
    told = [k for k in own if any(map(_shows, texts[k].tree.body))]
    return Needed(
        _answers_need(cells, texts),
        shown,
        sorted({j for k in shown for j in (*before[k], k)}),
        told,
        sorted({j for k in told for j in (*_needs(k, changed), k)}),
    )


def _answers_need(cells: Sequence[Cell], texts: Sequence[CellText]) -> dict[int, CellNumbers]:
    """What each check needs, under the number of its cell. A worked example counts as two cells: how it begins, and the
    rest, which takes its time to compute and to draw."""
    imports = {name for text in texts for name in text.names.imports}
    pieces = [(k, half) for k, cell in enumerate(cells) for half in _halves(cell, texts[k], imports)]
    owners, names = [k for k, _ in pieces], [half for _, half in pieces]
    last = {k: number for number, k in enumerate(owners)}
    found = {}
    for check in (k for k, cell in enumerate(cells) if cell.check):
        needed = _needs(last[check], names)
        every = {owners[number] for number in needed}
        found[check] = CellNumbers(tuple(sorted(every)), frozenset(k for k in every if last[k] not in needed))
    return found


def _halves(cell: Cell, text: CellText, imports: Set[str]) -> list[Names]:
    """The names of a cell; of a worked example those of its beginning, and those of its rest.

    A method that is called there, or an attribute that is set, may change what the beginning has made; but for what is
    imported, in any cell.
    """
    if not cell.example or (halves := _in_two(text)) is None:
        return [text.names]
    first, last, changed = halves
    return [first, replace(last, binds=last.binds | changed - imports)]


@functools.lru_cache(maxsize=256)  # a class has the same worked examples
def _in_two(text: CellText) -> tuple[Names, Names, frozenset[str]] | None:
    """The names of a cell's beginning, those of its rest, and what that may change; None where there are no two."""
    body, begins = text.tree.body, _begins(text.tree)
    if not 0 < begins < len(body) or body[begins - 1].end_lineno == _first_line(body[begins]):
        return None
    rest = ast.Module(body[begins:], [])
    if (parsed := parse_cells([_plain_beginning(text), ast.unparse(rest)])) is None:
        return None
    first, last = (half.names for half in parsed)
    return first, last, frozenset(_receivers(rest) | _with_attributes_set(rest))


def _with_attributes_set(tree: ast.Module) -> set[str]:
    """The names whose attributes are set, or removed, somewhere."""
    set_ones = (n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load))
    return {_dotted(node).partition(".")[0] for node in set_ones}


def _own(cells: Sequence[Cell]) -> list[int]:
    """The student's own cells: neither worked examples nor checks."""
    return [k for k, cell in enumerate(cells) if not cell.example and not cell.check]


def _own_meanings(cells: Sequence[Cell], names: Sequence[Names]) -> set[str]:
    """The names to which a student's own cells give a new meaning. To import what an example imports gives none."""
    imports = {pair for k, cell in enumerate(cells) if cell.example for pair in names[k].imports.items()}
    return {name for k in _own(cells) for name in names[k].binds if (name, names[k].imports.get(name)) not in imports}


def spare_examples(cells: Sequence[Cell], absent: Sequence[str] = ()) -> frozenset[int]:
    """The worked examples that need not run in a hand-in that does more than define.

    `absent` are the worked examples that it lacks. A spare one uses nothing that the student's cells make or that is
    absent, directly or by way of other examples; and it makes nothing that a cell which has to run uses.
    """
    if (texts := parse_cells([*(cell.source for cell in cells), *absent])) is None:
        return frozenset()
    names = [text.names for text in texts]
    if any(HIDDEN & names[k].uses or "*" in names[k].imports for k in _own(cells)):
        return frozenset()
    uses, binds = [n.uses for n in names], [n.binds for n in names]
    examples = {k for k, cell in enumerate(cells) if cell.example}
    unsure = _own_meanings(cells, names).union(*binds[len(cells) :])
    needs = set(range(len(cells))) - examples | _reach(unsure, examples, uses, binds)
    needs |= _reach(set().union(*(uses[k] for k in needs)), examples - needs, _changes(texts), uses)
    return frozenset(examples - needs)


def _reach(start: Set[str], cells: Set[int], entries: Sequence[Set[str]], exits: Sequence[Set[str]]) -> set[int]:
    """The cells that names lead to, directly or by way of one another: in by a cell's entries, on by its exits."""
    names, reach = set(start), set[int]()
    while more := {k for k in cells - reach if entries[k] & names}:
        reach |= more
        names = names.union(*(exits[k] for k in more))
    return reach


def _changes(texts: Sequence[CellText]) -> list[Set[str]]:
    """For each cell the names whose meaning, or whose object, is another one after it."""
    names = [text.names for text in texts]
    imports = {name for n in names for name in n.imports}
    stable = {name for name in imports if imports_agree(name, names)}
    changes: list[Set[str]] = []
    before: set[str] = set()  # stable imports of earlier cells, which need not be made again
    for text in texts:
        changes.append(text.names.binds - before | _receivers(text.tree) - imports)
        before |= stable & text.names.imports.keys()
    return changes


def _receivers(tree: ast.Module) -> set[str]:
    """The names whose methods a cell calls as statements of their own: such a call may change the object."""
    calls = (s.value.func for s in tree.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
    return {_dotted(function).partition(".")[0] for function in calls if isinstance(function, ast.Attribute)}


def _altered(text: CellText) -> set[str]:
    """The names from before whose objects a cell may change: it sets an entry in them, or adds to them.

    What its functions do, they do when they are called.
    """
    outside = (node for part in text.tree.body if not isinstance(part, ast.FunctionDef) for node in ast.walk(part))
    targets = {
        node.target if isinstance(node, ast.AugAssign) else node.value
        for node in outside
        if isinstance(node, ast.AugAssign) or isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
    }
    return {target.id for target in targets if isinstance(target, ast.Name)} - text.names.fresh


def _needs(check: int, names: Sequence[Names]) -> list[int]:
    """The cells before a check, or before another cell, that give the names it needs their meaning, and the cells that
    these need; in order.

    A cell reads names when it runs. Its functions read them when they are called, which is at the check.
    """
    cells: set[int] = set()
    visited: set[tuple[str, int]] = set()
    todo = [(name, check) for name in names[check].uses - names[check].fresh]
    while todo:
        name, place = todo.pop()
        if (name, place) in visited:
            continue
        visited.add((name, place))
        for k in set(_meaning(name, names[:place])) - cells:
            cells.add(k)
            stable = {name for name in names[k].imports if imports_agree(name, names[:check])}
            uses = names[k].uses - stable
            todo += [(used, check) for used in uses]
            todo += [(used, k) for used in uses - names[k].fresh]
    return sorted(cells)


def _meaning(name: str, names: Sequence[Names]) -> list[int]:
    """The cells that give a name its final meaning: the last that binds it fresh, and all later ones that bind it.

    One is enough where all import the same.
    """
    binders = [k for k, cell in enumerate(names) if name in cell.binds]
    if imports_agree(name, names):
        return binders[:1]
    last = max((k for k in binders if name in names[k].fresh), default=0)
    return [k for k in binders if k >= last]


def that_define(cells: Sequence[Cell], instead: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells; where an own one does more than define, the cell that stands in its place in the others."""
    own, pairs = set(_own(cells)), enumerate(zip(cells, instead, strict=True))
    return tuple(other if k in own and not _surely_defines(cell.source) else cell for k, (cell, other) in pairs)


def _surely_defines(source: str) -> bool:
    texts = parse_cells([source])
    return texts is not None and _only_defines(texts[0].tree, MAKERS | PURE)


def _only_defines(tree: ast.Module, makers: Set[str]) -> bool:
    imports = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return all(map(_from_libraries, imports)) and all(_is_definition(statement, makers) for statement in tree.body)


def _from_libraries(node: ast.Import | ast.ImportFrom) -> bool:
    """Whether an import does nothing but bind names."""
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":  # a slice without it runs no more than with it
        return [name.name for name in node.names] == ["annotations"]
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
    return all(m.split(".")[0] in HARMLESS for m in modules) and all(name.name != "*" for name in node.names)


def _shows(statement: ast.stmt) -> bool:
    """Whether a statement that changes nothing else may show something."""
    match statement:
        case ast.Expr(value=value):
            return not isinstance(value, ast.Constant)
        case ast.For(body=body):
            return any(map(_shows, body))
    return False


def _is_definition(statement: ast.stmt, makers: Set[str]) -> bool:
    """Whether running it changes no more than names and tables of its own. It may show values."""
    match statement:
        case ast.Pass() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=told, keywords=[])) if name in SHOWING & makers:
            return _are_values(told, makers)
        case ast.Expr(value=value):
            return _are_values([value], makers)
        case ast.FunctionDef(args=args, decorator_list=decorators, returns=returns):
            parameters = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
            annotations = [parameter.annotation for parameter in parameters if parameter]
            harmless = all(isinstance(d, ast.Call) or _dotted(d) in makers for d in decorators)
            values: list[ast.expr | None] = [*decorators, *args.defaults, *args.kw_defaults, *annotations, returns]
            return harmless and _are_values(values, makers)
        case ast.Assign(targets=targets, value=value):
            return all(map(_is_own, targets)) and _are_values([*targets, value], makers)
        case ast.AnnAssign(target=target, value=value, annotation=annotation) if _is_own(target):
            return _are_values([target, annotation, value], makers)
        case ast.AugAssign(target=target, value=value) if _is_own(target):
            return _are_values([target, value], makers)
        case ast.For(target=target, iter=items, body=body, orelse=[]) if _is_own(target):
            return _are_values([items], makers) and all(_is_definition(inner, makers) for inner in body)
    return False


def _is_own(target: ast.expr) -> bool:
    """A name, an entry of a named table, or several of these."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(map(_is_own, parts))
        case ast.Subscript(value=ast.Name()) | ast.Name():
            return True
    return False


def _are_values(expressions: Iterable[ast.expr | None], makers: Set[str]) -> bool:
    """Whether evaluating these changes nothing, and runs no code but Python's own and the makers'."""
    nodes = (node for expression in filter(None, expressions) for node in _evaluated(expression))
    return all(_is_value(node, makers) for node in nodes)


def _evaluated(expression: ast.AST) -> Iterator[ast.AST]:
    """All parts of an expression except the bodies of its lambdas."""
    yield expression
    if not isinstance(expression, ast.Lambda):
        for part in ast.iter_child_nodes(expression):
            yield from _evaluated(part)


def _is_value(node: ast.AST, makers: Set[str]) -> bool:
    if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
        return False
    if not isinstance(node, ast.Call):
        return True
    name = _dotted(node.func)
    if name in makers - SHOWING:
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
