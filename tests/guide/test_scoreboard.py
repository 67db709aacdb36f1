"""A student's programs against the compiler's, lesson by lesson."""

import json

import pytest

import grader
from grader.exercises.compilers import compilers_bytes, par
from grader.guide import scoreboard as room
from grader.guide.attempts import CHOSEN, FILE
from grader.guide.progress import NO_LESSONS
from grader.lessons import EXERCISES

LESSON, NAME = "05_shard_map", "beat_the_compiler"
CASES = EXERCISES[NAME].draw_cases()
ENOUGH, COMPILERS = par(CASES), compilers_bytes(EXERCISES[NAME], CASES)


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """Keeps right answers that sent so many bytes, where so many were enough."""
    monkeypatch.setenv(CHOSEN, str(tmp_path))

    def keep(*scores):
        known = {"exercise": NAME, "points": 5, "worth": 5, "state": "right"}
        lines = (known | {"time": k, "sent": sent, "par": par} for k, (sent, par) in enumerate(scores))
        (tmp_path / FILE).write_text("\n".join(map(json.dumps, lines)))

    return keep


def test_before_the_first_check_par_and_the_compiler_stand_there(sent):
    sent()
    (one,) = grader.scoreboard(LESSON).rounds
    assert (one.exercise, one.par, one.best, one.compilers) == (NAME, ENOUGH, None, COMPILERS)
    assert one.cells[2:] == (room.OPEN, f"{COMPILERS:,} B", "")


def test_the_fewest_bytes_count_and_a_star_is_for_fewer_than_the_compilers(sent):
    sent((COMPILERS, ENOUGH), (ENOUGH, ENOUGH), (COMPILERS, ENOUGH))
    (one,) = grader.scoreboard(LESSON).rounds
    assert one.best == ENOUGH < COMPILERS and one.cells[-1] == "★"
    sent((COMPILERS, ENOUGH))
    (one,) = grader.scoreboard(LESSON).rounds
    assert one.best == COMPILERS and one.cells[-1] == ""


def test_what_was_reached_on_other_cases_does_not_count(sent):
    sent((1, ENOUGH + 1), (None, None))
    assert grader.scoreboard(LESSON).rounds[0].best is None


def test_it_is_a_table_in_a_terminal_and_in_a_notebook(sent):
    sent((ENOUGH, ENOUGH))
    board = grader.scoreboard(LESSON)
    header, row, note = repr(board).splitlines()
    assert header.split() == ["exercise", "par", "yours", "the", "compiler's"]
    assert row.split() == [NAME, str(ENOUGH), "B", str(ENOUGH), "B", str(COMPILERS), "B", "★"]
    assert note == room.NOTE
    assert f"<td>{COMPILERS:,} B</td><td>★</td>" in board._repr_html_()


def test_a_lesson_without_any_says_so():
    assert repr(grader.scoreboard("02_shardings")) == room.NO_RIVAL
    assert room.NO_RIVAL in grader.scoreboard("02_shardings")._repr_html_()


def test_a_lesson_that_does_not_exist_is_an_error_with_the_names_of_those_that_do():
    with pytest.raises(ValueError, match="no lesson '5'; there are 01_devices_and_meshes, .*05_shard_map"):
        grader.scoreboard("5")


def test_where_hand_ins_are_graded_there_is_nothing_to_show(monkeypatch):
    monkeypatch.setattr(room, "syllabus", tuple)
    assert repr(grader.scoreboard(LESSON)) == NO_LESSONS


@pytest.mark.parametrize("lesson", ["05_shard_map", "06_collectives", "07_matmul", "08_rings", "15_collective_matmul"])
def test_a_lesson_that_shows_one_has_something_to_show(lesson, sent):
    sent()
    assert grader.scoreboard(lesson).rounds
