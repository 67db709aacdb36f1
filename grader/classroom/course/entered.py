"""nbgrader's step that enters a lesson's cells into its gradebook, quicker."""

from __future__ import annotations

from nbformat import NotebookNode
from nbgrader.preprocessors import SaveCells


class EnterCells(SaveCells):
    """nbgrader's SaveCells. It commits every cell by itself, and the disk is waited for each time; here once a lesson,
    and where something fails half-way, nothing is entered."""

    def _create_notebook(self, nb: NotebookNode) -> None:
        session = self.gradebook.db
        session.commit = session.flush  # for this object alone, and until the notebook is there
        try:
            super()._create_notebook(nb)
        finally:
            del session.commit
        session.commit()
