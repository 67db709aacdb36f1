"""What platforms pack: each student's newest notebook in its place, safely, and a line for each that has none."""

from __future__ import annotations

import os
import stat
import struct
import zipfile

import pytest
from handins import cell, everything, packed, text

from grader.classroom.course.late import TIME
from grader.classroom.handins import archive as archive_room
from grader.classroom.handins.archive import Unreadable
from grader.classroom.handins.handin import find_notebook, read
from grader.classroom.handins.platforms import safe, unpack

LESSON = "07_matmul"
NAME = f"{LESSON}.ipynb"
OURS = text().encode()


@pytest.fixture
def take(tmp_path):
    """Unpack these files; returns (what is in submitted/, the lines)."""

    def run(files, replace=False):
        outer = tmp_path / "class.zip"
        outer.write_bytes(files if isinstance(files, bytes) else packed(files))
        before = {k: v for k, v in everything(tmp_path).items() if not k.startswith("submitted/")}
        taken = unpack(outer, LESSON, tmp_path / "submitted", replace, {LESSON, "03_sum"})
        after = everything(tmp_path)
        assert {k: v for k, v in after.items() if not k.startswith("submitted/")} == before
        assert not [name for name in after if ".part-" in name or ".new-" in name]
        written = {k.removeprefix("submitted/"): v for k, v in after.items() if k not in before}
        return {k: v for k, v in written.items() if not k.endswith(TIME)}, taken

    return run


def at(*students):
    return {f"{student}/{LESSON}/{NAME}" for student in students}


@pytest.mark.parametrize(
    "names, students",
    [
        (
            [
                "Ada Lovelace_123456_assignsubmission_file_/07_matmul.ipynb",
                "Alan Turing_123457_assignsubmission_file/my work.ipynb",
            ],
            ["Ada_Lovelace", "Alan_Turing"],
        ),
        (["Ada Lovelace_123456_assignsubmission_file_07_matmul.ipynb"], ["Ada_Lovelace"]),
        (
            ["Ada Lovelace_1_assignsubmission_file_/a.ipynb", "Ada Lovelace_2_assignsubmission_file_/a.ipynb"],
            ["Ada_Lovelace_1", "Ada_Lovelace_2"],
        ),
        (
            ["lovelaceada_LATE_12345_67890_07_matmul-1.ipynb", "turingalan_12346_67891_hw.ipynb"],
            ["lovelaceada", "turingalan"],
        ),
        (
            [
                "07 matmul_alovelace_attempt_2024-01-01-10-00-00_07_matmul.ipynb",
                "07 matmul_alovelace_attempt_2024-01-01-10-00-00.txt",
                "07 matmul_at_attempt_2024-01-01-10-00-00_x.ipynb",
            ],
            ["alovelace", "at"],
        ),
        (["12345-67890 - Ada Lovelace - Jan 1, 2024 1000 AM/07_matmul.ipynb", "index.html"], ["Ada_Lovelace"]),
        (["ada/07_matmul/07_matmul.ipynb", "ada/03_sum/03_sum.ipynb", "bob/03_sum/03_sum.ipynb"], ["ada"]),
        (["submitted/ada/07_matmul/x.ipynb", "submitted/bob/07_matmul/x.ipynb"], ["ada", "bob"]),
        (
            ["ada/x.ipynb", "ada/data.csv", "bob/x.ipynb", "__MACOSX/bob/._x.ipynb", "bob/.ipynb_checkpoints/x.ipynb"],
            ["ada", "bob"],
        ),
        (["07_matmul/ada/x.ipynb"], ["ada"]),
        (
            ["submitted/lovelaceada_1_2_x.ipynb", "submitted/turingalan_3_4_x.ipynb"],
            ["lovelaceada", "turingalan"],
        ),
        (
            ["Jürgen Groß/x.ipynb", "李 雷/x.ipynb", "a b/x.ipynb", "a_b/x.ipynb"],
            ["Jürgen_Groß", "李_雷", "a_b_a_b", "a_b_a_b_2"],
        ),
    ],
    ids=[
        "moodle",
        "moodle-flat",
        "moodle-namesakes",
        "canvas",
        "blackboard",
        "brightspace",
        "nbgrader",
        "submitted",
        "folders",
        "exchange",
        "canvas-folder",
        "unicode",
    ],
)
def test_layouts(take, names, students):
    written, taken = take(dict.fromkeys(names, OURS))
    assert written == dict.fromkeys(at(*students), OURS)
    assert sorted(t.student for t in taken) == sorted(students) and not any(t.problem for t in taken)


@pytest.mark.parametrize(
    "files, note",
    [
        (
            {
                "t_al_attempt_2024-01-01-10-00-00_07_matmul.ipynb": "old",
                "t_al_attempt_2024-01-02-09-00-00_x.ipynb": OURS,
            },
            "the newest of 2 attempts (2024-01-02-09-00-00)",
        ),
        (
            {
                "t_al_attempt_2024-01-01-10-00-00_07_matmul.ipynb": "old",
                "t_al_attempt_2024-01-02-09-00-00_x.zip": packed({"x.ipynb": OURS}),
            },
            "the newest of 2 attempts",
        ),
        (
            {"al_1_20_07_matmul-2.ipynb": OURS, "al_1_10_07_matmul.ipynb": "old", "al_1_30_07_matmul-1.ipynb": "old"},
            "the newest of 3 files of this name",
        ),
        (
            {"1-2 - al - Jan 1, 2024 1000 AM/x.ipynb": "old", "1-2 - al - Jan 1, 2024 930 PM/x.ipynb": OURS},
            "the newest of 2 attempts (2024-01-01 21:30:00)",
        ),
        ({"al/07_matmul.ipynb": OURS, "al/scratch.ipynb": "other"}, ""),
    ],
    ids=["blackboard", "blackboard-zip", "canvas", "brightspace", "by-name"],
)
def test_the_newest_attempt_is_taken_and_said(take, files, note):
    written, (taken,) = take(files)
    assert written == {f"al/{LESSON}/{NAME}": OURS}
    assert taken.note.startswith(note)


def test_a_zip_of_a_students_is_opened_once(take):
    written, taken = take(
        {
            "ada/hw.zip": packed({"hw/work.ipynb": OURS, "__MACOSX/._work.ipynb": "x"}),
            "bob/hw.zip": packed({"deeper.zip": packed({"a.ipynb": OURS})}),
            "eve/hw.zip": b"PK\x03\x04 not really",
        }
    )
    assert set(written) == at("ada")
    assert "There is no notebook among what was handed in: hw.zip" in taken[1].problem
    assert "hw.zip is no zip, or a damaged one" in taken[2].problem


def test_several_that_could_be_it_are_all_laid_down_for_a_person_to_choose(take, tmp_path):
    written, taken = take({"ada/a.ipynb": OURS, "ada/b/a.ipynb": OURS})
    assert set(written) == {f"ada/{LESSON}/1_a.ipynb", f"ada/{LESSON}/2_a.ipynb"}
    assert "Each of these could be the hand-in: a.ipynb, b/a.ipynb" in taken[-1].problem
    with pytest.raises(archive_room.Unreadable, match="Which of these"):
        find_notebook(tmp_path / "submitted/ada" / LESSON, LESSON)


def test_none_is_forgotten(take, tmp_path):
    written, taken = take({"ada/report.pdf": "x", "whose.ipynb": OURS, "bob/x.ipynb": OURS})
    assert set(written) == at("bob")
    assert [(t.student, t.problem) for t in taken] == [
        ("", "Whose is whose.ipynb? Put it in a folder of the student's name."),
        ("ada", "There is no notebook among what was handed in: report.pdf."),
        ("bob", ""),
    ]
    with pytest.raises(archive_room.Unreadable, match="There is no notebook"):  # a line when the class is graded, too
        find_notebook(tmp_path / "submitted/ada" / LESSON, LESSON)


def test_what_is_there_stays_unless_told(take):
    take({"ada/x.ipynb": OURS})
    _, (again,) = take({"ada/x.ipynb": OURS})
    assert again.file and again.note == "was there already, the same"
    new = cell(source="new").encode()
    written, (other,) = take({"ada/x.ipynb": new})
    assert written[f"ada/{LESSON}/{NAME}"] == OURS
    assert "is there already and differs from the archive's: it was left as it is" in other.problem
    written, (told,) = take({"ada/x.ipynb": new}, replace=True)
    assert written[f"ada/{LESSON}/{NAME}"] == new and told.note == "replaced what was there"


def test_notebooks_are_laid_down_byte_for_byte(take, tmp_path):
    odd = text().encode("utf-16")
    written, _ = take({"ada/x.ipynb": odd})
    file = tmp_path / f"submitted/ada/{LESSON}/{NAME}"
    assert written[f"ada/{LESSON}/{NAME}"] == odd and stat.S_IMODE(file.stat().st_mode) == 0o644
    assert read(file).cells[0].source == "x = 1"


# Nothing is written outside, whatever the archive says.


@pytest.mark.parametrize(
    "name", ["../../evil/x.ipynb", "/tmp/evil/x.ipynb", "ada/../../x.ipynb", "..\\..\\x.ipynb", "C:\\evil\\x.ipynb"]
)
def test_paths_that_lead_outside(take, name):
    written, taken = take({name: OURS, "ada/x.ipynb": OURS})
    assert set(written) == at("ada")
    assert "in class.zip leads outside the archive: left out" in taken[0].problem


def test_a_name_that_ends_early_is_said(take):
    data = packed({"ada/x.ipynb": OURS, "eve\x01M - 07.ipynb": OURS}).replace(b"eve\x01M", b"eve\0M")
    written, taken = take(data)
    assert set(written) == at("ada") and "has no possible name: left out" in taken[0].problem


def test_links_in_the_archive_and_on_the_disk(take, tmp_path):
    link = zipfile.ZipInfo("bob/x.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "submitted").mkdir()
    (tmp_path / "submitted/eve").symlink_to(outside)
    written, taken = take({link: "/etc/passwd", "ada/x.ipynb": OURS, "eve/x.ipynb": OURS})
    assert set(written) == at("ada") and not list(outside.iterdir())
    assert [t.problem[:40] for t in taken if t.problem][0] == "bob/x.ipynb in class.zip is a link, not "
    assert "is a link to another folder; nothing was written" in taken[-1].problem


@pytest.mark.parametrize(
    "name, expected",
    [
        ("Ada Lovelace", "Ada_Lovelace"),
        ("..", "student"),
        ("", "student"),
        (".hidden", "hidden"),
        ("-rf", "rf"),
        ("a/b\\c\0d\ne", "a_b_c_d_e"),
        ("a+b[*]?{c}", "a_b_c"),
        ("x" * 300, "x" * 100),
        ("ada@uni.edu", "ada@uni.edu"),
        ("Zoe\u0308", "Zoë"),
    ],
)
def test_names_of_folders(name, expected):
    assert safe(name) == expected


# Nobody hands in for somebody else. (tests/fuzz/test_archives.py tries what Mallory might write in every layout.)


MOODLE = "Alice A_77_assignsubmission_file_/07_matmul.ipynb"


@pytest.mark.parametrize(
    "files, students",
    [
        ([MOODLE, f"Mallory M_78_assignsubmission_file_/{MOODLE}"], ["Alice_A"]),
        (
            [
                "1-2 - Alice A - Jan 1, 2024 1000 AM/x.ipynb",
                "3-2 - Mallory M - Jan 1, 2024 1000 AM/1-2 - Alice A - Jan 2, 2024 1000 AM/x.ipynb",
            ],
            ["Alice_A"],
        ),
        (
            [
                "t_alice_attempt_2024-01-01-10-00-00_x.ipynb",
                "t_mallory_attempt_2024-01-01-10-00-00_t_alice_attempt_2024-01-02-10-00-00_x.ipynb",
            ],
            ["alice"],
        ),
        (
            ["alice/my.ipynb", "carol/my.ipynb", "mallory/alice/07_matmul/07_matmul.ipynb"],
            ["alice", "carol"],
        ),
        (["alice/hw/my.ipynb", "carol/hw/my.ipynb", "mallory/07_matmul/x.ipynb"], ["alice", "carol"]),
        (["alicea_1_2_x.ipynb", *(f"mallorym_3_4_\\{k}.ipynb" for k in range(9))], ["alicea"]),
        (["mallorym_3_4_t_alice_attempt_2024-01-02-10-00-00_x.ipynb"], []),
        (["mallory/alice/07_matmul/07_matmul.ipynb"], []),
    ],
    ids=["moodle", "brightspace", "blackboard", "folders", "by-lesson", "canvas", "alone", "alone-folders"],
)
def test_only_the_outermost_name_says_whose_a_file_is(take, files, students):
    theirs = cell(source="theirs").encode()
    written, taken = take({name: theirs if "allory" in name else OURS for name in files})
    assert [t.student for t in taken if "allory" not in t.student and not t.problem] == students
    assert {name: data for name, data in written.items() if "allory" not in name} == dict.fromkeys(at(*students), OURS)


@pytest.mark.parametrize(
    "name",
    [
        "Alice A_77_assignsubmission_file__78_assignsubmission_file_/07_matmul.ipynb",
        "alicea_77_978_1234_07_matmul.ipynb",  # alicea_77 is called so, and has number 978
        "7-5 - Alice A - Jan 1, 2024 1000 AM - Jan 2, 2024 1000 AM/x.ipynb",
        "Alice A - x - 07_matmul.ipynb",
    ],
)
def test_a_name_that_can_be_read_in_two_ways_is_nobodys(take, name):
    written, (taken,) = take({name: OURS})
    assert not written and taken.problem.startswith("Whose is ")


def test_two_files_under_one_name_without_a_number_could_each_be_it(take):
    written, (taken,) = take({"Alice A - 07_matmul.ipynb": "evil", "Alice A - hw.zip": packed({"x.ipynb": OURS})})
    assert not written and "of one student or of namesakes: 07_matmul.ipynb, hw.zip" in taken.problem


def test_whose_is_what_another_platform_named(take):
    _, taken = take(dict.fromkeys(["ada/x.ipynb", "bob/x.ipynb", f"group/{MOODLE}"], OURS))
    assert taken[-1].student == "group"
    assert "is named as a platform names hand-ins, but is in this student's. Whose is it?" in taken[-1].problem


@pytest.mark.parametrize(
    "names", [["class/ada/x.ipynb", "class/bob/x.ipynb"], ["class/a_1_2_x.ipynb", "class/b_3_4_x.ipynb"]]
)
def test_one_folder_around_all_is_the_class_if_it_is_named_so(take, names):
    with pytest.raises(
        Unreadable, match="All hand-ins in class.zip lie in one folder, class.*give it the name 07_matmul"
    ):
        take(dict.fromkeys(names, OURS))
    _, taken = take({name.replace("class", LESSON): OURS for name in names})
    assert len(taken) == 2 and not any(t.problem for t in taken)


def test_two_of_one_name_from_two_places_are_for_a_person_to_choose(take):
    places = ["Ada_1_assignsubmission_file_/x.ipynb", "Ada_1_assignsubmission_onlinetext_/x.ipynb"]
    _, taken = take(dict.fromkeys(places, OURS))
    assert "Each of these could be the hand-in: x.ipynb, x.ipynb" in taken[-1].problem


def test_folders_that_a_file_system_takes_for_one(take):
    _, taken = take(dict.fromkeys(["ADA/x.ipynb", "ada/x.ipynb", "Ａda/x.ipynb", "ß/x.ipynb", "SS/x.ipynb"], OURS))
    folders = [t.student for t in taken]
    assert len({name.casefold() for name in folders}) == 5 and not any(t.problem for t in taken)


# Archives that are not what they say.


def test_bombs(take, monkeypatch):
    _, taken = take({"ada/x.ipynb": b"0" * 51_000_000, "bob/x.ipynb": OURS})
    assert "x.ipynb in class.zip is 51 MB unpacked; at most 50 MB are read" in taken[0].problem
    assert taken[1].file
    many = {f"{k}.ipynb": b"0" * 41_000_000 for k in range(5)}
    _, taken = take({"ada/x.zip": packed(many), "bob/x.ipynb": OURS})
    assert "4.ipynb hold 205 MB; at most 200 MB are read of one student's" in taken[0].problem
    assert taken[1].file
    monkeypatch.setattr(archive_room, "TOTAL", 1_000_000)
    _, taken = take({"ada/x.ipynb": OURS, "bob/x.ipynb": b"0" * 1_000_001})
    assert taken[0].file and "There is more in class.zip than is unpacked at once" in taken[1].problem
    _, taken = take({"cid/x.zip": packed({"x.ipynb": b"0" * 1_000_001})})
    assert "There is more in x.zip than is unpacked at once" in taken[0].problem
    monkeypatch.setattr(archive_room, "MOST_ENTRIES", 10)
    with pytest.raises(Unreadable, match="holds 12 files; at most 10 are looked at.*11 of them lie in mal"):
        take({"ada/x.ipynb": OURS} | {f"mal/{k}.ipynb": OURS for k in range(11)})
    monkeypatch.setattr(archive_room, "MOST_INSIDE", 5)
    _, (taken,) = take({"ada/x.zip": packed({f"{k}.ipynb": OURS for k in range(6)})})
    assert "x.zip holds 6 files; at most 5" in taken.problem


def test_many_candidates(take):
    """None is read, and none is written: a person asks for the one."""
    for files in (
        {"ada/x.zip": packed({f"{k}.ipynb": OURS for k in range(25)})},
        {f"ada/{k}.zip": packed({"x.ipynb": OURS}) for k in range(25)},
        {f"ada/{k}.ipynb": OURS for k in range(25)},
    ):
        written, (taken,) = take(files)
        assert not written and "Each of 25 files could be the hand-in: 0." in taken.problem
    written, (taken,) = take({"ada/x.zip": packed({f"{k}.ipynb": "x" for k in range(25)} | {NAME: OURS})})
    assert written == dict.fromkeys(at("ada"), OURS) and not taken.problem


def test_unusual_ways_of_packing(take, tmp_path):
    with zipfile.ZipFile(tmp_path / "odd.zip", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("ada/x.ipynb", OURS)
    _, (taken,) = take((tmp_path / "odd.zip").read_bytes())
    assert "x.ipynb in class.zip is packed in an unusual way" in taken.problem


def test_a_size_that_lies(take):
    """The directory says 10 bytes, the data are 100 MB: no more than was said is ever unpacked."""
    outer = bytearray(packed({"ada/x.ipynb": b"0" * 100_000_000}))
    directory = outer.rindex(b"PK\x01\x02")
    outer[directory + 24 : directory + 28] = struct.pack("<I", 10)
    _, (taken,) = take(bytes(outer))
    assert "x.ipynb in class.zip is damaged" in taken.problem


def test_locked_and_damaged(take, tmp_path):
    outer = bytearray(packed({"ada/x.ipynb": OURS, "bob/x.ipynb": OURS}))
    directory = outer.index(b"PK\x01\x02")
    outer[directory + 8] |= 1  # what says that an entry is encrypted
    written, taken = take(bytes(outer))
    assert "x.ipynb in class.zip is encrypted. Ask for it without a password." in taken[0].problem
    assert set(written) == at("bob")
    outer = bytearray(packed({"ada/x.ipynb": os.urandom(1000), "bob/y.ipynb": OURS}))
    outer[200:300] = bytes(100)
    _, taken = take(bytes(outer))
    assert "x.ipynb in class.zip is damaged" in taken[0].problem and taken[1].problem == ""
    for content in (b"", b"Rar!\x1a", packed({"a/x.ipynb": OURS})[:-30]):
        with pytest.raises(Unreadable, match="class.zip is no zip, or a damaged one"):
            take(content)
    with pytest.raises(Unreadable, match="There are no files in class.zip"):
        take({})
    with pytest.raises(Unreadable, match="No such file"):
        unpack(tmp_path / "none.zip", LESSON, tmp_path / "submitted")


def test_a_time_that_a_person_wrote_stays_with_its_notebook(tmp_path):
    """Collecting the same zip again changes nothing; another notebook has no time of the one before it."""
    place, submitted = tmp_path / "class.zip", tmp_path / "submitted"

    def collected(content, **options):
        place.write_bytes(packed({"lovelaceada_LATE_12_900_x.ipynb": content}))
        return unpack(place, LESSON, submitted, **options)[0].note

    collected(text().encode())
    time = submitted / "lovelaceada" / LESSON / TIME
    time.write_text("2027-03-02 10:00:00 UTC")
    assert collected(text().encode()) == "late, as the platform says; was there already, the same"
    assert time.read_text() == "2027-03-02 10:00:00 UTC"
    said = collected(text().encode() + b" ", replace=True)
    assert "said 2027-03-02 10:00:00 UTC, of the notebook before it: removed; write one for this" in said
    assert not time.exists()
