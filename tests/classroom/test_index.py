"""The start page says of each lesson what the lesson says of itself."""

import re
import xml.etree.ElementTree as ElementTree

import jupytext
import mini
import nbformat
import pytest

from grader.classroom.course.build import lessons
from grader.classroom.course.index import PARTS, START_PAGE, afterwards, start_page
from grader.classroom.course.minutes import honest_minutes
from grader.classroom.course.notebook import mark
from grader.classroom.course.prerequisites import in_words, nearest, picture, places
from grader.classroom.course.syllabus import syllabus_json, told
from grader.guide.syllabus import SYLLABUS


@pytest.fixture(scope="module")
def facts(root):
    return told(root)


def test_every_lesson_has_its_row_in_one_part_and_a_link_that_leads_to_it(root, facts):
    text = "\n".join(cell.source for cell in start_page(root).cells)
    names = [source.stem for source in lessons(root)]
    assert re.findall(r"^\| \[.*?\]\((\w+)/\1\.ipynb\)", text, re.MULTILINE) == names
    assert [sum(lesson in part for part in PARTS) for lesson in facts] == [1] * len(names)
    due = {f"{k:02}" for part in PARTS for k in range(part.first, part.last + 1)}
    listed = ", ".join(re.findall(r"^In preparation: (.*)\.$", text, re.MULTILINE))
    assert set(filter(None, listed.split(", "))) == due - {name[:2] for name in names}


def test_what_can_be_done_afterwards_stands_in_one_table_and_the_page_repeats_it(root, facts):
    can = afterwards(root)
    assert list(can) == [lesson.name for lesson in facts]
    text = "\n".join(cell.source for cell in start_page(root).cells)
    assert [sentence for sentence in can.values() if f"| {sentence} |" not in text] == []


def test_what_lies_in_the_tree_is_what_the_lessons_say_now(root):
    released = nbformat.read(root / "course" / START_PAGE, 4)
    assert [cell.source for cell in released.cells] == [cell.source for cell in start_page(root).cells]
    assert (root / "grader" / SYLLABUS).read_text() == syllabus_json(root)


def test_every_lesson_says_how_long_it_takes(root, facts):
    """As it was counted when it was built, and for the text as it is now."""
    text = "\n".join(cell.source for cell in start_page(root).cells)
    for lesson, source in zip(facts, lessons(root), strict=True):
        counted = honest_minutes(mark(jupytext.read(source, fmt="md:myst"), lesson.number))
        assert (lesson.core_minutes, lesson.minutes) == (counted.core, counted.everything)
        assert f"| {counted.core} min | {counted.everything} min |" in text
        for folder in ("course", "solutions"):
            first = nbformat.read(root / folder / lesson.name / f"{lesson.name}.ipynb", 4).cells[0].source
            assert re.findall("^About .*", first, re.MULTILINE) == [str(counted)], lesson.name


def test_the_core_of_a_lesson_is_but_a_part_of_it(facts):
    assert [lesson.name for lesson in facts if lesson.core_minutes >= lesson.minutes] == [], "a stretch is missing"
    assert [lesson.name for lesson in facts if sum(one.is_core for one in lesson.exercises) < 3] == []


def test_every_lesson_needs_only_earlier_ones(facts):
    assert [lesson.name for lesson in facts if not all(need < lesson.number for need in lesson.needs)] == []
    assert [lesson.number for lesson in facts if not lesson.needs] == ["01"]


def test_the_picture_has_a_box_for_each_lesson_below_those_that_it_needs(facts):
    needs = nearest(facts)
    where = places(needs)
    assert len(set(where.values())) == len(facts) == picture(facts).count("<rect")
    assert [(a, b) for b, before in needs.items() for a in before if where[a][0] >= where[b][0]] == []
    ElementTree.fromstring(picture(facts))
    assert "07 needs 06" in in_words(facts) and needs["04"] == ["03"]


def test_a_small_course_has_a_start_page_too(course):
    text = "\n".join(cell.source for cell in nbformat.read(course / "course" / START_PAGE, 4).cells)
    assert f"{mini.LESSON}/{mini.LESSON}.ipynb" in text
