"""The learner's own module: what an accepted piece leaves behind, and how a later lesson gets it."""

import pytest

import grader
from grader.exercises.verdict import Outcome, Verdict
from grader.guide import pieces as room
from grader.guide.attempts import CHOSEN, NO_STUDENT
from grader.guide.pieces import MODULE, OwnModule, keep_piece
from grader.guide.syllabus import syllabus
from grader.lessons import EXERCISES

NAME = "tp_block"
RIGHT = Verdict(NAME, (Outcome.earned(NAME, "values", 8.0),))
WRONG = Verdict(NAME, (Outcome.missed(NAME, "values", 8.0, "No."),))
CELLS = "import math\n\ndef helper(x):\n    return x + math.pi", f"def {NAME}(x):\n    return helper(x)"


def run(notebook, *cells):
    for cell in cells:
        assert notebook.run_cell(cell, store_history=True).success


def accepted(notebook, *cells, verdict=RIGHT, name=NAME):
    run(notebook, *cells)
    keep_piece(verdict, notebook.user_ns[name])


def test_an_accepted_piece_is_kept_with_all_that_it_needs(notebook, home):
    accepted(notebook, *CELLS)
    space: dict = {}
    exec((home / MODULE / f"{NAME}.py").read_text(), space)
    assert space[NAME](1) == 1 + space["math"].pi
    assert [file.name for file in (home / MODULE).iterdir()] == [f"{NAME}.py"]


def test_a_better_one_takes_its_place(notebook, home):
    accepted(notebook, *CELLS)
    accepted(notebook, f"def {NAME}(x):\n    return 2 * x")
    assert (home / MODULE / f"{NAME}.py").read_text() == f"def {NAME}(x):\n    return 2 * x\n"


def test_by_another_name_it_gets_its_own(notebook, home):
    accepted(notebook, "def my_block(x):\n    return x", name="my_block")
    assert (home / MODULE / f"{NAME}.py").read_text().endswith(f"\n\n\n{NAME} = my_block\n")


def test_what_is_wrong_or_no_piece_or_nameless_is_not_kept(notebook, home):
    accepted(notebook, *CELLS, verdict=WRONG)
    accepted(notebook, *CELLS, verdict=Verdict("case3", (Outcome.earned("case3", "values", 4.0),)))
    keep_piece(RIGHT, lambda x: x)
    keep_piece(Verdict("nope", ()), notebook.user_ns[NAME])
    assert not home.exists()


def test_a_folder_that_cannot_be_written_stops_no_check(notebook, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(CHOSEN, str(tmp_path / "file"))
    accepted(notebook, *CELLS)
    notebook.reset()
    assert "is not in your module" in repr(grader.mine(NAME))


@pytest.mark.parametrize("name", NO_STUDENT)
def test_a_test_and_a_build_keep_no_piece(name, notebook, tmp_path, monkeypatch):
    for other in NO_STUDENT:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    accepted(notebook, *CELLS)
    notebook.reset()
    assert list(tmp_path.iterdir()) == [] and "is not in your module" in repr(grader.mine(NAME))


def test_a_later_notebook_gets_it_in_a_new_cell_which_runs(notebook, home):
    accepted(notebook, *CELLS)
    notebook.reset()
    assert "in the new cell below" in repr(grader.mine(NAME))
    run(notebook, *notebook.new_cells)
    assert notebook.user_ns[NAME](0) == pytest.approx(3.14159, abs=1e-5)
    assert "defined in this notebook already" in repr(grader.mine(NAME))
    assert len(notebook.new_cells) == 1


def test_without_a_notebook_its_source_is_told(notebook, home, monkeypatch):
    accepted(notebook, *CELLS)
    monkeypatch.setattr(room, "this_notebook", lambda: None)
    assert CELLS[1] in repr(grader.mine(NAME))


def test_what_is_not_there_is_named_with_its_lesson(home):
    said = repr(grader.mine(NAME))
    assert "an exercise of lesson 13" in said and "goes on without it" in said
    assert f"No piece is called `{NAME}s`" in repr(grader.mine(f"{NAME}s"))


def test_the_module_shows_every_piece_in_the_order_of_the_lessons(notebook, home):
    before = grader.mine()
    assert isinstance(before, OwnModule)
    numbers = [piece.lesson.number for piece in before.pieces]
    assert numbers == sorted(numbers) and {"12", "13"} <= set(numbers)
    assert before.note.startswith(f"0 of {len(before.pieces)} pieces")
    accepted(notebook, *CELLS, f"angle = '<b>'\n\ndef {NAME}(x):\n    return helper(x), angle")
    page = grader.mine()._repr_html_()
    assert page.count("<details>") == 1 and "&lt;b&gt;" in page and "<b>" not in page
    assert f"1 of {len(before.pieces)} pieces" in repr(grader.mine())


def test_every_piece_is_a_program_and_stands_in_a_lesson():
    flagged = {name for name, exercise in EXERCISES.items() if exercise.piece}
    assert flagged <= {text.name for lesson in syllabus() for text in lesson.exercises}
    assert {EXERCISES[name].form for name in flagged} == {"program"}


def test_where_hand_ins_are_graded_there_is_no_module(monkeypatch):
    monkeypatch.setattr(room, "syllabus", tuple)
    assert "while hand-ins are graded" in repr(grader.mine()) == repr(grader.mine(NAME))
    assert "while hand-ins are graded" in grader.mine()._repr_html_()
