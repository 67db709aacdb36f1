"""What goes back to Canvas and Moodle: their own tables, with our marks and nothing else changed, and the feedback."""

from __future__ import annotations

import csv
import functools
import io
import zipfile

import classes
import mini
import nbformat
import pytest
from handins import packed
from typer.testing import CliRunner

from grader.classroom.commands import app
from grader.classroom.course.plan import PLAN
from grader.classroom.grading.export import LessonMark, People, fill_canvas, fill_moodle, marks_of, people_of
from grader.classroom.handins.platforms import unpack
from grader.classroom.handins.roster import Identity, Received, keep_senders, read_received
from grader.classroom.store import Unavailable

CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Reading (41),07_matmul (42),Final Score\n"
    ",,,,,,Manual Posting,\n"
    '"    Points Possible",,,,,10,62,(read only)\n'
    '"Lovelace, Ada",12,s12,ada@uni.edu,"A, B",9.5,,80\n'
    "\"=cmd|' /C calc'!A0\",13,s13,eve,A,,,\n"
    '"Turing, Alan",14,s14,at@uni.edu,A,,40,\n'
    '"Student, Test",99,,,A,,,\n'
)
MOODLE = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"\n'
    'Participant 501,"Ada Lovelace",ada@uni.edu,"Submitted for grading",,100.00,Yes,"Monday, 1 March",-,"<p>x, y</p>"\n'
    'Participant 502,Eve,eve@uni.edu,"Submitted",,100.00,Yes,-,-,\n'
    'Participant 503,"Alan Turing",at@uni.edu,"Submitted",7.00,100.00,No,-,-,\n'
    'Participant 504,"Nobody",n@uni.edu,"No submission",,100.00,Yes,-,-,\n'
)
MARKS = {"ada": LessonMark(38.67, 62), "eve": LessonMark(62, 62), "alan": LessonMark(0, 62)}
ROSTER = (
    Identity("ada", "canvas", "12", "lovelaceada", "ada@uni.edu"),
    Identity("alan", "moodle", "", "Alan Turing", "AT@uni.edu"),
)
NUMBERS = {("ada", "07_matmul"): "501", ("eve", "07_matmul"): "502", ("eve", "08_rings"): "501"}
CAME = tuple(Received(*place, "moodle", number, "x", "", "", "") for place, number in NUMBERS.items())
US = People(ROSTER, CAME)


def cells(text, delimiter=","):
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff")), delimiter=delimiter))


def changes(before, after, delimiter=","):
    """Row and column of each cell that differs, with what it is now."""
    rows = zip(cells(before, delimiter), cells(after, delimiter), strict=True)
    pairs = [(k, m, *both) for k, row in enumerate(rows) for m, both in enumerate(zip(*row, strict=True))]
    return {(k, m): now for k, m, was, now in pairs if was != now}


@pytest.fixture
def table(tmp_path):
    def write(text):
        file = tmp_path / "export.csv"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write


def test_canvas_gets_its_own_table_back_with_one_column_filled_in(table):
    """By number, by login, by e-mail address; whoever has no mark keeps what was there."""
    filled = fill_canvas(table(CANVAS), "07_matmul", MARKS, US)
    assert changes(CANVAS, filled.text) == {(3, 6): "38.67", (4, 6): "62", (5, 6): "0"}
    assert sorted(filled.students) == ["ada", "alan", "eve"] and not filled.problems and not filled.notes


def test_a_name_that_somebody_chose_is_no_address(table):
    """Who is called as another's login, or address, gives the other no mark."""
    us = People((*ROSTER, Identity("eve", "moodle", "", "eve"), Identity("at@uni.edu", "canvas", "50", "x")), CAME)
    filled = fill_canvas(table(CANVAS), "07_matmul", {"eve": MARKS["eve"], "at@uni.edu": MARKS["ada"]}, us)
    assert not filled.students


def test_canvas_reads_it_as_it_reads_its_own(table):
    """What its importer asks: the first columns, the row of the points, and whose number is whose."""
    header, _, possible, *students = cells(fill_canvas(table(CANVAS), "07_matmul", MARKS, US).text)
    assert header[0] == "Student" and header[1] == "ID" and "Section" in header[:6]
    assert "Points Possible" in possible[0] and all(row[1].isdigit() for row in students)
    assert all(float(row[6] or 0) >= 0 for row in students)


def test_a_table_in_the_form_of_another_country_keeps_its_form(table):
    text = "\ufeff" + CANVAS.replace(",", ";").replace("9.5", "9,5").replace("\n", "\r\n")
    filled = fill_canvas(table(text), "07_matmul", MARKS, US)
    assert filled.text.startswith("\ufeffStudent;ID") and filled.text.count("\r\n") == text.count("\r\n")
    assert changes(text, filled.text, ";") == {(3, 6): "38.67", (4, 6): "62", (5, 6): "0"}


def test_marks_are_scaled_to_the_platforms_points_and_that_is_said(table):
    filled = fill_canvas(table(CANVAS.replace(",10,62,", ",10,31,")), "07_matmul", MARKS, US)
    assert cells(filled.text)[4][6] == "31" and cells(filled.text)[3][6] == "19.34"
    assert filled.notes == ["column 07_matmul (42): 62 points here are 31 there; all marks are scaled."]


def test_which_column_is_asked_where_it_is_not_clear(table):
    two = CANVAS.replace("Reading (41)", "Week 3: 07 Matmul (41)")
    with pytest.raises(Unavailable, match="Which column is for 08_rings.*07_matmul .42., Reading .41."):
        fill_canvas(table(CANVAS), "08_rings", MARKS, US)
    assert cells(fill_canvas(table(two), "07_matmul", MARKS, US).text)[4][6] == "62", "the exact name goes first"
    assert cells(fill_canvas(table(CANVAS), "07_matmul", MARKS, US, "Reading").text)[4][5] == "10"


def test_who_is_graded_but_not_there_is_named(table):
    marks = {**MARKS, "zoe": LessonMark(3, 62)}
    assert "not found in that table: zoe." in fill_canvas(table(CANVAS), "07_matmul", marks, US).problems[0]


def test_moodle_gets_its_worksheet_back(table):
    """By the numbers that this lesson's hand-ins came under; those of another lesson are another's."""
    filled = fill_moodle(table(MOODLE), "07_matmul", MARKS, US)
    assert changes(MOODLE, filled.text) == {(1, 4): "62.37", (2, 4): "100"}
    assert filled.problems == ["alan: Moodle says its grade cannot be changed: left."]
    assert filled.notes == ["column Grade: 62 points here are 100 there; all marks are scaled."]


def test_moodle_gets_no_grade_above_its_maximum(table):
    filled = fill_moodle(table(MOODLE), "07_matmul", {"ada": LessonMark(70, 62)}, US)
    assert changes(MOODLE, filled.text) == {(1, 4): "100"}


def test_a_worksheet_in_another_language(table):
    words = {"Participant ": "Teilnehmer/in", "Maximum Grade": "Höchstwertung", "Grade,": "Bewertung,"}
    text = functools.reduce(lambda text, word: text.replace(*word), words.items(), MOODLE)
    with pytest.raises(Unavailable, match="Which column is for Grade. Say it with --column"):
        fill_moodle(table(text), "07_matmul", MARKS, US)
    filled = fill_moodle(table(text), "07_matmul", MARKS, US, "Bewertung")
    assert cells(filled.text)[1][4] == "62.37"


WRONG = {
    "nothing": (b"", "no table of marks"),
    "a page": (b"<html>\n", "no table of marks"),
    "no text": (b"\xff\xfe\x00", "cannot be read as a table"),
    "an open quote": (b'Student,ID\n"a,1\n', "cannot be read as a table"),
    "a field of no end": (b"Student,ID\n" + b"x" * 200_000, "cannot be read as a table"),
    "another table": (b"a,b\n1,2\n", "is no"),
    "rows that are short": (b"a,b\n\n1\n", "is no"),
}


@pytest.mark.parametrize("fill", [fill_canvas, fill_moodle])
@pytest.mark.parametrize(("content", "words"), WRONG.values(), ids=WRONG)
def test_what_is_no_such_table_is_said(table, fill, content, words):
    with pytest.raises(Unavailable) as why:
        fill(table(content), "07_matmul", MARKS, US)
    assert words in str(why.value) and "\n" not in str(why.value)


# From a platform's zip to what it takes back


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The small course with the same two hand-ins from Canvas and from Moodle, graded; one is late for a day."""
    root = mini.built_course(tmp_path_factory.mktemp("export"))
    right, wrong = nbformat.writes(mini.solved(root)), nbformat.writes(classes.answered(root, classes.FORGOT))
    canvas = {"lovelaceada_LATE_12_900_x.ipynb": right, "turingalan_14_901_x.ipynb": wrong}
    moodle = {"Eve <b>_ 2_77_assignsubmission_file_/x.ipynb": right}
    for files in (canvas, moodle):
        (root / "class.zip").write_bytes(packed(files))
        receipts = unpack(root / "class.zip", mini.LESSON, root / "submitted")
        keep_senders(root / "submitted", mini.LESSON, {one.student: one.sender for one in receipts})
    (root / "class.zip").unlink()
    rows = classes.grade_here(root)
    assert [row.mark for row in rows] == [6, 6, 2]
    return root


def named_as_canvas_reads(name):
    """The user's and the file's numbers: the first two parts between underscores that are numbers."""
    return tuple([part for part in name.split("_") if part.isdigit()][:2])


def named_as_moodle_reads(name):
    """The participant, the kind of plugin and its name: of a part of the path, in five between underscores."""
    participant, *plugin = next(p.split("_", 4)[1:4] for p in name.split("/") if len(p.split("_", 4)) >= 4)
    return (participant, *plugin)


def test_the_feedback_goes_back_under_the_platforms_own_numbers(graded, table, monkeypatch):
    monkeypatch.chdir(graded)
    canvas = table(CANVAS.replace("07_matmul", mini.LESSON))
    done = CliRunner().invoke(app, ["export", mini.LESSON, "--canvas", str(canvas)])
    assert done.exit_code == 1 and "Graded, but not found in that table: Eve_b___2" in done.stdout
    with zipfile.ZipFile(graded / "dist" / f"{mini.LESSON}-canvas-feedback.zip") as archive:
        names = archive.namelist()
        assert {named_as_canvas_reads(name) for name in names} == {("12", "900"), ("14", "901")}
        page = archive.read(next(name for name in names if "_12_" in name)).decode()
    assert page == (graded / "feedback" / "lovelaceada" / mini.LESSON / f"{mini.LESSON}.html").read_text()
    done = CliRunner().invoke(app, ["export", mini.LESSON, "--moodle", str(table(MOODLE.replace(" 501", " 77")))])
    assert done.exit_code == 1 and "1 marks are in it." in done.stdout
    with zipfile.ZipFile(graded / "dist" / f"{mini.LESSON}-moodle-feedback.zip") as archive:
        (name,) = archive.namelist()
    assert named_as_moodle_reads(name) == ("77", "assignfeedback", "file") and name.endswith(f"/{mini.LESSON}.html")
    assert name == "Eve b 2_77_assignfeedback_file_/01_mini.html"


def test_the_same_files_come_of_the_same_marks(graded, table, monkeypatch):
    monkeypatch.chdir(graded)
    table = table(CANVAS.replace("07_matmul", mini.LESSON))
    made = []
    for _ in range(2):
        CliRunner().invoke(app, ["export", mini.LESSON, "--canvas", str(table)])
        made.append({file.name: file.read_bytes() for file in (graded / "dist").glob("*canvas*")})
    assert made[0] == made[1] and len(made[0]) == 2


def test_what_is_late_and_what_is_a_bonus_go_into_the_mark(graded):
    assert marks_of(graded, mini.LESSON)["turingalan"] == LessonMark(2, 6)
    (graded / PLAN).write_text('[lessons.01_mini]\nstretch = "bonus"\n')
    try:
        assert marks_of(graded, mini.LESSON)["turingalan"] == LessonMark(2, 6), "neither of its exercises is a stretch"
    finally:
        (graded / PLAN).unlink()
    assert people_of(graded).by_number("canvas") == {"12": "lovelaceada", "14": "turingalan"}
    assert [row.late for row in read_received(graded / "submitted")] == ["", "late", ""]


def test_without_marks_and_without_a_platform_it_is_said(graded, monkeypatch, table):
    with pytest.raises(Unavailable, match="Nothing of 02_none is graded yet"):
        marks_of(graded, "02_none")
    monkeypatch.chdir(graded)
    done = CliRunner().invoke(app, ["export", mini.LESSON])
    assert done.exit_code and "Whose table is to be filled in?" in str(done.exception)
