"""The minutes of a lesson: counted word by word, cell by cell, exercise by exercise."""

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from grader.classroom.course.minutes import honest_minutes

READ = " word" * 1300  # ten minutes
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


def test_words_cells_predictions_exercises_and_the_review_count():
    assert counted(READ) == (15, 15)
    assert counted(*30 * [EXAMPLE]) == (15, 15)
    assert counted(10 * "**Predict:** how many? ") == (15, 15)
    assert counted(heading("core", 50), *EXERCISE) == (80, 80)
    assert counted(READ, *30 * [EXAMPLE], heading("core", 50), *EXERCISE) == (100, 100)


def test_hints_take_no_time_and_cells_of_an_exercise_as_long_as_others():
    assert counted(heading("core", 50) + HINT, *EXERCISE) == (80, 80)
    assert counted(heading("core", 50), *30 * [EXAMPLE], *EXERCISE) == (90, 90)


def test_what_follows_the_check_is_read_and_run_like_all_else():
    assert counted("## 1 · One\n", heading("core", 50), *EXERCISE, READ, *30 * [EXAMPLE]) == (100, 100)
    both = (heading("stretch", 50), ANSWER, CHECK, marked("answer_b"), marked("check_b", grade=True))
    assert counted("## 1 · One\n", *both, "## 2 · Two\n" + READ) == (15, 90)


def test_the_core_leaves_out_stretch_exercises_with_their_texts():
    part = ("## 1 · One\n" + READ, heading("core", 50), *EXERCISE, heading("stretch", 50) + READ, *EXERCISE)
    assert counted(*part) == (90, 175)


def test_the_core_keeps_a_part_of_which_a_section_is_called_stretch():
    part = ("## 1 · One\n" + READ, "### Two more · stretch\n" + READ, "## 2 · Two\n", heading("core", 50), *EXERCISE)
    assert counted(*part) == (90, 100)
    assert honest_minutes(lesson(*part)).parts == (1, 2)


def test_the_core_leaves_out_a_part_that_has_stretch_exercises_only():
    stretch, free = ("## 1 · One\n" + READ, heading("stretch", 50), *EXERCISE, READ), "## 2 · Two\n" + READ
    assert counted(READ, *stretch, free) == (25, 120)


def test_the_core_ends_at_going_further():
    core = ("## 1 · One\n" + READ, heading("core", 50), *EXERCISE)
    further = ("## Going further\n\nMore.", "## 2 · Two\n" + READ, *30 * [EXAMPLE], heading("stretch", 50), *EXERCISE)
    minutes = honest_minutes(lesson(*core, *further))
    assert (minutes.core, minutes.everything, minutes.parts) == (90, 185, (1,))
    assert str(minutes) == "About 90 minutes for the core, and 95 more for *Going further*."


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
    core_minutes = 5 * round((5 + 15.8 * len(core)) / 5)  # 15 minutes, two cells, and a heading's words
    assert said == f"About {core_minutes} minutes for the core: {parts}. About 100 minutes for everything."


def test_the_core_leaves_out_a_section_that_is_called_stretch():
    aside = ("### A side track · stretch\n" + READ, *30 * [EXAMPLE], "### Back\n" + READ)
    assert counted("## 1 · One\n", heading("core", 50), *EXERCISE, *aside) == (90, 110)


def test_the_parts_whose_cells_the_core_needs_are_named():
    cells = ("## 1 · One\n", heading("stretch", 10), *EXERCISE, new_code_cell("table = [1]"), new_code_cell("idle = 2"))
    core = ("## 2 · Two\n", heading("core", 10), *EXERCISE)
    needs, does_not = new_code_cell("print(table)"), new_code_cell("table = 3\nprint(table)")
    assert "for the core: part 2; of part 1 run the cells. " in str(honest_minutes(lesson(*cells, *core, needs)))
    assert "for the core: part 2. " in str(honest_minutes(lesson(*cells, *core, does_not)))
