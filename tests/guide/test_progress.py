"""A student sees what is done, what was better once, what is open, and what comes next."""

import json
import re

import pytest

import grader
from grader.guide import hints
from grader.guide.attempts import CHOSEN, FILE
from grader.guide.syllabus import syllabus
from grader.lessons import EXERCISES


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """Keeps checks that came to these points, one after the other."""
    monkeypatch.setenv(CHOSEN, str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def keep(*checks):
        entries = (
            {"exercise": n, "points": p, "worth": w, "state": "", "time": k} for k, (n, p, w) in enumerate(checks)
        )
        (tmp_path / FILE).write_text("\n".join(map(json.dumps, entries)))

    return keep


def test_the_syllabus_has_every_exercise_once_with_three_hints_and_its_starter():
    texts = [text for lesson in syllabus() for text in lesson.exercises]
    assert sorted(text.name for text in texts) == sorted(EXERCISES)
    assert {len(text.hints) for text in texts} == {3}
    assert [t.name for t in texts if "..." not in t.starter or not t.minutes] == []
    assert [t.name for t in texts if re.search(r"<\w|&\w+;|SOLUTION", "".join(t.hints) + t.starter)] == []


def test_the_total_is_over_all_lessons(checked):
    total = sum(exercise.points for exercise in EXERCISES.values())
    assert grader.progress().total == f"0 of {total:g} points"
    checked(("case3", 4, 4), ("block_matmul", 1, 2))
    assert grader.progress().total == f"5 of {total:g} points"


def test_the_latest_check_counts_and_the_best_is_remembered(checked):
    checked(("case3", 4, 4), ("case3", 1, 4), ("block_matmul", 0, 2), ("block_matmul", 2, 2))
    section = next(s for s in grader.progress().sections if s.lesson.name == "07_matmul")
    standings = {standing.text.name: standing for standing in section.standings}
    assert (standings["case3"].points, standings["case3"].best) == (1, 4)
    assert section.points == 3 and not standings["block_matmul"].is_open
    checked(("case3", 4, 4), ("case3", 0, 4), *((name, 1, 1) for name in standings if name != "case3"))
    assert "open: case3 (had 4)" in repr(grader.progress())


def test_next_is_an_open_exercise_of_the_lesson_that_was_worked_on_last(checked):
    assert "Next: chips_needed in 01 · Devices and meshes, core, 3 minutes." in repr(grader.progress())
    checked(("block_matmul", 2, 2))
    assert "Next: name_the_case in 07 · The four sharded matmuls" in repr(grader.progress())
    checked(*((name, 1, 1) for name in EXERCISES))
    assert repr(grader.progress()).endswith("All is done.")


def test_the_core_comes_first_and_then_the_stretch(checked):
    core = {text.name for lesson in syllabus() for text in lesson.exercises if text.is_core}
    assert 0 < len(core) < len(EXERCISES)
    checked(("case3", 4, 4), ("gather_columns", 0, 3))
    journey = grader.progress()
    assert journey.core == f"1 of {len(core)}" and f"1 of {len(core)} exercises of the core" in journey._repr_html_()
    for section in journey.sections:
        kinds = [standing.text.is_core for standing in section.left]
        assert kinds == sorted(kinds, reverse=True)
    section, standing = journey.next
    assert section.lesson.name == "06_collectives" and standing.text.is_core
    checked(*((name, 1, 1) for name in core), ("gather_columns", 0, 3))
    section, standing = grader.progress().next
    assert section.lesson.name == "06_collectives" and not standing.text.is_core
    assert f"Next: {standing.text.name} in 06 · " in repr(grader.progress())


def test_points_of_an_exercise_whose_worth_has_changed_keep_their_part(checked):
    checked(("case3", 5, 10), ("case3", 50, 10), ("gone", 3, 3), ("case3", 1, 0))
    standings = [standing for section in grader.progress().sections for standing in section.standings]
    (case3,) = (standing for standing in standings if standing.text.name == "case3")
    assert case3.points == case3.worth == 4


def test_exercises_are_links_to_their_place_in_the_notebook(checked, tmp_path):
    checked(("block_matmul", 2, 2))
    assert "href" not in grader.progress()._repr_html_()
    (tmp_path / "07_matmul").mkdir()
    (tmp_path / "07_matmul" / "07_matmul.ipynb").touch()
    page = grader.progress()._repr_html_()
    assert re.search(r'<a href="07_matmul/07_matmul.ipynb#cell-id=07-\d+">name_the_case</a>', page)
    assert 'aria-label="2 of 60 points"' in page


def test_a_hint_more_at_each_call(monkeypatch):
    monkeypatch.setattr(hints, "_asked", hints.Counter())
    shown = [len(grader.hint("case3").lines) for _ in range(4)]
    assert shown == [1, 2, 3, 3]
    assert "Did you mean case3" in repr(grader.hint("cas3")) and "Did you mean case3" in repr(grader.reset("cas3"))


def test_reset_gives_the_starter_in_a_new_cell(notebook):
    said = repr(grader.reset("case3"))
    assert "def case3(a, b, *, mesh):" in notebook.new_cells[0] and 'check("case3", …)' in said
