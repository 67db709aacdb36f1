"""A lesson's page: worked examples with their outputs, exercises as students get them, checks without a result."""

from __future__ import annotations

import re
from collections.abc import Mapping

import nbformat
from nbformat import NotebookNode

from grader.classroom.course.notebook import ANSWER, grade_id
from grader.classroom.course.syllabus import LESSONS

HEADING = re.compile(r"^(#+ .+?) · ((?:core|stretch) · \d.*)$", re.MULTILINE)
WORD_FOR_WORD = re.compile(r"(```.*?```|`[^`]*`|\[[^\]]*\]\([^)]*\))", re.DOTALL)


def page(solved: NotebookNode, released: NotebookNode, others: Mapping[str, str]) -> NotebookNode:
    """The page of a lesson, from its two notebooks; `others` are the lessons that may be linked, by their numbers."""
    starters = {grade_id(cell): cell.source for cell in released.cells}
    cells = [_code(cell, starters) if cell.cell_type == "code" else _text(cell, others) for cell in solved.cells]
    return nbformat.v4.new_notebook(cells=cells, metadata=solved.metadata)


def _code(cell: NotebookNode, starters: Mapping[str, str]) -> NotebookNode:
    name = grade_id(cell)
    source = starters[name] if name.startswith(ANSWER) else cell.source
    drawn_anew = source.startswith("review")
    outputs = [] if name or drawn_anew else cell.outputs
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
