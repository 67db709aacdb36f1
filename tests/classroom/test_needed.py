"""What the core of a lesson needs of the parts that it leaves out."""

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from grader.classroom.course.needed import needed_parts


def lesson(**parts):
    """A notebook whose part k has the cell `_k=`; `end=` stands behind the parts."""
    cells = [new_markdown_cell("# 02 · Two\n\n## Before we begin"), new_code_cell("import numpy as np")]
    for name, source in parts.items():
        heading = f"## {name[1:]} · Title" if name[1:].isdigit() else "## The bill"
        cells += [new_markdown_cell(heading), new_code_cell(source)]
    return NotebookNode(cells=cells)


@pytest.mark.parametrize(
    ("parts", "needed"),
    [
        ({"_1": "a = 1", "_2": "b = a", "_3": "print(a)"}, ()),
        ({"_1": "a = 1", "_2": "b = a", "_3": "print(b)"}, (2,)),
        ({"_1": "a = 1", "_2": "b = a", "_3": "b = 3\nprint(b)"}, ()),
        ({"_1": "a = 1", "_2": "b = 2", "_4": "c = b", "_3": "print(c)"}, (2, 4)),
        ({"_1": "a = 1", "_2": "def b(): return a", "_end": "print(b())"}, (2,)),
        ({"_1": "a = {}", "_2": "a['b'] = 2", "_3": "print(a)"}, (2,)),
        ({"_2": "for b in [1]: print(b)", "_3": "for b in [2]: print(b)"}, ()),
        ({"_2": "b = 1", "_3": "if b := 2: print(b)"}, ()),
        ({"_2": "b = 1", "_3": "try: 1\nexcept ValueError as b: print(b)"}, ()),
        ({"_2": "b = 1", "_3": "if True:\n  b = 2\n  print(b)"}, ()),
        ({"_2": "b = 1", "_3": "for a in [1]:\n  b = b + a"}, (2,)),
        ({"_2": "b = 1", "_3": "print(b)\nif True:\n  b = 2\n  print(b)"}, (2,)),
        ({"_2": "b = 1", "_3": "%magic b"}, ()),
    ],
)
def test_the_core_needs_the_parts_that_bind_what_it_reads(parts, needed):
    assert needed_parts(lesson(**parts), core={1, 3}) == needed


STRETCH = "### Aside · stretch"
EXERCISE = "### Exercise `case3` · stretch · 4 points · 8 minutes · ●●○"


@pytest.mark.parametrize(
    ("heading", "needed"), [("### As well", (2,)), (STRETCH, ()), (EXERCISE, ()), (f"{STRETCH}\n\n### The end", (2,))]
)
def test_what_is_called_stretch_in_a_part_of_the_core_is_not_its(heading, needed):
    two = lesson(_2="a = 1", _3="b = 3")
    two.cells += [new_markdown_cell(heading), new_code_cell("print(a)")]
    assert needed_parts(two, core={3}) == needed


def test_what_the_core_reads_is_needed_by_way_of_an_aside():
    two = lesson(_2="a = 1", _3="b = 3")
    two.cells += [new_markdown_cell(STRETCH), new_code_cell("c = a"), new_markdown_cell("### On"), new_code_cell("c")]
    assert needed_parts(two, core={3}) == (2,)
