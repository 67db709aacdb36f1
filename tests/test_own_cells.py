"""The lines of a student's own cells from which plain answers come; shown beside what is wrong, and no part of it."""

import sys

import pytest
from answering import define
from jax.sharding import PartitionSpec as P

from grader.checking import verdict_on
from grader.exercises.answers import Value
from grader.exercises.own_cells import line_of_a_row, result_and_line

SHARD_AXIS = """
def shard_axis(shape, n, smallest):
    if smallest > 100:
        return "whole"
    for k, size in enumerate(shape):
        if size % n == 0:
            return k
    return "whole"
"""
TABLE = """
predict_out = {
    "v.T": P("d"),
    "v.sum(0)": P(), "v + v.T": P(None, "d"),
    "v.reshape(-1)": ...,
    "v[0]": P(),
    "v @ v": P("d"),
}
predict_out["v.reshape(-1)"] = P("d")
"""


def defined(cell, **space):
    define(cell, space)
    return space


def test_a_wrong_function_is_shown_the_line_that_returned_it():
    verdict = verdict_on("shard_axis", defined(SHARD_AXIS)["shard_axis"])
    assert [(line.number, line.text, line.function) for line in verdict.lines] == [(4, 'return "whole"', "shard_axis")]


def test_each_wrong_row_that_is_told_is_shown_with_what_stands_in_it():
    verdict = verdict_on("predict_out", defined(TABLE, P=P)["predict_out"])
    assert [(line.number, line.text[line.start : line.end]) for line in verdict.lines] == [
        (3, 'P("d")'),
        (4, 'P(None, "d")'),
    ]


def test_a_right_answer_is_shown_none():
    right = defined("def count(n):\n    return n\n")["count"]
    result, line = result_and_line(right, {"n": 3})
    assert (result, line.number) == (3, 2)
    assert Value(3, line=line) == Value(3)


def test_of_a_function_that_calls_itself_it_is_the_outermost_return():
    cell = "def down(n):\n    if n == 0:\n        return 0\n    return down(n - 1) + 1\n"
    result, line = result_and_line(defined(cell)["down"], {"n": 4})
    assert (result, line.number) == (4, 4)


def test_after_an_error_nobody_follows_the_lines():
    with pytest.raises(ZeroDivisionError):
        result_and_line(defined("def never(n):\n    return n / 0\n")["never"], {"n": 1})
    assert sys.gettrace() is None


def test_who_follows_the_lines_already_is_not_disturbed():
    seen = []
    sys.settrace(lambda frame, event, value: seen.append(event))
    try:
        result, line = result_and_line(defined("def two():\n    return 2\n")["two"], {})
        kept = sys.gettrace()
    finally:
        sys.settrace(None)
    assert (result, line) == (2, None) and kept is not None and seen


def test_what_is_in_a_file_or_in_no_source_has_no_line():
    assert result_and_line(lambda n: n, {"n": 1}) == (1, None)
    assert result_and_line(dict, {"a": 1}) == ({"a": 1}, None)


def test_of_several_versions_of_a_cell_the_one_that_says_this_value():
    defined('older = {"a row of older": 1}')
    defined('older = {"a row of older": 2, "other": 3}')
    assert line_of_a_row("a row of older", 1).text == 'older = {"a row of older": 1}'
    assert line_of_a_row("a row of older", 2).text == 'older = {"a row of older": 2, "other": 3}'
    assert line_of_a_row("a row of older", 5) is None
    assert line_of_a_row("a row of nobody", 1) is None


def test_rows_are_also_set_one_by_one_or_several_at_once():
    defined('late = {}\nlate["a late row"], late["another"] = 3, 4\nlate["a third"] = 5')
    assert [line_of_a_row(*row).number for row in (("a late row", 3), ("another", 4), ("a third", 5))] == [2, 2, 3]


def test_what_is_computed_may_be_any_value():
    defined('newer = {"a row of newer": 4 * 2}')
    assert line_of_a_row("a row of newer", 8).text == 'newer = {"a row of newer": 4 * 2}'
