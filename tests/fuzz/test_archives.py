"""Archives of any make: nothing is written outside, nobody takes another's place, and only Unreadable is raised."""

from __future__ import annotations

import struct
import tempfile
import zipfile
from pathlib import Path

import fuzzing
import pytest
from handins import CELL, everything, packed, text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.classroom.course.late import TIME
from grader.classroom.handins.archive import Unreadable, lone_notebook
from grader.classroom.handins.platforms import safe, unpack

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")  # a crook's archive may have a name twice

LESSON = "07_matmul"
LESSONS = {LESSON, "03_sum"}
# The beginning of each name in an archive: what a platform, or an instructor, writes for each student.
LAYOUTS = {
    "moodle": "{name}_{key}_assignsubmission_file_/",
    "moodle-flat": "{name}_{key}_assignsubmission_file_",
    "brightspace": "{key}-5 - {name} - Jan 1, 2024 1000 AM/",
    "brightspace-flat": "{key}-5 - {name} - Jan 1, 2024 1000 AM - ",
    "blackboard": "07 matmul_{login}_attempt_2024-01-01-10-00-00_",
    "canvas": "{login}_{key}_9{key}_",
    "canvas-late": "{login}_LATE_{key}_9{key}_",
    "google": "{name} - ",
    "folders": "{name}/",
    "lessons": "{name}/07_matmul/",
    "submitted": "submitted/{name}/07_matmul/",
    "exchange": "07_matmul/{name}/",
}
PEOPLE = {"Alice A": 77, "Alice": 7, "Bob_12_34 B": 79, "Ünal Öz": 80, "Alice A_77": 81}
MALLORY = {"Mallory M": 78}
# What Mallory may write into her own part of a name.
PIECES = st.sampled_from(
    [
        *(layout.format(name=name, login=name, key=key) for layout in LAYOUTS.values() for name, key in PEOPLE.items()),
        *(
            "07_matmul",
            "07_matmul.ipynb",
            "03_sum",
            "submitted",
            "Alice A",
            "alice",
            "ALICE A",
            "Älice",
            "Ａlice A",
            "77",
        ),
        *(
            "x.ipynb",
            "a.zip",
            ".txt",
            "-1",
            "-999999",
            "_LATE_",
            "_attempt_",
            " - ",
            "__MACOSX",
            ".",
            "..",
            "\\",
            "/",
            "//",
        ),
        *(
            "\n",
            "\0",
            "\x1b[2J",
            "\u202e",
            "\ud7ff",
            "💥",
            "C:",
            "_",
            "_2",
            "2099-01-01-10-00-00",
            "Jan 9, 2099 1000 PM/",
        ),
    ]
)
TAILS = st.tuples(
    st.lists(PIECES | st.text(max_size=3), max_size=6), st.sampled_from([".ipynb", ".zip", "", ".pdf"])
).map(lambda parts: "".join(parts[0]) + parts[1])
OURS = {name: text(cells=[{**CELL, "source": name}]) for name in PEOPLE}


def beginning(layout: str, name: str, key: int) -> str:
    return LAYOUTS[layout].format(name=name, login=safe(name).lower().replace("_", ""), key=key)


def delivered(files: dict[str, bytes | str]) -> tuple[dict[str, bytes], set[str]]:
    """What lies in submitted/ afterwards, and the students with a problem."""
    with tempfile.TemporaryDirectory() as folder:
        outer = Path(folder) / "class.zip"
        outer.write_bytes(packed(files))
        try:
            receipts = unpack(outer, LESSON, Path(folder) / "submitted", lessons=LESSONS)
        except Unreadable:
            return {}, set()
        found = everything(Path(folder) / "submitted")
        notebooks = {file: data for file, data in found.items() if not file.endswith(TIME)}
        return notebooks, {r.student for r in receipts if r.problem}


@settings(max_examples=30 * fuzzing.TIMES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    layout=st.sampled_from(sorted(LAYOUTS)),
    people=st.sets(
        st.sampled_from(sorted(PEOPLE)), min_size=2
    ),  # a class: one name alone may be as two platforms name it
    tails=st.lists(TAILS, min_size=1, max_size=30),
    first=st.booleans(),
)
def test_nobody_takes_anothers_place(layout, people, tails, first):
    honest = {beginning(layout, name, PEOPLE[name]) + "my work.ipynb": OURS[name] for name in people}
    ((mallory, key),) = MALLORY.items()
    hers = beginning(layout, mallory, key)
    evil = {hers + tail: packed({"x" + tail: "evil"}) if tail.endswith(".zip") else "evil" for tail in tails}
    expected, _ = delivered({**honest, hers + "x.ipynb": "evil"})
    assert len(expected) == len(people) + 1
    (her_folder,) = {file.split("/")[0] for file, data in expected.items() if data == b"evil"}

    found, in_trouble = delivered({**evil, **honest} if first else {**honest, **evil})
    assert {file: data for file, data in found.items() if data != b"evil"} == {
        file: data for file, data in expected.items() if data != b"evil"
    }
    assert {file.split("/")[0] for file, data in found.items() if data == b"evil"} <= {her_folder}
    assert in_trouble <= {her_folder, ""}


# Zips that are damaged, or lie.

NAMES = st.sampled_from(
    ["ada/x.ipynb", "bob/a.zip", "../x.ipynb", "/etc/x.ipynb", "C:\\x.ipynb", "cid/" + "y" * 300 + ".ipynb", "d/"]
)
PACKING = st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
LIES = st.sampled_from(
    [b"\0\0", b"\1\0", b"\xff\xff", b"\0\x08", b"\x0e\0", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x7f", b"PK\1\2"]
)


def make(files: list[tuple[str, bytes, int]]) -> bytes:
    with tempfile.TemporaryFile() as box:
        with zipfile.ZipFile(box, "w") as archive:
            for name, content, packing in files:
                archive.writestr(name, content, packing)
        box.seek(0)
        return box.read()


CONTENTS = (
    st.binary(max_size=50) | st.just(text().encode()) | st.just(bytes(300_000)) | st.just(packed({"b.ipynb": text()}))
)
ZIPS = st.lists(st.tuples(NAMES, CONTENTS, PACKING), max_size=4).map(make)


def with_lies(data: bytes, lies: list[tuple[int, bytes]]) -> bytes:
    """The zip with these bytes in place of others, most of them in the directory at its end."""
    box = bytearray(data)
    for place, lie in lies:
        at = place % len(box) if place % 3 else max(0, len(box) - 1 - place % 200)
        box[at : at + len(lie)] = lie
    return bytes(box)


LYING = st.builds(
    with_lies, ZIPS, st.lists(st.tuples(st.integers(0, 10_000), LIES | st.binary(max_size=4)), max_size=4)
)


def is_taken_or_refused(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        outer = Path(folder) / "class.zip"
        outer.write_bytes(data)
        try:
            receipts = unpack(outer, LESSON, Path(folder) / "submitted", lessons=LESSONS)
        except Unreadable as problem:
            assert is_a_line(str(problem))
        else:
            assert all(is_a_line(r.problem) for r in receipts if r.problem)
        assert {path.name for path in Path(folder).iterdir()} <= {"class.zip", "submitted"}
        for file in everything(Path(folder)):
            assert file == "class.zip" or len(Path(file).parts) == 4 and file.split("/")[2] == LESSON, file
    try:
        lone_notebook(data, "hw.zip")
    except Unreadable as problem:
        assert is_a_line(str(problem))


def is_a_line(said: str) -> bool:
    return said.isprintable() and len(said) < 1000


def test_zips_are_taken_or_refused():
    fuzzing.fuzz(
        "archives", LYING | st.binary(max_size=200).map(lambda tail: b"PK\x03\x04" + tail), is_taken_or_refused
    )


def test_a_false_count_of_entries_costs_nothing():
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65535, 65535, 46 * 65535, 0, 0)
    with fuzzing.within():
        is_taken_or_refused(end)
        is_taken_or_refused(b"PK\1\2" * 1_000_000 + end)
