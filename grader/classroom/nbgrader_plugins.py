"""What nbgrader is given of ours: the names that nbgrader_config.py spells."""

from pathlib import Path
from typing import Any

import nbformat

from grader.classroom.course.entered import EnterCells
from grader.classroom.course.late import LatePenalty
from grader.classroom.course.stubs import Starters
from grader.classroom.course.taken import Taken
from grader.classroom.grading.execute import JudgedExecute
from grader.classroom.grading.filters import ansi2html, clean_html, highlight_code, markdown2html, strip_files_prefix
from grader.classroom.grading.marks import GetMarks, RestoreCells, SaveMarks
from grader.classroom.grading.page import Page
from grader.classroom.handins.handin import Alone, OwnNotebook, Reader, Restore, adopt

__all__ = [
    "EnterCells",
    "FeedbackPage",
    "GetMarks",
    "JudgedExecute",
    "LatePenalty",
    "Reader",
    "Restore",
    "RestoreCells",
    "SaveMarks",
    "Starters",
    "Taken",
    "adopt",
    "ansi2html",
    "clean_html",
    "highlight_code",
    "markdown2html",
    "strip_files_prefix",
]


class FeedbackPage(Alone, Page):
    """A page with nothing beside it but what nbgrader's exchange needs to give it back."""

    def from_filename(  # type: ignore[override]  # an HTMLExporter returns text
        self, filename: str, resources: Any = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        return super().from_filename(filename, resources=self.with_files(Path(filename), resources), **options)

    def from_file(self, file_stream: Any, resources: Any = None, **options: Any) -> tuple[str, dict[str, Any]]:  # type: ignore[override]
        return self.from_notebook_node(OwnNotebook(nbformat.read(file_stream, 4)), resources, **options)
