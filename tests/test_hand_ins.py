"""The benchmark's hand-ins: an answer in other words is the same answer."""

import symtable
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "bench"))
from hand_ins import respelled, with_own_line  # noqa: E402

from grader.classroom.course.cells import Cell, parse_cells  # noqa: E402
from grader.classroom.course.spelling import spelling_of  # noqa: E402

SPELLED = "_7"


def scopes(table: symtable.SymbolTable) -> list:
    """Which name belongs to which scope, without what a spelling adds to it."""
    names = sorted(
        (name.get_name().removesuffix(SPELLED), name.is_parameter(), name.is_local(), name.is_free(), name.is_global())
        for name in table.get_symbols()
    )
    return [names, [scopes(inner) for inner in table.get_children()]]


@pytest.mark.parametrize(
    "inside",
    [
        "def body(block):\n  block = block * x\n  return block\n return body(block=x)",
        "total = 1\n def add():\n  nonlocal total\n  total = total + x\n add()\n return total",
        "total = [k for k in range(x)]\n def last(total=total):\n  return total[-1]\n return last(total=total)",
        "twice = lambda number: 2 * number\n number = twice(x)\n return number",
    ],
)
def test_an_answer_in_other_words_returns_the_same(inside):
    returned = []
    source = f"def answer(x):\n {inside}"
    for each in (source, respelled(source, "7"), with_own_line(source, 7)):
        exec(each, space := {})
        returned.append(space["answer"](3))
    assert returned[0] == returned[1] == returned[2]


def test_names_make_no_two_programs_of_one_and_a_line_does():
    source = 'def answer(x):\n    """What it does."""\n    y = x\n    return y'

    def run(source):
        (text,) = parse_cells([source])
        return spelling_of(Cell(source), text).plain

    assert run(respelled(source, "7")) == run(respelled(source, "8"))
    assert run(with_own_line(source, 7)) != run(with_own_line(source, 8))
    assert '"""What it does."""' in with_own_line(source, 7)


def test_in_every_solution_each_name_stays_in_its_scope():
    changed = 0
    for file in ROOT.glob("solutions/*/[0-9]*.ipynb"):
        for cell in nbformat.read(file, 4).cells:
            if cell.metadata.get("answer"):
                other = respelled(cell.source, SPELLED[1:])
                told = [scopes(symtable.symtable(text, "answer", "exec")) for text in (cell.source, other)]
                assert told[0] == told[1], other
                changed += SPELLED in other
    assert changed > 100
