"""The shape of a lesson: an hour's core, straight through, and everything else under "Going further"."""

import mini
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from grader.classroom.course.build import build
from grader.classroom.course.headings import GOING_FURTHER
from grader.classroom.course.shape import NOT_YET, Misshapen, must_have_the_shape


def heading(name: str, kind: str, minutes: int = 5) -> str:
    return f"### Exercise `{name}` · {kind} · 4 points · {minutes} minutes · ●●○\n"


def lesson(*texts: str) -> NotebookNode:
    return NotebookNode(cells=[new_markdown_cell(text) for text in texts])


def wrong(*texts: str) -> str:
    with pytest.raises(Misshapen) as error:
        must_have_the_shape(lesson(*texts), "99_new")
    return str(error.value)


FUNCTIONS = ("axis_groups", "longest_hop", "make_training_mesh")
TABLES = ("read_devices", "axis_type", "topology_order", "mesh_or_error")


def test_a_core_of_an_hour_and_anything_after_it():
    further = [GOING_FURTHER, "## 9 · More\n" + "word " * 10_000, heading("axis_type", "stretch", 90)]
    must_have_the_shape(lesson(heading("axis_groups", "core", 36), *further), "99_new")  # 5 + 54 minutes, and 15 words


def test_a_longer_core_is_refused():
    assert "takes 65.1 minutes, and 60 is the limit" in wrong(heading("axis_groups", "core", 40), GOING_FURTHER)
    assert "takes 81.9 minutes" in wrong("word " * 10_000)


def test_seven_exercises_are_refused():
    many = [
        heading(name, "core", 1) for name in (*FUNCTIONS, "put_on_mesh", "case3", "case3_scattered", "ring_all_gather")
    ]
    assert "has 7 exercises, and 6 is the limit" in wrong(*many)
    must_have_the_shape(lesson(*many[:6]), "99_new")


def test_mostly_tables_are_refused():
    both = [heading(name, "core", 1) for name in (*TABLES, *FUNCTIONS[:2])]
    assert "Of the 6 core exercises, 4 are tables: read_devices, axis_type, topology_order, mesh_or_error." in wrong(
        *both
    )
    must_have_the_shape(lesson(*both[2:]), "99_new")


def test_core_comes_before_going_further_and_stretch_after_it():
    assert "move axis_type." in wrong(heading("axis_type", "stretch"))
    assert "move axis_type, axis_groups." in wrong(
        heading("axis_type", "stretch"),
        GOING_FURTHER,
        heading("axis_groups", "core"),
        heading("longest_hop", "stretch"),
    )


def test_a_lesson_that_is_not_yet_rewritten_is_left_alone():
    must_have_the_shape(lesson(heading("axis_groups", "core", 400)), NOT_YET[0])


def test_the_list_of_lessons_not_yet_rewritten_only_gets_shorter(root):
    texts = {text.stem: text.read_text() for text in root.glob("solutions/*/*.md")}
    assert set(NOT_YET) <= set(texts)
    assert [name for name in NOT_YET if f"\n{GOING_FURTHER}\n" in texts[name]] == [], "rewritten: take it off the list"


def test_the_build_refuses_it(tmp_path):
    mini.make_course(tmp_path)
    lesson = tmp_path / "solutions" / mini.LESSON / f"{mini.LESSON}.md"
    lesson.write_text(lesson.read_text() + "\n" + "word " * 10_000)
    with pytest.raises(Misshapen, match="01_mini: The core takes"):
        build(tmp_path)
