"""Who is who: one student with several names, nobody with another's, and what each platform needs to know again."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pages
import pytest
from handins import packed, text
from nbgrader.api import Gradebook
from rota import LONG, taking_turns

from grader.classroom.handins.handin import find_notebook
from grader.classroom.handins.platforms import unpack
from grader.classroom.handins.roster import (
    RECEIVED,
    ROSTER,
    Identity,
    Match,
    Roster,
    Sender,
    enter_people,
    keep_senders,
    read_received,
    read_roster,
)
from grader.classroom.store import Unavailable

LESSON = "07_matmul"
OURS = text().encode()


@pytest.fixture
def collect(tmp_path):
    """Lay out a zip of these files, or a folder, as the command does; returns student's ids by what is taken."""

    def run(files, lesson=LESSON):
        place = files
        if isinstance(files, list):
            place = tmp_path / "class.zip"
            place.write_bytes(packed(dict.fromkeys(files, OURS)))
        submitted = tmp_path / "submitted"
        receipts = unpack(place, lesson, submitted, lessons={LESSON}, roster=read_roster(submitted))
        keep_senders(submitted, lesson, {one.student: one.sender for one in receipts if one.sender})
        return [one.student for one in receipts if not one.problem]

    return run


def roster(tmp_path):
    return (tmp_path / "submitted" / ROSTER).read_text().splitlines()


def test_names_of_several_platforms_are_joined_by_one_id(collect, tmp_path):
    assert collect(["lovelaceada_12_900_x.ipynb", "turingalan_13_901_x.ipynb"]) == ["lovelaceada", "turingalan"]
    assert collect(["Ada Lovelace_70_assignsubmission_file_/x.ipynb"], "08_rings") == ["Ada_Lovelace"]
    assert roster(tmp_path) == [
        "id,platform,number,name,email",
        "lovelaceada,canvas,12,lovelaceada,",
        "turingalan,canvas,13,turingalan,",
        "Ada_Lovelace,moodle,,Ada Lovelace,",
    ]
    file = tmp_path / "submitted" / ROSTER
    file.write_text(file.read_text().replace("Ada_Lovelace,", "lovelaceada,"))
    assert collect(["Ada Lovelace_99_assignsubmission_file_/x.ipynb"], "09_cost") == ["lovelaceada"]
    assert len(roster(tmp_path)) == 4, "Moodle's number is another in each lesson, and so is in no roster"


def test_a_number_that_a_platform_keeps_goes_before_a_name(collect):
    assert collect(["smithjohn_12_900_x.ipynb", "smithjohn_13_901_x.ipynb"]) == ["smithjohn_12", "smithjohn_13"]
    assert collect(["smithjohn_13_950_x.ipynb"], "08_rings") == ["smithjohn_13"]
    assert collect(["joansmith_13_951_x.ipynb"], "09_cost") == ["smithjohn_13"], "and a name that was changed"
    assert collect(["smithjohn_14_950_x.ipynb"], "10_explicit") == ["smithjohn"]


def test_namesakes_are_never_taken_for_one(collect):
    """One of two hands in first, and is known by the name; then both do."""
    assert collect(["John Smith_1_assignsubmission_file_/x.ipynb"]) == ["John_Smith"]
    both = ["John Smith_7_assignsubmission_file_/x.ipynb", "John Smith_8_assignsubmission_file_/x.ipynb"]
    assert collect(both, "08_rings") == ["John_Smith_7", "John_Smith_8"]
    assert collect(["John Smith_9_assignsubmission_file_/x.ipynb"], "09_cost") == ["John_Smith_9"]


def doubts(tmp_path, files, lesson, trust_names=False):
    (tmp_path / "class.zip").write_bytes(packed(dict.fromkeys(files, OURS)))
    known = replace(read_roster(tmp_path / "submitted"), trust_names=trust_names)
    receipts = unpack(tmp_path / "class.zip", lesson, tmp_path / "submitted", roster=known)
    return {one.student: one.doubt for one in receipts}


def test_what_rests_on_a_name_alone_is_for_a_person_unless_names_are_fixed(collect, tmp_path):
    first = ["Ada Lovelace_70_assignsubmission_file_/x.ipynb", "Bo_71_assignsubmission_file_/x.ipynb"]
    collect(first)
    assert doubts(tmp_path, first, LESSON) == {"Ada_Lovelace": "", "Bo": ""}, "their numbers in this lesson are known"
    later = ["Ada Lovelace_80_assignsubmission_file_/x.ipynb", "Cy_81_assignsubmission_file_/x.ipynb"]
    assert doubts(tmp_path, later, "08_rings") == {"Ada_Lovelace": "known by the name alone", "Cy": ""}
    assert doubts(tmp_path, later[:1], "09_cost", trust_names=True) == {"Ada_Lovelace": ""}


def test_another_with_the_name_in_the_same_lesson_is_another(collect, tmp_path):
    collect(["Ada Lovelace_70_assignsubmission_file_/x.ipynb"])
    other = doubts(tmp_path, ["Ada Lovelace_77_assignsubmission_file_/y.ipynb"], LESSON)
    assert list(other) == ["Ada_Lovelace_77"] and "perhaps the student of submitted/Ada_Lovelace" in str(other)


def test_a_new_student_does_not_get_the_id_of_another(collect, tmp_path):
    file = tmp_path / "submitted" / ROSTER
    file.parent.mkdir()
    file.write_text("id,platform,number,name,email\nada,canvas,12,lovelaceada,ada@uni.edu\n")
    assert collect(["ada/x.ipynb", "bob/x.ipynb"]) == ["ada_ada", "bob"]


def test_two_rows_of_one_archive_that_say_one_id_are_both_new():
    rows = [Identity("ada", "canvas", "12", "a"), Identity("ada", "canvas", "13", "b")]
    people = {("a", "12"): Sender("canvas", "12", "a"), ("b", "13"): Sender("canvas", "13", "b")}
    assert Roster(tuple(rows)).matches(people, LESSON) == {}


@pytest.mark.parametrize("name", ["=1+2", "@ada", "-rf", "a;=1", "a\tb", "\u202eada", "'=x", 'ada,"b"\n=c'])
def test_names_are_data_and_are_known_again(tmp_path, name):
    sender = Sender("moodle", "5", name)
    for _ in range(3):
        known = read_roster(tmp_path).matches({("x", "5"): sender}, LESSON).get(("x", "5"), Match("@id"))
        keep_senders(tmp_path, LESSON, {known.id: sender})
    assert len(read_roster(tmp_path).rows) == 1 and read_roster(tmp_path).taken == {"@id"}
    for file in (ROSTER, RECEIVED):
        cells = (tmp_path / file).read_text().splitlines()[1].split(",")
        assert not any(cell.lstrip('"').startswith(("=", "@", "+", "-")) for cell in cells)


def test_when_it_was_handed_in_is_kept_where_nbgrader_looks(collect, tmp_path, monkeypatch):
    import time

    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    try:
        collect(["t_al_attempt_2026-01-05-10-00-00_x.ipynb", "t_bo_attempt_2026-01-05-10-00-01_x.ipynb"])
        collect(["1-2 - Ada L - Jan 5, 2026 1130 PM/x.ipynb"])
    finally:
        monkeypatch.undo()
        time.tzset()
    stamps = {p.parts[-3]: p.read_text() for p in tmp_path.glob("submitted/*/*/timestamp.txt")}
    assert stamps == {
        "al": "2026-01-05 09:00:00 UTC",
        "bo": "2026-01-05 09:00:01 UTC",
        "Ada_L": "2026-01-05 22:30:00 UTC",
    }


def test_what_canvas_calls_late_is_told_and_kept(collect, tmp_path):
    (tmp_path / "class.zip").write_bytes(packed({"ada_LATE_12_900_x.ipynb": OURS, "bob_13_901_x.ipynb": OURS}))
    taken = unpack(tmp_path / "class.zip", LESSON, tmp_path / "out")
    assert [one.note for one in taken] == ["late, as the platform says", ""]
    collect(["ada_LATE_12_900_x.ipynb", "bob_13_901_x.ipynb"])
    rows = {row.student: (row.number, row.file, row.late) for row in read_received(tmp_path / "submitted")}
    assert rows == {"ada": ("12", "900", "late"), "bob": ("13", "901", "")}


WRONG = {
    "no table": (b"\xff\xfe", "cannot be read as a table"),
    "another": (b"a,b\n1,2\n", "roster.csv has no column id, platform, number, name, email"),
    "semicolons": (b"id;platform;number;name;email\nada;canvas;1;a;\n", "is it parted by commas?"),
    "no id": (b"id,platform,number,name,email\n,canvas,1,a,\n", "row 2"),
    "two lines": (b'id,platform,number,name,email\n"ada\nbo",canvas,1,a,\n', "row 2: “ada�bo” is no id of a student"),
    "a way out": (b"id,platform,number,name,email\n../eve,canvas,1,a,\n", "no id of a student"),
}


@pytest.mark.parametrize(("content", "words"), WRONG.values(), ids=WRONG)
def test_what_is_no_roster_is_said(tmp_path, content, words):
    (tmp_path / ROSTER).write_bytes(content)
    with pytest.raises(Unavailable) as why:
        read_roster(tmp_path)
    assert words in str(why.value)


# Folders


def test_clones_of_a_classroom_on_github(collect, tmp_path):
    """As `gh classroom clone student-repos` lays them: a folder for the assignment, a clone for each student."""
    clones = tmp_path / "week-7-submissions"
    for user in ("ann-lee", "ann-ray"):
        lesson = clones / f"week-7-{user}" / "work" / LESSON
        lesson.mkdir(parents=True)
        (lesson / f"{LESSON}.ipynb").write_bytes(OURS)
        (lesson / "scratch.ipynb").write_bytes(b"{}")
        subprocess.run(["git", "init", "-q", str(clones / f"week-7-{user}")], check=True)
        (clones / f"week-7-{user}" / ".git" / "x.ipynb").write_bytes(b"never looked at")
    assert collect(clones) == ["ann-lee", "ann-ray"]
    assert (tmp_path / "submitted/ann-lee" / LESSON / f"{LESSON}.ipynb").read_bytes() == OURS
    assert {row.platform for row in read_received(tmp_path / "submitted")} == {"github"}


def test_a_folder_of_drives(collect, tmp_path):
    """Google Classroom names each student's copy; a folder for each student will do as well."""
    folder = tmp_path / "Week 7"
    folder.mkdir()
    for name in ("Ada Lovelace - 07_matmul.ipynb", "李 明 - Copy of 07_matmul.ipynb"):
        (folder / name).write_bytes(OURS)
    assert collect(folder) == ["Ada_Lovelace", "李_明"]
    shutil.rmtree(folder)
    for name in ("Ada", "Bob"):
        (folder / name).mkdir(parents=True)
        (folder / name / "Untitled.ipynb").write_bytes(OURS)
    assert collect(folder, "08_rings") == ["Ada", "Bob"]


def test_links_in_a_folder_are_not_followed(tmp_path):
    folder, outside = tmp_path / "class", tmp_path / "outside"
    for place in (folder / "ada", folder / "bob", outside):
        place.mkdir(parents=True)
    (outside / "x.ipynb").write_bytes(b"secret")
    (folder / "ada" / "x.ipynb").write_bytes(OURS)
    (folder / "bob" / "x.ipynb").symlink_to(outside / "x.ipynb")
    (folder / "eve").symlink_to(outside)
    taken = unpack(folder, LESSON, tmp_path / "submitted")
    assert [one.student for one in taken if one.file] == ["ada"]
    assert [one.problem.partition(" in ")[0] for one in taken if one.problem] == ["eve", "bob/x.ipynb"]
    assert find_notebook(tmp_path / "submitted/ada" / LESSON, LESSON).read_bytes() == OURS


# What Formgrader shows


@taking_turns(3, LONG)
def test_names_and_addresses_reach_the_gradebook_and_nothing_that_html_is_made_of(tmp_path):
    rows = [
        Identity("ada", "canvas", "12", "lovelaceada", "ada@uni.edu"),
        Identity("ada", "moodle", "", "Ada King Lovelace"),
        Identity("alan", "brightspace", "7", "Turing, Alan"),
        Identity("bo", "canvas", "13", "bo"),
        Identity("eve", "moodle", "", "Eve <img src=x onerror=hit(1)>{{ 7*7 }}", '"><script>'),
        *(Identity(f"v{k}", "moodle", "", f"Eve {vector}", vector) for k, vector in enumerate(pages.VECTORS)),
    ]
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        enter_people(book, Roster(tuple(rows)))
        enter_people(book, Roster(tuple(rows)))
        known = {one.id: (one.first_name, one.last_name, one.email, one.lms_user_id) for one in book.students}
    assert known["ada"] == ("Ada King", "Lovelace", "ada@uni.edu", "12")
    assert known["alan"] == ("Alan", "Turing", None, "7") and known["bo"] == (None, None, None, "13")
    assert known["eve"] == ("Eve img srcx onerrorhit(1)", "77", "script", None)
    assert not [fact for facts in known.values() for fact in facts if fact and set(fact) & set("<>&\"'`{}=;:/\\")]
