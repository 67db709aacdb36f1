"""A lesson's page: worked examples with their outputs, exercises as students get them, checks without a result."""

from __future__ import annotations

import re
from collections.abc import Mapping

import nbformat
from nbformat import NotebookNode

from grader.classroom.course.notebook import grade_id
from grader.classroom.course.syllabus import LESSONS
from grader.classroom.course.taken import STAYS

HEADING = re.compile(r"^(#+ .+?) · ((?:core|stretch) · \d.*)$", re.MULTILINE)
WORD_FOR_WORD = re.compile(r"(```.*?```|`[^`]*`|\[[^\]]*\]\([^)]*\))", re.DOTALL)


def page(solved: NotebookNode, released: NotebookNode, others: Mapping[str, str]) -> NotebookNode:
    """The page of a lesson, from its two notebooks; `others` are the lessons that may be linked, by their numbers."""
    sources = {cell.id: cell.source for cell in released.cells}
    cells = [_code(cell, sources) if cell.cell_type == "code" else _text(cell, others) for cell in solved.cells]
    return nbformat.v4.new_notebook(cells=cells, metadata=solved.metadata)


def _code(cell: NotebookNode, sources: Mapping[str, str]) -> NotebookNode:
    """A code cell as students get it; with its outputs where it is a worked example that shows the same each time."""
    source = sources[cell.id] if grade_id(cell) else sources.get(cell.id, cell.source)
    is_example = not grade_id(cell) and not source.startswith((STAYS, "review"))
    outputs = cell.outputs if is_example else []
    return nbformat.v4.new_code_cell(source, id=cell.id, outputs=outputs)


def _text(cell: NotebookNode, others: Mapping[str, str]) -> NotebookNode:
    paragraphs = re.split(r"(\n\s*\n)", HEADING.sub(r"\1\n\n{.meta}\n\2", cell.source))
    return nbformat.v4.new_markdown_cell("".join(linked(p, others) for p in paragraphs), id=cell.id)


def linked(paragraph: str, others: Mapping[str, str]) -> str:
    """A paragraph in which each lesson that is spoken of by its number is a link; code and links stay as they are."""
    if paragraph.startswith("#"):
        return paragraph
    template = '<a href="../{0}/{0}.html">{1}</a>' if paragraph.startswith("<") else "[{1}](../{0}/{0}.ipynb)"

    def link(number: str, text: str) -> str:
        return template.format(others[number], text) if number in others else text

    def links(match: re.Match[str]) -> str:
        numbers = re.findall(r"\d\d", match[0])
        if len(numbers) == 1:
            return link(numbers[0], match[0])
        return re.sub(r"\d\d", lambda number: link(number[0], number[0]), match[0])

    parts = WORD_FOR_WORD.split(paragraph)
    return "".join(part if k % 2 else LESSONS.sub(links, part) for k, part in enumerate(parts))
