"""`grader where NAME`: an author is led to the exercise's declaration, its text, and the questions about it."""

import re
from pathlib import Path

import pytest

from grader.classroom.course.where import places_of
from grader.lessons import EXERCISES

ROOT = Path(__file__).parents[2]


def test_an_exercise_is_declared_told_and_asked_about_at_three_places():
    declaration, text, review = places_of(ROOT, "case3")
    assert re.fullmatch(r"grader/lessons/matmul/cases\.py:\d+: the declaration", declaration)
    assert re.fullmatch(r"solutions/07_matmul/07_matmul\.md:\d+: 8 · Case 3: .*", text)
    assert review == "grader/reviews/matmul.py:1: the review questions"


def test_every_place_names_the_exercise():
    for name in EXERCISES:
        declaration, text, _ = places_of(ROOT, name)
        for place in (declaration, text):
            file, line, _ = place.split(":", 2)
            assert name in (ROOT / file).read_text().splitlines()[int(line) - 1], place


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(LookupError, match="Did you mean case3"):
        places_of(ROOT, "case33")


def test_an_exercise_without_a_text_is_told_so(tmp_path):
    with pytest.raises(LookupError, match=":answer: case3"):
        places_of(tmp_path, "case3")
