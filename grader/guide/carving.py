"""What a function in a notebook needs to stand alone: of all the cells that were run, its own statement and those that
define the names it uses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from grader.exercises.script import names_read

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Statement:
    """One statement at the top of a cell: its lines, the names that it binds, and those that it reads."""

    text: str
    binds: frozenset[str]
    reads: frozenset[str]
    is_definition: bool


def carved(name: str, cells: Iterable[str]) -> str:
    """The source of `name` with all that it needs, in the order in which it was run; "" where no cell defines it.

    Of several statements that bind a name the last one counts, as it does for Python. A cell that is no Python is
    passed over.

    Args:
      name: what is wanted, a function's name.
      cells: the cells' sources, in the order in which they were run.
    """
    statements = [statement for cell in cells for statement in _statements(cell)]
    last = {bound: place for place, statement in enumerate(statements) for bound in statement.binds}
    return _page([statements[place] for place in sorted(_needed(name, statements, last))])


def _page(statements: Sequence[Statement]) -> str:
    """The statements as they stand in a file: two empty lines around a function or a class."""
    text = ""
    for before, statement in zip([None, *statements], statements, strict=False):
        apart = before and ("\n\n\n" if before.is_definition or statement.is_definition else "\n")
        text += f"{apart or ''}{statement.text}"
    return text


def _needed(name: str, statements: Sequence[Statement], last: dict[str, int]) -> set[int]:
    places: set[int] = set()
    names = {name}
    while names:
        found = {last[one] for one in names if one in last} - places
        places |= found
        names = {read for place in found for read in statements[place].reads}
    return places


def _statements(cell: str) -> Iterator[Statement]:
    try:
        tree = ast.parse(cell)
    except (SyntaxError, ValueError):  # a command of IPython's, for one
        return
    lines = cell.splitlines()
    for node in tree.body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        text = "\n".join(lines[first - 1 : node.end_lineno])
        yield Statement(text, frozenset(_bound(node)), frozenset(names_read(text)), isinstance(node, DEFINITIONS))


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    else:
        names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
        yield from (each.id for each in names if isinstance(each.ctx, ast.Store))
