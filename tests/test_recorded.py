"""The recorded answers get the marks they got before, a part of them every day."""

from collections import Counter

import pytest
from apart import Apart
from recorded import FOLDER, HALVES, LESSONS, replay, rows
from rota import in_turn, parts

from grader.lessons import EXERCISES

ROWS = [row for lesson in LESSONS for row in rows(lesson)]
EVERY = parts(len(ROWS), a_day=40)  # each takes half a second
LIMIT = 120  # seconds for an answer
MOST = 2_000_000  # bytes that all of them may have


@pytest.fixture(scope="module")
def apart():
    """The process in which the answers are judged."""
    one = Apart(LIMIT)
    yield one
    one.end()


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{row.lesson}-{row.exercise}-{row.name}", marks=in_turn(place, EVERY))
        for place, row in enumerate(ROWS)
    ],
)
def test_a_recorded_answer_gets_the_same_marks(row, apart):
    today = apart.call(replay, row)
    assert today.points == row.points
    assert (today.check, today.mistake) == (row.check, row.mistake)
    assert today.passed == row.right


def test_each_row_has_a_name_of_its_own_and_is_about_an_exercise():
    names = Counter((row.exercise, row.name) for row in ROWS)
    assert [name for name, times in names.items() if times > 1] == []
    assert {row.exercise for row in ROWS} <= set(EXERCISES)


def test_the_halves_are_about_equal():
    halves = Counter(row.split for row in ROWS)
    assert set(halves) == set(HALVES) and min(halves.values()) > 0.45 * len(ROWS)


def test_the_recorded_answers_are_small():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < MOST
