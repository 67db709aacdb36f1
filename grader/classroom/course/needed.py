"""Which cells of the parts outside its core the core of a lesson cannot do without."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from nbformat import NotebookNode

from grader.classroom.course.cells import parse_cells

PART_HEADING = re.compile(r"^## (?:(\d+) · )?", re.MULTILINE)


def needed_parts(lesson: NotebookNode, core: Collection[int]) -> tuple[int, ...]:
    """The parts outside the core in which a name is bound that the core reads below, itself or by way of another cell.

    Read is what a cell does not bind first itself: a loop's variable is its own. What a notebook does beyond its names
    (the numbers that a generator draws) is not looked at.
    """
    wanted: set[str] = set()
    needed: set[int] = set()
    for part, cell in reversed(list(_placed(lesson))):
        binds, reads = _names(cell.source)
        outside = part > 0 and part not in core
        if outside and not binds & wanted:
            continue
        needed |= {part} if outside else set()
        wanted = wanted - binds | reads
    return tuple(sorted(needed))


def _placed(lesson: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    """The code cells, each with the number of its part; 0 before the parts and behind them."""
    part = 0
    for cell in lesson.cells:
        if cell.cell_type == "code":
            yield part, cell
        elif headings := PART_HEADING.findall(cell.source):
            part = int(headings[-1] or 0)


def _names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a cell binds, and what it reads that was bound above; nothing for a cell that is not Python."""
    if not (texts := parse_cells([source])):
        return frozenset(), frozenset()
    (text,) = texts
    return text.names.binds, text.names.uses - text.names.fresh - _passing(text.tree)


def _passing(tree: ast.Module) -> frozenset[str]:
    """The names that a cell binds for the statements in which they are read: of loops, of `with`, `except` and `:=`."""
    targets: list[ast.AST] = []
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.For(target=target) | ast.NamedExpr(target=target):
                targets.append(target)
            case ast.withitem(optional_vars=ast.AST() as target):
                targets.append(target)
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
    return frozenset(names | {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)})
