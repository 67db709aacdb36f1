"""What a lesson asks of its reader: short tables, few of them in a core; and what it always offers."""

import re
from pathlib import Path

import pytest

from grader.classroom.course.headings import exercise_heading
from grader.classroom.course.index import PARTS

ROOT = Path(__file__).parents[2]
TEXTS = {text.stem: text.read_text() for text in sorted(ROOT.glob("solutions/*/*.md")) if text.stem == text.parent.name}
ROWS, CORE_TABLES = 6, 2
# The runs of one experiment, the programs of one cell: with fewer of them it would be another question.
LARGER = {"which_run": 7, "same_lr_question": 7}
STARTER = re.compile(r"^:answer: (\w+)\n\n((?:(?!^```|BEGIN SOLUTION).)*)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"[\"'] ?: \.\.\.[,}]")


def core(text: str) -> set[str]:
    """The exercises of a lesson's core."""
    headings = filter(None, map(exercise_heading, text.splitlines()))
    return {name for heading in headings if heading.is_core for name in heading.names}


def tables(text: str) -> dict[str, int]:
    """The tables of a lesson, each with its rows."""
    rows = {name: len(ROW.findall(starter)) for name, starter in STARTER.findall(text)}
    return {name: count for name, count in rows.items() if count}


def test_the_tables_are_found():
    assert tables(TEXTS["03_placement"])["commit_status"] == 6
    assert tables(TEXTS["07_matmul"])["find_the_mistake"] == 5


@pytest.mark.parametrize("lesson", TEXTS)
def test_a_table_has_at_most_six_rows(lesson):
    assert {name: rows for name, rows in tables(TEXTS[lesson]).items() if rows > LARGER.get(name, ROWS)} == {}


@pytest.mark.parametrize("lesson", TEXTS)
def test_a_core_has_at_most_two_tables(lesson):
    assert len(tables(TEXTS[lesson]).keys() & core(TEXTS[lesson])) <= CORE_TABLES


@pytest.mark.parametrize("lesson", [lesson for lesson in TEXTS if lesson != "22_capstone"])  # whose gates are its own
def test_predictions_have_a_place(lesson):
    """At most three of them: else the place is filled in without a thought."""
    guesses = TEXTS[lesson].count("grader.guess(")
    assert TEXTS[lesson].count("my_guess = ...") == guesses and 1 <= guesses <= 3


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.title)
def test_every_part_has_a_line_to_change(part):
    texts = [text for lesson, text in TEXTS.items() if part.first <= int(lesson.split("_")[0]) <= part.last]
    assert any("**change one line**" in text.lower() for text in texts)


@pytest.mark.parametrize("lesson", TEXTS)
def test_a_lesson_defines_no_helper_that_the_course_has(lesson):
    assert not re.findall(r"^def (?:put|attempt|refusal)\(", TEXTS[lesson], re.MULTILINE)
