"""What is kept of a check: in every case the check goes on, and nothing is kept where there is no student."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from grader.exercises.verdict import Outcome, Score, Verdict
from grader.guide import attempts as room
from grader.guide.attempts import CHOSEN, NO_STUDENT, attempts, keep, trouble

RIGHT = Verdict("case3", (Outcome.earned("case3", "values", 4.0),))
PARTLY = Verdict("case3", (Outcome.earned("case3", "shape", 1.0), Outcome.missed("case3", "values", 3.0, "No.")))
WRONG = Verdict("case3", (Outcome.missed("case3", "values", 4.0, "No."),))
OPEN = Verdict("case3", (Outcome.left_open("case3", "values", 4.0, "Still the starter."),))
UNKNOWN = Verdict("nope", (Outcome.missed("nope", "known", 0.0, "There is none."),))


def test_each_check_in_a_notebook_is_kept(notebook, home):
    for verdict in (OPEN, WRONG, PARTLY, RIGHT, UNKNOWN):
        keep(verdict)
    assert [(one.points, one.state) for one in attempts()] == [(0, "open"), (0, "wrong"), (1, "partly"), (4, "right")]
    assert trouble() == ""


def test_the_bytes_of_a_program_that_is_held_against_the_compilers_are_kept(notebook, home):
    for verdict in (RIGHT, replace(RIGHT, score=Score(256, 300, 384))):
        keep(verdict)
    assert [(one.sent, one.par) for one in attempts()] == [(None, None), (300, 256)]


def test_outside_a_notebook_nothing_is_kept(home):
    keep(RIGHT)
    assert not home.exists()


@pytest.mark.parametrize("name", NO_STUDENT)
def test_a_test_and_a_build_keep_nothing(name, notebook, tmp_path, monkeypatch):
    for other in NO_STUDENT:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    keep(RIGHT)
    assert list(tmp_path.iterdir()) == [] and attempts() == []
    monkeypatch.delenv(name)
    keep(RIGHT)
    assert [one.state for one in attempts()] == ["right"]


def test_a_disk_that_cannot_be_written_stops_no_check_and_is_told_of(notebook, home):
    home.write_text("a file where the folder should be")
    keep(RIGHT)
    assert attempts() == [] and "cannot be kept" in trouble() and CHOSEN in trouble()


def test_lines_that_somebody_has_spoilt_are_passed_over(notebook, home):
    keep(WRONG)
    with open(home / room.FILE, "a") as file:
        file.write("\n{\n[]\n7\nnull\n{'exercise': 1}\n" + json.dumps({"exercise": "case3"}) + '\n{"exercise": "cas')
        file.write('\n{"exercise": 1, "points": 1, "worth": 1, "state": "right", "time": 1}')
        file.write('\n{"exercise": "case3", "points": NaN, "worth": 1, "state": "right", "time": 1}')
        file.write('\n{"exercise": "case3", "points": 4, "worth": 4, "state": "right", "time": 1, "sent": "3"}')
        file.write('\n{"exercise": "case3", "points": "4", "worth": 1, "state": "right", "time": 1}\n{"exercise": "ca')
    keep(RIGHT)
    assert [one.state for one in attempts()] == ["wrong", "right"]


def test_those_who_write_at_once_do_not_mix_their_lines(home):
    line = "y" * 300
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(room._append, [line] * 2000))
    assert (home / room.FILE).read_text().split() == [line] * 2000


def test_in_colab_the_drive_keeps_them_once_it_is_mounted(tmp_path, monkeypatch):
    for name in (*NO_STUDENT, CHOSEN):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "google.colab", object())
    monkeypatch.setattr(room, "DRIVE", tmp_path / "MyDrive")
    assert "drive.mount" in trouble()
    room.DRIVE.mkdir()
    assert trouble() == "" and (room.DRIVE / "many-devices-jax" / room.FILE).exists()
