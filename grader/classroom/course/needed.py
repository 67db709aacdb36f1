"""Which cells of the parts outside its core the core of a lesson cannot do without."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from nbformat import NotebookNode

from grader.classroom.course.cells import parse_cells
from grader.classroom.course.headings import CALLED_STRETCH, exercise_heading
from grader.classroom.course.notebook import checked

COMPOUND = ast.For | ast.If | ast.With | ast.Try
ANY_HEADING = re.compile(r"^##.*", re.MULTILINE)
PART_HEADING = re.compile(r"## (?:(\d+) · )?")


def needed_parts(lesson: NotebookNode, core: Collection[int]) -> tuple[int, ...]:
    """The parts outside the core in which a name is bound that the core reads below, itself or by way of another cell.

    Read is what a cell does not bind first itself: a loop's variable is its own. What a notebook does beyond its names
    (the numbers that a generator draws) is not looked at.
    """
    wanted: set[str] = set()
    needed: set[int] = set()
    for part, is_stretch, cell in reversed(list(_placed(lesson))):
        binds, reads = _names(cell.source)
        outside = part > 0 and part not in core
        if (outside or is_stretch) and not binds & wanted:
            continue
        needed |= {part} if outside else set()
        wanted = wanted - binds | reads
    return tuple(sorted(needed))


def _placed(lesson: NotebookNode) -> Iterator[tuple[int, bool, NotebookNode]]:
    """The code cells, each with the number of its part (0 before the parts and behind them), and whether its exercise,
    or else its section, is called stretch."""
    part, is_aside, exercise = 0, False, None
    for cell in lesson.cells:
        if cell.cell_type == "code":
            yield part, is_aside if exercise is None else not exercise.is_core, cell
            exercise = None if checked(cell) else exercise
            continue
        for line in ANY_HEADING.findall(cell.source):
            exercise = exercise_heading(line)
            is_aside = is_aside if exercise else line.endswith(CALLED_STRETCH)
            if heading := PART_HEADING.match(line):
                part = int(heading[1] or 0)


def _names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a cell binds, and what it reads that was bound above; nothing for a cell that is not Python."""
    if not (texts := parse_cells([source])):
        return frozenset(), frozenset()
    (text,) = texts
    return text.names.binds, text.names.uses - text.names.fresh - _passing(text.tree)


def _passing(tree: ast.Module) -> set[str]:
    """The names that a cell binds for the statement in which they are read: of loops, of `with`, `except` and `:=`, and
    what is assigned, and only read, inside of such a statement."""
    names: set[str] = set()
    for statement in tree.body:
        for node in ast.walk(statement):
            match node:
                case ast.For(target=target) | ast.NamedExpr(target=target):
                    names |= _written(target)
                case ast.withitem(optional_vars=ast.AST() as target):
                    names |= _written(target)
                case ast.ExceptHandler(name=str(name)):
                    names.add(name)
                case ast.Assign(targets=targets, value=value) if isinstance(statement, COMPOUND):
                    elsewhere = (_read(other) for other in tree.body if other is not statement)
                    names |= set().union(*map(_written, targets)).difference(_read(value), *elsewhere)
    return names


def _written(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _read(node: ast.AST) -> set[str]:
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)}
