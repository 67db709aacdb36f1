"""Lines of cells that ran without comments and spacing, told as they were written."""

import pytest

from grader.classroom.course.cells import Cell, parse_cells
from grader.classroom.course.spelling import spelling_of
from grader.classroom.inside.wire import ALL_ORIGINS
from grader.classroom.runs.own_lines import lines_as_written
from grader.jax_versions import Spot
from grader.programs.origins import ERROR, Line, Origin, line_shown

SOURCE = """# a comment, and an empty line

def answer(x):   # mine
    total = sum(
        x, 0)    # ü
    return {'é':   psum(total, "x")}
"""
(TEXT,) = parse_cells([SOURCE])
ROWS = spelling_of(Cell(SOURCE), TEXT).plain.split("\n")


def told(number, meant="", cells=(Cell("import jax"), Cell(SOURCE))):
    """The line that is told of a line that ran, of which this is meant."""
    text = ROWS[number - 1].strip()
    start = text.index(meant) if meant else 0
    line = Line(number, text, start, start + len(meant), function="answer")
    reported = ALL_ORIGINS.write([(Origin("all_reduce", line), Origin(ERROR, None))])
    ((first, second),) = ALL_ORIGINS.read(lines_as_written(reported, cells))
    assert second.line is None
    return first.line


def test_a_part_of_a_line_is_the_part_that_was_written():
    line = told(3, "psum(answer_0, 'x')")
    assert (line.number, line.function) == (6, "answer")
    assert line.text[line.start : line.end] == 'psum(total, "x")'


def test_what_was_written_in_several_lines_is_shown_in_its_first():
    line = told(2, "sum(x, 0)")
    assert (line.number, line.text[line.start : line.end]) == (4, "sum(")


def test_what_is_too_long_to_be_shown_is_found_by_where_it_begins():
    written = "def answer(x):\n    y = shard_map(go, " + ", ".join(f"in_{k}=x" for k in range(30)) + ")\n    return y\n"
    cells = [Cell(written)]
    row = spelling_of(cells[0], *parse_cells([written])).plain.split("\n")[1]
    spot = Spot("", "answer", 2, row.index("shard_map"), 2, len(row))
    reported = ALL_ORIGINS.write([(Origin("shard_map", line_shown(row, spot, False)),)])
    ((one,),) = ALL_ORIGINS.read(lines_as_written(reported, cells))
    assert one.line.number == 2 and one.line.text[one.line.start :].startswith("shard_map(go, in_0=x")


@pytest.mark.parametrize(("ran", "written"), [(1, 3), (2, 4), (3, 6)])
def test_a_whole_line_is_where_its_statement_begins(ran, written):
    line = told(ran)
    assert (line.number, line.start, line.end) == (written, 0, 0)


def test_a_line_that_is_in_none_of_the_cells_is_not_shown():
    assert told(3, "psum(answer_0, 'x')", [Cell("import jax")]) is None


def test_what_nobody_can_read_is_left_out():
    assert lines_as_written([["nonsense"]], [Cell(SOURCE)]) is None
