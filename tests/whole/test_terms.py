"""A class with extensions, a group and free days; hand-ins for a person to look at; and looking before grading."""

from __future__ import annotations

import hashlib
import shutil
from datetime import UTC, datetime
from pathlib import Path

import classes
import mini
import nbformat
import pytest
from rich.console import Console
from typer.testing import CliRunner

from grader.classroom.commands import app
from grader.classroom.course.build import build
from grader.classroom.course.plan import PLAN
from grader.classroom.grading.grade import grade_class, prune_class
from grader.classroom.grading.groups import HANDED_IN_ALONE
from grader.classroom.grading.summary import show
from grader.classroom.handins.roster import Sender, keep_senders

TERMS = """
late = "10 % a day"
free_days = 3
[lessons.01_mini]
due = 2027-03-01T12:00:00Z
[extensions]
ada = { 01_mini = 2027-03-03T12:00:00Z }
[groups]
pair = ["ben", "cleo"]
"""
RAISES = "raise ValueError('not yet')"


def at(root, student, text):
    (root / "submitted" / student / mini.LESSON / "timestamp.txt").write_text(text)


def elsewhere(root):
    """A notebook of another lesson: one of its checks is enough."""
    nb = nbformat.read(Path(__file__).parents[2] / "course/08_rings/08_rings.ipynb", 4)
    nb.cells = [cell for cell in nb.cells if cell.source.startswith("check(")][:1]
    return nb


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    root = mini.built_course(tmp_path_factory.mktemp("terms") / "course")
    (root / PLAN).write_text(TERMS)
    build(root)
    right, wrong = mini.solved(root), classes.answered(root, classes.FORGOT)
    failing = mini.edited(
        classes.answered(root, RAISES), "answer_block_matmul", lambda cell: cell.update(source=RAISES)
    )
    hand_ins = {"ada": right, "ben": right, "cleo": wrong, "dora": right, "emil": elsewhere(root), "finn": failing}
    for student, nb in hand_ins.items():
        classes.submit(root, student, nb)
    at(root, "ada", "2027-03-03 11:00:00 UTC")
    at(root, "ben", "2027-03-01 10:00:00 UTC")
    at(root, "cleo", "2027-03-01 09:00:00 UTC")
    at(root, "dora", "2027-03-05 13:00:00 UTC")
    at(root, "emil", "yesterday")
    keep_senders(root / "submitted", mini.LESSON, {"finn": Sender("canvas", "12", "finn", "900", "", True)})
    console = Console(record=True, width=200)
    rows = {row.hand_in.student: row for row in grade_class(root, console)}
    return root, rows, console.export_text()


@pytest.fixture
def course(graded, tmp_path):
    return Path(shutil.copytree(graded[0], tmp_path / "course"))


def page(root, student):
    return (root / "feedback" / student / mini.LESSON / f"{mini.LESSON}.html").read_text()


def test_an_extension_and_free_days_are_granted_and_said(graded):
    root, rows, _ = graded
    assert (rows["ada"].mark, rows["ada"].late) == (6, 0)
    assert (rows["dora"].mark, rows["dora"].late) == (4.8, 1.2), "five days have begun, and three of them are free"
    assert "Extended to 2027-03-03 12:00 UTC." in page(root, "ada")
    assert "3 of 3 free days used here." in page(root, "dora")
    assert "Every answer is correct. Points are deducted only because it was late." in page(root, "dora")
    table = (root / "grades.csv").read_text()
    assert "Extended to 2027-03-03 12:00 UTC." in table and "3 of 3 free days" in table


def test_a_group_shares_its_latest_hand_in_and_nothing_is_lost(graded):
    root, rows, said = graded
    assert rows["ben"].mark == rows["cleo"].mark == 6
    assert "cleo, 01_mini: gets the hand-in of ben, the latest of the group pair." in said
    assert all("Handed in by a group: ben, cleo." in page(root, one) for one in ("ben", "cleo"))
    (own,) = (root / "submitted/cleo/01_mini" / HANDED_IN_ALONE).glob("*.ipynb")
    assert "check_vma=False" in own.read_text()


def test_extensions_and_groups_are_in_the_report_and_in_exports(graded, monkeypatch, tmp_path):
    root, _, _ = graded
    done = typed(root, monkeypatch, "report", "--to", str(tmp_path / "report.html"))
    report = (tmp_path / "report.html").read_text()
    assert done.exit_code == 0 and "In a group of 2." in report and "Extended to 2027-03-03" in report
    assert "ben" not in report and "cleo" not in report
    table = tmp_path / "canvas.csv"
    table.write_text("Student,ID,SIS Login ID,01_mini (7)\nAda,1,ada,\n    Points Possible,,,6\nBen,2,ben,\n")
    done = typed(root, monkeypatch, "export", mini.LESSON, "--canvas", str(table))
    assert "ada: Extended to 2027-03-03 12:00 UTC." in done.output, done.output
    assert "ben: Handed in by a group: ben, cleo." in done.output


def test_what_may_be_worth_nothing_for_another_reason_is_a_line_for_a_person(graded):
    _, rows, _ = graded
    (lesson, time), (raising, late) = rows["emil"].attention[:2], rows["finn"].attention[:2]
    assert lesson == "its check cells aren't of this lesson but of 08_rings: move it to submitted/emil/08_rings"
    assert time.startswith("its timestamp.txt can't be read, so it counts as in time: write it like 20")
    assert raising == "it earns nothing, and 2 of its cells stop with an error (the first: ValueError: not yet)"
    assert late.startswith("the platform calls it late and doesn't say when: write timestamp.txt")
    assert not any(rows[name].attention for name in ("ada", "ben", "cleo", "dora"))


def test_pages_have_a_language_and_begin_with_a_heading(graded):
    text = page(graded[0], "ada")
    assert len(text) < 40_000 and ".glyphicon-asterisk" not in text  # of 117 kB of styles, those that are used
    assert '<html lang="en"' in text and "<h1>01_mini: 6 of 6 points</h1>" in text


def test_totals_count_what_is_due(graded):
    root, _, _ = graded
    header, *lines = [line.split(",") for line in (root / "totals.csv").read_text().splitlines()]
    assert header == ["student", "total %", "01_mini"]
    passed = datetime.now(UTC) > datetime(2027, 3, 4, tzinfo=UTC)
    assert {line[0]: line[1:] for line in lines}["dora"] == (["80.0", "80.0"] if passed else ["0.0", "80.0"])


def tree(root):
    return {str(f): hashlib.sha256(f.read_bytes()).hexdigest() for f in root.rglob("*") if f.is_file()}


def typed(root, monkeypatch, *words):
    monkeypatch.chdir(root)
    return CliRunner().invoke(app, list(words))


def test_a_dry_run_says_whose_marks_would_move_and_why_and_writes_nothing(course, monkeypatch):
    classes.submit(course, "ada", classes.answered(course, classes.FORGOT))
    classes.submit(course, "gina", mini.released(course))
    before = tree(course)
    done = typed(course, monkeypatch, "grade", "--dry-run")
    assert tree(course) == before
    assert "case3 4 → 0 (forgot_psum)" in " ".join(done.output.split()), done.output
    assert "Graded for the first time: gina, 01_mini." in done.output
    assert "1 of 7 hand-ins would have other points. Nothing was written." in done.output


def test_what_no_hand_in_uses_is_removed_and_nothing_that_one_does(course, monkeypatch):
    shutil.rmtree(course / "submitted/finn")
    kept = set(course.glob(".grading/runs/*/*"))
    done = typed(course, monkeypatch, "prune")
    assert done.exit_code == 0 and set(course.glob(".grading/runs/*/*")) < kept, done.output
    left = tree(course)
    assert any("/.grading/runs/" in file for file in left), done.output
    assert prune_class(course)[0] == 0
    grade_class(course, Console(quiet=True))
    results = {f for f in tree(course) if "/.grading/runs/" in f or "/.grading/verdicts/" in f}
    assert results == {f for f in left if "/.grading/runs/" in f or "/.grading/verdicts/" in f}, "made again"


def test_a_release_that_is_out_of_date_is_said_in_one_line(course):
    source = course / "solutions" / mini.LESSON / f"{mini.LESSON}.md"
    source.write_text(source.read_text() + "\nOne more paragraph.\n")
    console = Console(record=True, width=300)
    grade_class(course, console)
    (line,) = [line for line in console.export_text().splitlines() if "after course/ was built" in line]
    assert "Run `grader build`" in line


def test_the_demo_class_lives_in_its_own_folder_and_never_meets_a_real_one(tmp_path):
    root = mini.built_course(tmp_path / "course")
    console = Console(record=True, width=200)
    rows = grade_class(root, console)
    show(rows, console)
    assert len(rows) == 12
    assert (root / "demo/grades.csv").exists() and not (root / "submitted").exists()
    assert "demo/feedback/ada" in console.export_text()
    classes.submit(root, "zoe", mini.solved(root))
    assert [row.hand_in.student for row in grade_class(root, Console(quiet=True))] == ["zoe"]
    assert (root / "grades.csv").read_text().count("\n") == 2
