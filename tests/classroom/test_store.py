"""What is kept, for whom, and how long."""

from __future__ import annotations

from dataclasses import replace

import mini
import nbformat
import pytest

from grader.classroom.grading.execute import _judged, grading_of
from grader.classroom.runs import run as running
from grader.classroom.runs.run import Clock, Run, perform
from grader.classroom.store import FOLDER, Store, Unavailable, kept_in
from grader.classroom.verdicts.judge import no_marks
from grader.classroom.walls.templates import Ended, Limits
from grader.findings.verdicts import TooLong
from grader.lessons import find


def test_what_is_doubted_is_kept_when_another_process_finds_the_same(tmp_path):
    first = Store(tmp_path)
    first.doubt("verdicts", "a", {"points": 0}, "late")
    assert first.get("verdicts", "a") == {"points": 0} and Store(tmp_path).get("verdicts", "a") is None
    other = Store(tmp_path)
    other.doubt("verdicts", "a", {"points": 0}, "crashed")
    assert Store(tmp_path).get("verdicts", "a") is None
    Store(tmp_path).doubt("verdicts", "a", {"points": 0}, "crashed")
    assert Store(tmp_path).get("verdicts", "a") == {"points": 0}


def test_a_result_under_another_key_says_nothing(tmp_path):
    """Whoever moves a file of the store about changes no mark: it is computed again."""
    store = Store(tmp_path)
    store.put("verdicts", "aa", {"points": 4})
    store.put("verdicts", "bb", {"points": 0})
    right, wrong = (tmp_path / "verdicts" / name / f"{name}.json.gz" for name in ("aa", "bb"))
    wrong.write_bytes(right.read_bytes())
    assert store.get("verdicts", "aa") == {"points": 4} and store.get("verdicts", "bb") is None


@pytest.mark.parametrize("text", ["", "seed", "-3", "1e9", "1" * 5000, "\xff"])
def test_a_garbled_secret_is_named_and_none_is_drawn_in_its_place(tmp_path, text):
    store = Store(tmp_path)
    store.seed("07_matmul")
    file = tmp_path / "seeds" / "07_matmul"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(Unavailable, match="seeds/07_matmul should hold a number.*Restore the file"):
        store.seed("07_matmul")
    assert file.read_bytes() == text.encode("latin-1")


def test_a_late_verdict_is_judged_again_by_the_next_grader(tmp_path):
    """An honest program must not pay for a busy machine for ever."""
    judged = []

    def late(exercise, seed, answers):
        judged.append(exercise.name)
        return replace(no_marks(exercise, "runs", TooLong(60.0)), doubtful=True)

    for store, count in ((Store(tmp_path), 1), (Store(tmp_path), 2), (Store(tmp_path), 2)):
        for _ in range(2):  # nbgrader grades it once more
            _judged(find("case3"), Run({"case3": [None]}, {}), 3, late, store)
            assert len(judged) == count


def grading(course, student, nb):
    return grading_of(course, mini.LESSON, student, nb, mini.released(course), {}, kept_in(course / FOLDER))


def test_who_hands_in_something_else_is_judged_on_other_cases(course):
    """Feedback may tell a hidden case; the same content has the same marks whenever it is graded."""
    first, other = mini.solved(course), mini.with_cell(mini.solved(course), "case3 = None", at=-1)
    commented = nbformat.from_dict(first)
    commented.cells.append(nbformat.v4.new_markdown_cell("A comment."))
    one = grading(course, "eve", first)
    two = grading(course, "eve", other)
    assert one.seed != two.seed
    assert grading(course, "eve", first).seed == one.seed == grading(course, "eve", commented).seed
    assert grading(course, "eve", other).seed == two.seed
    moved = nbformat.from_dict(first)  # several answers, and the check behind the one that feedback spoke for
    moved.cells.append(moved.cells.pop(mini.position(moved, "check_block_matmul")))
    assert grading(course, "eve", moved).seed not in (one.seed, two.seed)
    assert grading(course, "fay", other).seed == one.seed, "the first attempts of a class share their cases"
    fixed = grading_of(course, mini.LESSON, "eve", other, mini.released(course), {"seed": 7}, kept_in(course / FOLDER))
    assert fixed.seed == 7


@pytest.mark.parametrize("end, kept", [({"late": True}, False), ({"killed": True}, False), ({"status": 256}, True)])
def test_a_run_is_kept_unless_the_machine_may_have_ended_it(tmp_path, monkeypatch, end, kept):
    def ends(todo, limits, run, clock):
        clock.left -= 100
        raise Ended("It ended.", **end)

    monkeypatch.setattr(running, "_listen", ends)
    assert perform([], Limits(), Store(tmp_path)).ending
    assert (Store(tmp_path).get("runs", running.run_key([], Limits())) is not None) == kept
    perform([], Limits(), Store(tmp_path))
    assert Store(tmp_path).get("runs", running.run_key([], Limits())) is not None, "it has been seen twice"


def test_a_run_that_others_left_no_time_is_never_kept(tmp_path):
    for _ in range(3):
        assert "were over" in perform([], Limits(), Store(tmp_path), Clock(0)).ending
    assert Store(tmp_path).get("runs", running.run_key([], Limits())) is None
