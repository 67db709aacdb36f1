"""From a solution to the starter that a student gets."""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import ClearSolutions


class Starters(ClearSolutions):
    """nbgrader's step that puts a stub in place of a solution; a table, whose entries are stubs already, needs none."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], cell_index: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        stub = self.code_stub["python"]
        body = cell.source.rstrip().removesuffix(f"\n{stub}")
        if body != cell.source.rstrip() and stub in body:
            cell.source = body
        return cell, resources
