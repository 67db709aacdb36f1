"""What a notebook's code cells bind and read, as far as their text says."""

from __future__ import annotations

import ast
import functools
import symtable
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# What is cut into slices at most; whatever is larger is run whole. The longest lesson has 84 cells, 20,000 characters,
# and uses or binds 450 names, each counted once in every cell that has it.
MOST_CELLS_CUT = 300
MOST_CODE = 100_000  # characters; parsing takes up to a kilobyte for each
MOST_NAMES = 5_000


@dataclass(frozen=True)
class Cell:
    """A code cell: its text, the exercise that it checks ("" for none), and whether it is a worked example.

    The text of a check cell is the expression that it checks.
    """

    source: str
    check: str = ""
    example: bool = False


@dataclass(frozen=True)
class Names:
    """The names that a cell binds and the names that it uses, as the notebook sees them.

    A `fresh` name is bound without regard to what it meant before. `imports` maps names to what they are imported from.
    """

    binds: frozenset[str]
    uses: frozenset[str]
    fresh: frozenset[str] = frozenset()
    imports: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class CellText:
    """A parsed cell: its tree, its names, and its text without comments and spacing."""

    tree: ast.Module
    names: Names
    plain: str


def parse_cells(sources: Sequence[str]) -> list[CellText] | None:
    """The cells, parsed; None when one of them is not Python or too deep for the parser, or they are too many."""
    if len(sources) > MOST_CELLS_CUT or sum(map(len, sources)) > MOST_CODE:
        return None
    try:
        texts = [_text(source) for source in sources]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return texts if sum(len(t.names.binds) + len(t.names.uses) for t in texts) <= MOST_NAMES else None


@functools.lru_cache(maxsize=256)  # most cells of a class are the same in every hand-in
def _text(source: str) -> CellText:
    tree = ast.parse(source)
    symbols = _names(symtable.symtable(source, "cell", "exec"))
    names = Names(symbols.binds | _tables(tree), symbols.uses, _fresh(tree), _imports(tree))
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


def _tables(tree: ast.Module) -> set[str]:
    """The tables in which a cell sets entries: that is as good as binding them."""
    outside = (
        node for statement in tree.body if not isinstance(statement, ast.FunctionDef) for node in ast.walk(statement)
    )
    return {
        node.value.id
        for node in outside
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name)
    }


def _fresh(tree: ast.Module) -> frozenset[str]:
    """The names that a cell is sure to bind before it reads them."""
    fresh: set[str] = set()
    old: set[str] = set()  # names that are read while they have an earlier meaning
    for statement in tree.body:
        old |= _reads(statement) - fresh
        fresh |= _binds(statement) - old
    return frozenset(fresh)


def _reads(statement: ast.stmt) -> set[str]:
    """The names that a statement may read while it runs, as far as its text shows. `a += 1` reads `a`, too."""
    if isinstance(statement, ast.FunctionDef):
        parts = [*statement.decorator_list, statement.args, *filter(None, [statement.returns])]
    else:
        parts = [statement]
    nodes = (node for part in parts for node in ast.walk(part))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)}
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        names.add(statement.target.id)
    return names


def _binds(statement: ast.stmt) -> set[str]:
    """The names that a statement is sure to bind."""
    match statement:
        case ast.FunctionDef(name=name):
            return {name}
        case ast.Import() | ast.ImportFrom():
            return set(_imports(ast.Module([statement], [])))
        case ast.Assign(targets=targets):
            return {
                node.id
                for target in targets
                for node in ast.walk(target)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
    return set()


def _imports(tree: ast.Module) -> dict[str, str]:
    """The names that a cell's imports bind, each with what it stands for."""
    names: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            names |= {n.asname: n.name for n in statement.names if n.asname}
            names |= {n.name.split(".")[0]: n.name.split(".")[0] for n in statement.names if not n.asname}
        elif isinstance(statement, ast.ImportFrom):
            names |= {n.asname or n.name: f"{statement.module}.{n.name}" for n in statement.names}
    return names
