"""The recorded answers are judged as they were before, a part of them every day, however fast the machine is."""

from collections import Counter

import pytest
import recorded
from apart import Apart
from recorded import FOLDER, HALVES, LESSONS, is_marked_alike, kept, rows, spread
from recorded_all import DIFFERENCES
from rota import in_turn, parts

from grader.findings.finding import FINDING_KINDS
from grader.lessons import EXERCISES

ROWS = [row for lesson in LESSONS for row in rows(lesson)]
WRONG = spread([row for row in ROWS if not row.right], 200)
LIMIT = 120  # seconds for an answer
MOST = 2_000_000  # bytes that all of them may have


@pytest.fixture(scope="module")
def apart():
    """The process in which the answers are judged."""
    one = Apart(LIMIT)
    yield one
    one.end()


def a_day(some, number):
    """These answers as parameters, so many of them every day."""
    every = parts(len(some), number)
    names = [f"{row.lesson}-{row.exercise}-{row.name}" for row in some]
    each = zip(some, names, strict=True)
    return [pytest.param(row, id=name, marks=in_turn(place, every)) for place, (row, name) in enumerate(each)]


@pytest.mark.parametrize("row", a_day(ROWS, 40))
def test_a_recorded_answer_is_judged_as_before(row, apart):
    today = apart.call(recorded.replay, row)
    assert today.passed == row.right
    assert is_marked_alike(row, today), today
    assert kept(today.found) == list(row.found), f"If this is better: tests/recorded_all.py {row.lesson} --write found"


@pytest.mark.parametrize("row", a_day(WRONG, 4))
def test_no_finding_depends_on_a_clock(row, apart):
    assert apart.call(recorded.hurried, row).found == apart.call(recorded.replay, row).found


@pytest.mark.parametrize("row", a_day(WRONG, 4))
def test_a_case_that_fails_is_explained_alike_in_the_notebook_and_in_grading(row, apart):
    in_notebook, in_grading = apart.call(recorded.in_both, row)
    assert in_notebook == in_grading


def test_measuring_the_searches_changes_no_finding(apart):
    row = recorded.find_row("column_sums", "twice")
    plain, measured = apart.call(recorded.replay, row), apart.call(recorded.replay, row, True)
    assert measured.found == plain.found
    assert measured.by[0] == "step changed" and measured.searches["step changed"] > 0


def test_each_row_has_a_name_of_its_own_and_is_about_an_exercise():
    names = Counter((row.exercise, row.name) for row in ROWS)
    assert [name for name, times in names.items() if times > 1] == []
    assert {row.exercise for row in ROWS} <= set(EXERCISES)


def test_every_wrong_answer_misses_a_check_and_has_findings():
    for row in ROWS:
        assert (row.check == "") == row.right == (not row.found)
        assert {one["is"] for one in row.found} <= set(FINDING_KINDS)


def test_differences_are_kinds_of_findings():
    assert set(FINDING_KINDS) >= DIFFERENCES


def test_the_halves_are_about_equal():
    halves = Counter(row.split for row in ROWS)
    assert set(halves) == set(HALVES) and min(halves.values()) > 0.45 * len(ROWS)


def test_the_recorded_answers_are_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < MOST
