"""A lesson's notebook: its answer cells, its check cells, and the marks that nbgrader reads.

The source of a lesson marks a cell by metadata, `answer: NAME` or `check: NAME`. All else that
nbgrader needs follows from that and from the exercise.
"""

from __future__ import annotations

import ast
import copy
import json
from json.encoder import encode_basestring
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4.rwbase import split_lines, strip_transient

from grader.lessons import find

CHECK = "check_"
ANSWER = "answer_"


def mark(nb: NotebookNode, number: str) -> NotebookNode:
    """Give every cell its stable id `NN-iii` and nbgrader's metadata. Changes `nb` and returns it."""
    for k, cell in enumerate(nb.cells):
        cell.id = f"{number}-{k:03}"
        if name := cell.metadata.get("answer"):
            cell.metadata.nbgrader = _marks(ANSWER + name, solution=True, locked=False)
        elif name := cell.metadata.get("check"):
            cell.metadata.nbgrader = _marks(CHECK + name, grade=True, points=find(name).points)
    return nb


def _marks(
    grade_id: str, *, grade: bool = False, solution: bool = False, locked: bool = True, **points: float
) -> NotebookNode:
    """Cells without marks stay free: students may change a worked example and run it again."""
    return NotebookNode(
        grade=grade, grade_id=grade_id, locked=locked, schema_version=3, solution=solution, task=False, **points
    )


def grade_id(cell: NotebookNode) -> str:
    """The name by which nbgrader knows a cell; "" when it has none, whatever the metadata hold."""
    marks = cell.metadata.get("nbgrader")
    name = marks.get("grade_id") if isinstance(marks, dict) else ""
    return name if isinstance(name, str) else ""


def checked(cell: NotebookNode) -> str:
    """The exercise that a check cell checks; "" for any other cell."""
    name = grade_id(cell)
    is_check = cell.cell_type == "code" and name.startswith(CHECK) and cell.metadata.nbgrader.get("grade")
    return name.removeprefix(CHECK) if is_check else ""


def checks(nb: NotebookNode) -> list[str]:
    """The exercises a notebook checks, in order, each once."""
    return list(dict.fromkeys(filter(None, map(checked, nb.cells))))


def answer_expression(source: str) -> str:
    """What a check cell hands to `check`: the second argument, as source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check" and len(node.args) == 2:
            return ast.unparse(node.args[1])
    raise ValueError(f'a check cell should read check("name", answer); this one reads {source!r}')


def restore(nb: NotebookNode, release: NotebookNode) -> NotebookNode:
    """A hand-in with the marks of the release and no others, and with each of its check cells once, word for word.

    No code of the student's is lost: copies of a marked cell and edited check cells stay as ordinary cells. A check
    cell that is then missing is put back behind these, else behind its answer, else at the end.
    """
    nb = nbformat.from_dict(nb)
    originals = {grade_id(cell): cell for cell in release.cells if grade_id(cell)}
    intact: set[str] = set()
    places: dict[str, int] = {}
    for position, cell in enumerate(nb.cells):
        name = grade_id(cell)
        cell.metadata.pop("nbgrader", None)
        if name in originals:
            places[_exercise(name)] = position
            if name not in intact and _is_intact(cell, originals[name]):
                intact.add(name)
                cell.metadata.nbgrader = nbformat.from_dict(originals[name].metadata.nbgrader)
    missing = [
        (places.get(_exercise(name), len(nb.cells) - 1) + 1, cell)
        for name, cell in originals.items()
        if checked(cell) and name not in intact
    ]
    for shift, (position, cell) in enumerate(sorted(missing, key=lambda m: m[0])):
        fresh = nbformat.from_dict({**cell, "outputs": [], "execution_count": None})
        nb.cells.insert(position + shift, fresh)
    return nb


def notebook_text(nb: NotebookNode) -> str:
    """A notebook as `nbformat.writes` writes it, character for character. That takes three times as long, for Python's
    encoder has an indentation only where it goes from piece to piece."""
    return _indented(strip_transient(split_lines(copy.deepcopy(nb))), "\n")


def _indented(value: Any, margin: str) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if not value or not isinstance(value, (dict, list, tuple)):
        return json.dumps(value)
    inner = f"{margin} "
    if isinstance(value, (list, tuple)):
        return f"[{inner}{f',{inner}'.join([_indented(part, inner) for part in value])}{margin}]"
    parts = [f"{encode_basestring(name)}: {_indented(value[name], inner)}" for name in sorted(value)]
    return f"{{{inner}{f',{inner}'.join(parts)}{margin}}}"


def _exercise(name: str) -> str:
    return name.removeprefix(CHECK).removeprefix(ANSWER)


def _is_intact(cell: NotebookNode, original: NotebookNode) -> bool:
    same_text = cell.source == original.source or not checked(original)
    return cell.cell_type == original.cell_type and same_text
