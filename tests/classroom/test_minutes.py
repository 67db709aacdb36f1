"""The minutes of a lesson: counted word by word, cell by cell, exercise by exercise."""

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from grader.classroom.course.minutes import honest_minutes

READ = " word" * 1500  # ten minutes
HINT = f"<details><summary>Hint 1</summary>{READ}</details>"


def heading(kind: str, minutes: int) -> str:
    return f"### Exercise `a` · {kind} · 4 points · {minutes} minutes · ●●○\n"


def marked(name: str, grade: bool = False):
    return new_code_cell("...", metadata={"nbgrader": {"grade_id": name, "grade": grade}})


def lesson(*cells):
    """A notebook of these cells: a text, or a code cell."""
    return NotebookNode(cells=[new_markdown_cell(cell) if isinstance(cell, str) else cell for cell in cells])


def counted(*cells):
    minutes = honest_minutes(lesson(*cells))
    return minutes.core, minutes.everything


ANSWER, CHECK, EXAMPLE = marked("answer_a"), marked("check_a", grade=True), new_code_cell("1 + 1")
EXERCISE = (ANSWER, CHECK)


def test_words_examples_and_exercises_count():
    assert counted(READ) == (10, 10)
    assert counted(*20 * [EXAMPLE]) == (10, 10)
    assert counted(heading("core", 50), *EXERCISE) == (70, 70)
    assert counted(READ, *20 * [EXAMPLE], heading("core", 50), *EXERCISE) == (90, 90)


def test_hints_and_the_cells_of_an_exercise_take_no_time_of_their_own():
    assert counted(heading("core", 50) + HINT, *100 * [EXAMPLE], *EXERCISE) == (70, 70)


def test_what_follows_the_check_is_read_and_run_like_all_else():
    assert counted("## 1 · One\n", heading("core", 50), *EXERCISE, READ, *20 * [EXAMPLE]) == (90, 90)
    both = (heading("stretch", 50), ANSWER, CHECK, marked("answer_b"), marked("check_b", grade=True))
    assert counted("## 1 · One\n", *both, "## 2 · Two\n" + READ) == (10, 80)


def test_the_core_leaves_out_stretch_exercises_with_their_texts():
    part = ("## 1 · One\n" + READ, heading("core", 50), *EXERCISE, heading("stretch", 50) + READ, *EXERCISE)
    assert counted(*part) == (80, 160)


def test_the_core_keeps_a_part_of_which_a_section_is_called_stretch():
    part = ("## 1 · One\n" + READ, "### Two more · stretch\n" + READ, "## 2 · Two\n", heading("core", 50), *EXERCISE)
    assert counted(*part) == (80, 90)
    assert honest_minutes(lesson(*part)).parts == (1, 2)


def test_the_core_leaves_out_a_part_that_has_stretch_exercises_only():
    stretch, free = ("## 1 · One\n" + READ, heading("stretch", 50), *EXERCISE, READ), "## 2 · Two\n" + READ
    assert counted(READ, *stretch, free) == (20, 110)


@pytest.mark.parametrize(
    ("core", "parts"),
    [([1], "part 1"), ([1, 2], "parts 1 and 2"), ([1, 2, 3, 5], "parts 1–3 and 5"), ([2, 3, 5], "parts 2, 3 and 5")],
)
def test_the_parts_of_the_core_are_named(core, parts):
    cells = [
        cell
        for k in range(1, 7)
        for cell in (f"## {k} · Title\n", heading("core" if k in core else "stretch", 10), *EXERCISE)
    ]
    said = str(honest_minutes(lesson(*cells)))
    core_minutes = 5 * round(14 * len(core) / 5)
    assert said == f"About {core_minutes} minutes for the core: {parts}. About 85 minutes for everything."


def test_the_core_leaves_out_a_section_that_is_called_stretch():
    aside = ("### A side track · stretch\n" + READ, *20 * [EXAMPLE], "### Back\n" + READ)
    assert counted("## 1 · One\n", heading("core", 50), *EXERCISE, *aside) == (80, 100)


def test_the_parts_whose_cells_the_core_needs_are_named():
    cells = ("## 1 · One\n", heading("stretch", 10), *EXERCISE, new_code_cell("table = [1]"), new_code_cell("idle = 2"))
    core = ("## 2 · Two\n", heading("core", 10), *EXERCISE)
    needs, does_not = new_code_cell("print(table)"), new_code_cell("table = 3\nprint(table)")
    assert "for the core: part 2; of part 1 run the cells. " in str(honest_minutes(lesson(*cells, *core, needs)))
    assert "for the core: part 2. " in str(honest_minutes(lesson(*cells, *core, does_not)))
