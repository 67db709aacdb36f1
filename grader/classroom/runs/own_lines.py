"""Lines of a cell as it was run, told as lines of that cell as it was written.

Cells are run without comments and spacing, and with numbers for names that only their author sees, so that equal ones
run once. Both texts are of one tree, node for node.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from grader.classroom.course.cells import Cell, CellText, parse_cells
from grader.classroom.course.spelling import spelling_of
from grader.classroom.inside.wire import ALL_ORIGINS
from grader.jax_versions import Spot
from grader.programs.origins import LONGEST_LINE, Line, line_shown


def lines_as_written(reported: Any, cells: Sequence[Cell]) -> Any:
    """Where the answers to an exercise were written, as a worker reports it: in the cells' own lines. What is in none
    of these is in no cell; None where it cannot be read."""
    texts = parse_cells([cell.source for cell in cells]) or []
    try:
        answers = ALL_ORIGINS.read(reported)
    except ValueError:
        return None
    written = (tuple(replace(one, line=_written(one.line, cells, texts)) for one in answer) for answer in answers)
    return ALL_ORIGINS.write(tuple(written))


def _written(line: Line | None, cells: Sequence[Cell], texts: Sequence[CellText]) -> Line | None:
    """The answer's own cell is among the last."""
    both = zip(reversed(cells), reversed(texts), strict=True)
    return next(filter(None, (_in_cell(line, cell, text) for cell, text in both)), None) if line else None


def _in_cell(line: Line, cell: Cell, text: CellText) -> Line | None:
    spelling = spelling_of(cell, text)
    rows = spelling.plain.split("\n")
    row = rows[line.number - 1] if line.number <= len(rows) else ""
    if not line.text or line.text not in row:
        return None
    begin = row.index(line.text)
    meant = begin + line.start, begin + line.end
    there = [pair for pair in _pairs(spelling.plain, text) if pair[0].lineno == line.number]
    if line.start < line.end:
        longest = begin + LONGEST_LINE  # what is meant is told no further
        shown = ((own, *_columns(run, row)) for run, own in there)
        node = next((own for own, start, end in shown if (start, min(end, longest)) == meant), None)
    else:
        node = next((own for run, own in there if isinstance(run, ast.stmt)), None)
    if node is None or node.end_lineno is None or node.end_col_offset is None:
        return None
    start, end = (node.col_offset, node.end_col_offset) if line.start < line.end else (0, 0)
    last = node.end_lineno if line.start < line.end else node.lineno
    spot = Spot("", spelling.names.get(line.function, line.function), node.lineno, start, last, end)
    return line_shown(cell.source.split("\n")[node.lineno - 1], spot, line.backward)


def _columns(node: ast.expr | ast.stmt, row: str) -> tuple[int, int]:
    """Where a node begins and ends in its first row, in characters; one that goes on ends with the row."""
    encoded = row.encode()
    end = node.end_col_offset if node.end_lineno == node.lineno else len(encoded)
    begin, end = (len(encoded[:column].decode(errors="ignore")) for column in (node.col_offset, end))
    return begin, end


@functools.lru_cache(maxsize=256)
def _pairs(plain: str, text: CellText) -> tuple[tuple[Any, Any], ...]:
    """The nodes of a cell that have a place, as they were run and as they were written; none where the trees differ."""
    both = list(_placed(ast.parse(plain))), list(_placed(text.tree))
    if list(map(type, both[0])) != list(map(type, both[1])):
        return ()
    return tuple(zip(*both, strict=True))


def _placed(tree: ast.Module) -> Iterator[Any]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.expr, ast.stmt)))
