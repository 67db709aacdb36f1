"""A lesson's notebook: its answer cells, its check cells, and the marks that nbgrader reads.

The source of a lesson marks a cell by metadata, `answer: NAME` or `check: NAME`. Everything nbgrader
wants to know follows from that and from the exercise.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import nbformat
from nbformat import NotebookNode

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
            cell.metadata.tags = ["nbval-check-output"]
    return nb


def _marks(grade_id: str, *, grade: bool = False, solution: bool = False, locked: bool = True,
           **points: float) -> NotebookNode:
    """Cells without marks stay free: students may change a worked example and run it again."""
    return NotebookNode(grade=grade, grade_id=grade_id, locked=locked, schema_version=3, solution=solution,
                        task=False, **points)


def checked(cell: NotebookNode) -> str:
    """The exercise that a check cell checks; "" for any other cell."""
    marks = cell.metadata.get("nbgrader") or {}
    grade_id = marks.get("grade_id", "") if isinstance(marks, dict) else ""
    is_check = cell.cell_type == "code" and bool(marks) and bool(marks.get("grade"))
    return grade_id.removeprefix(CHECK) if is_check and str(grade_id).startswith(CHECK) else ""


def checks(nb: NotebookNode) -> list[str]:
    """The exercises a notebook checks, in order, each once."""
    return list(dict.fromkeys(filter(None, map(checked, nb.cells))))


def answer_expression(source: str) -> str:
    """What a check cell hands to `check`: the second argument, as source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "check" and len(node.args) == 2:
            return ast.unparse(node.args[1])
    raise ValueError(f"a check cell should read check(\"name\", answer); this one reads {source!r}")


def restore(nb: NotebookNode, release: NotebookNode) -> NotebookNode:
    """A hand-in with exactly the check cells of the release, each once and word for word.

    Copies of a check cell lose their marks, missing ones are put back at the end, edited ones are undone.
    """
    nb = nbformat.from_dict(nb)
    originals = {checked(cell): cell for cell in release.cells if checked(cell)}
    seen: set[str] = set()
    for cell in nb.cells:
        name = checked(cell)
        if not name:
            continue
        if name in seen or name not in originals:
            del cell.metadata["nbgrader"]
        else:
            seen.add(name)
            cell.source, cell.metadata = originals[name].source, originals[name].metadata
    nb.cells += [_again(cell) for name, cell in originals.items() if name not in seen]
    return nb


def _again(cell: NotebookNode) -> NotebookNode:
    return nbformat.from_dict({**cell, "outputs": [], "execution_count": None})


def solution_lines(nb: NotebookNode) -> Iterable[str]:
    """Every line between BEGIN SOLUTION and END SOLUTION that says something of its own."""
    for cell in nb.cells:
        for block in re.findall(r"### BEGIN SOLUTION\n(.*?)\n\s*### END SOLUTION", cell.source, re.DOTALL):
            yield from (line.strip() for line in block.splitlines() if len(line.strip()) >= 12)
