"""The curriculum as a whole: no number is missing, and whatever is said of a lesson is said of one that exists."""

import re
from pathlib import Path

import pytest

from grader.lessons import EXERCISES

ROOT = Path(__file__).parents[2]
LESSONS = sorted(text.stem for text in ROOT.glob("solutions/*/*.md") if text.stem == text.parent.name)
NUMBERS = {lesson[:2] for lesson in LESSONS}
TEXTS = [
    *ROOT.glob("solutions/*/*.md"),
    *ROOT.glob("grader/lessons/**/*.py"),
    *ROOT.glob("book/*.md"),
    *ROOT.glob("*.md"),
]
NAMED = re.compile(r"\b(\d\d_[a-z_]+)\b")
COUNTED = re.compile(r"\blessons? ((?:\d\d(?:, |–|-| and | or | to )?)+)(?!\d)")


def sent_to(text: str) -> set[str]:
    """The numbers of the lessons that a text speaks of."""
    return {number for found in COUNTED.findall(text) for number in re.findall(r"\d\d", found)}


def test_no_number_is_missing():
    assert [lesson[:2] for lesson in LESSONS] == [f"{number:02}" for number in range(1, len(LESSONS) + 1)]


def test_a_text_that_speaks_of_lessons_is_understood():
    assert sent_to("see lesson 07, lessons 12 and 14, and lessons 03–05; 99 problems") == {"07", "12", "14", "03", "05"}


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_sentence_points_to_a_lesson_that_does_not_exist(file):
    text = file.read_text()
    assert sent_to(text) <= NUMBERS
    assert {name for name in NAMED.findall(text) if name[:2] in NUMBERS} <= set(LESSONS)


def test_whoever_misses_a_check_is_sent_to_lessons_that_exist():
    assert any(one.taught_in for one in EXERCISES.values())
    for one in EXERCISES.values():
        assert set(one.taught_in) <= set(LESSONS), one.name


def test_every_gate_comes_after_one_of_its_own_lesson_and_gates_form_no_circle():
    gates = {name: one.after for name, one in EXERCISES.items() if one.after}
    assert gates
    for name in gates:
        way = [name]
        while after := EXERCISES[way[-1]].after:
            assert after in EXERCISES and after not in way
            way.append(after)
