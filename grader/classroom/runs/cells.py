"""What a notebook's code cells bind and read, as far as their text says."""

from __future__ import annotations

import ast
import functools
import symtable
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A code cell: its text, the answer that it checks ("" for none), and whether it is the lesson's own.

    A check cell's text is the expression that it checks.
    """

    source: str
    check: str = ""
    given: bool = False


@dataclass(frozen=True)
class Names:
    """The names that a cell binds, and those that it reads, as the notebook sees them.

    What it binds `afresh` owes nothing to what the name meant before. `imports` says what its imports bind names to.
    """

    binds: frozenset[str]
    uses: frozenset[str]
    afresh: frozenset[str] = frozenset()
    imports: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class CellText:
    """What a cell says: its tree, its names, and its text without comments and spacing."""

    tree: ast.Module
    names: Names
    plain: str


def texts(sources: Sequence[str]) -> list[CellText] | None:
    """What cells say; None when one of them is not Python, or more than can be read."""
    try:
        return [_text(source) for source in sources]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@functools.lru_cache(maxsize=256)  # most cells of a class are the same in every hand-in
def _text(source: str) -> CellText:
    tree = ast.parse(source)
    seen = _names(symtable.symtable(source, "cell", "exec"))
    names = Names(seen.binds | _filled(tree), seen.uses, _afresh(tree), _imported(tree))
    return CellText(tree, names, ast.unparse(tree))


def imports_agree(name: str, cells: Sequence[Names]) -> bool:
    """Whether all cells that bind a name import the same under it."""
    return len({cell.imports.get(name, k) for k, cell in enumerate(cells) if name in cell.binds}) == 1


def _names(table: symtable.SymbolTable, top: bool = True) -> Names:
    symbols = [s for s in table.get_symbols() if top or s.is_global()]
    inner = [_names(child, False) for child in table.get_children()]
    return Names(
        frozenset(s.get_name() for s in symbols if s.is_assigned() or s.is_imported()).union(*(n.binds for n in inner)),
        frozenset(s.get_name() for s in symbols if s.is_referenced()).union(*(n.uses for n in inner)),
    )


def _filled(tree: ast.Module) -> set[str]:
    """The tables of which a cell sets entries: as good as binding them."""
    outside = (
        node for statement in tree.body if not isinstance(statement, ast.FunctionDef) for node in ast.walk(statement)
    )
    return {
        node.value.id
        for node in outside
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name)
    }


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
    mended = (
        {statement.target.id}
        if (isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name))
        else set()
    )
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
            return {
                node.id
                for target in targets
                for node in ast.walk(target)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
    return set()


def _imported(tree: ast.Module) -> dict[str, str]:
    """The names that a cell's imports bind, and what to."""
    names: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names |= {n.asname: n.name for n in statement.names if n.asname}
            names |= {n.name.split(".")[0]: n.name.split(".")[0] for n in statement.names if not n.asname}
        elif isinstance(statement, ast.ImportFrom):
            names |= {n.asname or n.name: f"{statement.module}.{n.name}" for n in statement.names}
    return names
