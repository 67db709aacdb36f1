"""Which file of a folder is the hand-in, under what name nbgrader sees it, and that nothing is changed."""

from __future__ import annotations

import copy
import json
import os
import pathlib

import mini
import nbformat
import pytest
from handins import cell, everything, packed, text, why
from nbgrader.api import Gradebook

from grader.classroom.course.build import build, nbgrader
from grader.classroom.course.notebook import notebook_text
from grader.classroom.handins import handin
from grader.classroom.handins.handin import SUBMISSION_SECRET, BareDirectory, adopt, find_notebook, give_name, read
from grader.classroom.verdicts.judge import shared_judge

LESSON = "07_matmul"
NAME = f"{LESSON}.ipynb"


@pytest.fixture(autouse=True, scope="module")
def no_judge_stays():
    yield
    shared_judge().close()


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "submitted" / "ada" / LESSON
    place.mkdir(parents=True)
    return place


@pytest.fixture
def put(folder):
    def write(content, name=NAME):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder / name

    return write


# Which file it is.


@pytest.mark.parametrize(
    "names, found",
    [
        ([NAME], NAME),
        (["my homework.ipynb"], "my homework.ipynb"),
        (["Übung\n数 [1].ipynb"], "Übung\n数 [1].ipynb"),
        (["X.IPYNB"], "X.IPYNB"),
        ([NAME, f"{LESSON} (1).ipynb"], NAME),
        ([f"{LESSON} (1).ipynb"], f"{LESSON} (1).ipynb"),
        ([f"._{NAME}", ".hidden.ipynb", "work.ipynb", ".ipynb_checkpoints/work-checkpoint.ipynb"], "work.ipynb"),
        (["my folder/work.ipynb", "data.csv"], "my folder/work.ipynb"),
        (["homework.zip", "work.ipynb"], "work.ipynb"),
        (["homework.zip", "report.pdf"], "homework.zip"),
    ],
    ids=lambda value: None,
)
def test_the_hand_in_is_found_and_named(folder, put, names, found):
    for name in names:
        put(packed({"x/work.ipynb": text()}) if name.endswith(".zip") else text(), name)
    before = everything(folder)
    assert find_notebook(folder, LESSON) == folder / found
    for _ in "twice":
        assert give_name(folder, LESSON) == folder / NAME
        assert read(folder / NAME).cells[0].source == "x = 1"
        assert find_notebook(folder, LESSON) == folder / found
    assert everything(folder) == before


def test_which_of_two(folder, put):
    put(text(), "a.ipynb")
    put(text(), "b.ipynb")
    assert why(find_notebook, folder, LESSON) == f"Which of these is the hand-in? a.ipynb, b.ipynb. Name it {NAME}."


def test_none(folder, put):
    assert why(find_notebook, folder, LESSON).endswith(f"{NAME} is due, and found is nothing.")
    put("x", "report.pdf")
    os.mkfifo(folder / "pipe.ipynb")
    (folder / NAME).mkdir()
    assert why(find_notebook, folder, LESSON).endswith("found is report.pdf.")
    assert "cannot be read: No such file" in why(find_notebook, folder / "none", LESSON)
    put(text(), "a.ipynb")
    assert "a.ipynb cannot be given the name 07_matmul.ipynb by a link" in why(give_name, folder, LESSON)


def test_a_folder_of_thousands(folder, put):
    for k in range(2_001):
        (folder / str(k)).mkdir()
    assert "07_matmul holds more than 2,000 files. Keep the notebook alone" in why(give_name, folder, LESSON)


def test_a_link_made_for_an_older_hand_in_is_made_anew(folder, put):
    put(text(), "a.ipynb")
    give_name(folder, LESSON)
    (folder / "a.ipynb").unlink()
    put(cell(source="new"), "b.ipynb")
    assert read(give_name(folder, LESSON)).cells[0].source == "new"
    put(text(), "c.ipynb")
    assert "Which of these is the hand-in? b.ipynb, c.ipynb" in why(give_name, folder, LESSON)


def test_links_are_not_followed(folder, put, tmp_path):
    outside = tmp_path / "other.ipynb"
    outside.write_text(text())
    (folder / NAME).symlink_to(outside)
    assert f"{NAME} is a link to {outside}, and not followed" in why(find_notebook, folder, LESSON)
    assert "is a link to a file outside the hand-in" in why(read, folder / NAME)
    (folder / NAME).unlink()
    put(text())
    (folder / "data").symlink_to("/etc")
    assert "data is a link to /etc, and not followed" in why(find_notebook, folder, LESSON)
    student = folder.parents[1] / "bob"
    student.symlink_to(folder.parent)
    assert "bob is a link to another folder" in why(find_notebook, student / LESSON, LESSON)


def test_a_folder_that_cannot_be_written(folder, put, monkeypatch):
    put(text(), "a.ipynb")

    def refuse(self, target, target_is_directory=False):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "symlink_to", refuse)  # root may write everywhere
    said = why(give_name, folder, LESSON)
    assert "a.ipynb cannot be given the name 07_matmul.ipynb by a link (Permission denied)" in said
    notebooks = [str(folder / "a.ipynb")]
    adopt(LESSON, "ada", notebooks)  # nbgrader goes on, with what it has
    assert notebooks == [str(folder / "a.ipynb")]


@pytest.mark.parametrize(
    "name, words",
    [
        (" ada", "begins or ends with a blank"),
        ("ada ", "begins or ends with a blank"),
        ("a\nb", "has characters that cannot be seen"),
        ("a\x1b[2Jb", "has characters that cannot be seen"),
        ("a\u202eb", "has characters that cannot be seen"),
        (os.fsdecode(b"a\xff"), "has characters that cannot be seen"),
        ("a*", "has one of"),
        ("[ab]", "has one of"),
        ("<b>", "has one of"),
        ("a\\b", "has one of"),
        ("a" * 129, "is too long"),
    ],
)
def test_names_of_folders_that_nbgrader_cannot_take(tmp_path, name, words):
    for place in (tmp_path / name / LESSON, tmp_path / "ada" / name):
        place.mkdir(parents=True)
        (place / NAME).write_text(text())
        said = why(give_name, place, LESSON)
        assert said.startswith("The folder's name “") and words in said and "Rename the folder" in said


@pytest.mark.parametrize("name", ["Ada Lovelace", "李 雷", "-1+1", "{0}", "a'b", "a%b", "a,b", "é" * 64])
def test_names_of_folders_that_it_can(tmp_path, name):
    place = tmp_path / name / LESSON
    place.mkdir(parents=True)
    (place / NAME).write_text(text())
    assert give_name(place, LESSON) == place / NAME


# A zip handed in for a notebook.


@pytest.mark.parametrize(
    "content, words",
    [
        (
            packed({"a.ipynb": text(), "b/c.ipynb": text()}),
            "Which of these in homework.zip is the hand-in? a.ipynb, b/c",
        ),
        (packed({"report.pdf": ""}), "There is no notebook in homework.zip. Found: report.pdf."),
        (packed({"../a.ipynb": text()}), "../a.ipynb in homework.zip leads outside the archive"),
        (packed({"a.ipynb": b" " * 51_000_000}), "a.ipynb in homework.zip is 51 MB unpacked; at most 50 MB"),
        (packed({"a.ipynb": text()})[:60], "homework.zip is no zip, or a damaged one"),
        (packed({"a.ipynb": "x"}), "a.ipynb in homework.zip is not a notebook: JSON is due"),
    ],
    ids=["two", "none", "outside", "bomb", "damaged", "no-notebook"],
)
def test_zips_that_are_not_read(put, content, words):
    assert words in why(read, put(content, "homework.zip"))


# And the whole way: nbgrader grades what only we can read, and the hand-ins stay as they are.


def test_nbgrader_grades_what_it_could_not_read(tmp_path):
    mini.built_course(tmp_path)
    solved = json.loads(nbformat.writes(mini.solved(tmp_path)))
    right = f"{mini.LESSON}.ipynb"
    sheets = [
        {
            "metadata": {},
            "cells": [{**c, "input": c["source"], "outputs": [], "language": "python"} for c in solved["cells"]],
        }
    ]
    loud = [
        {**c, "outputs": [{"output_type": "stream", "name": "stdout", "text": "x" * 15_000_000}]}
        if c["cell_type"] == "code"
        else c
        for c in solved["cells"]
    ]
    files = {
        "utf16": (right, text(solved).encode("utf-16")),
        "old": (right, text(metadata={}, nbformat=3, worksheets=sheets, cells=None).encode()),
        "loud": ("my work.ipynb", text(solved, cells=loud[:3] + solved["cells"][3:]).encode()),
        "zip": ("homework.zip", packed({"work.ipynb": text(solved)})),
    }
    api = nbgrader(tmp_path)
    for student, (name, content) in files.items():
        folder = tmp_path / "submitted" / student / mini.LESSON
        folder.mkdir(parents=True)
        (folder / name).write_bytes(content)
        give_name(folder, mini.LESSON)
        done = api.autograde(mini.LESSON, student)
        assert done["success"], done
        assert (folder / name).read_bytes() == content
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
        assert {s.student.id: s.score for s in book.assignment_submissions(mini.LESSON)} == dict.fromkeys(files, 6.0)


NASTY = {"evil.html": b"<script>", ".hidden": b"x", "deep/er/evil.js": b"x", "train.py": b"theirs"}


def test_nothing_beside_the_notebook_goes_further(tmp_path):
    """By nbgrader's own interface, which its command line and Formgrader use; and neither time nor room is taken."""
    mini.built_course(tmp_path)
    (tmp_path / "solutions" / mini.LESSON / "train.py").write_text("ours")
    build(tmp_path)
    assert (tmp_path / "course" / mini.LESSON / "train.py").read_text() == "ours"
    folder = tmp_path / "submitted" / "ada" / mini.LESSON
    folder.mkdir(parents=True)
    nbformat.write(mini.solved(tmp_path), folder / f"{mini.LESSON}.ipynb")
    for name, content in NASTY.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "sparse.bin").touch()
    os.truncate(folder / "sparse.bin", 10**12)
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "timestamp.txt")
    (folder / "passwd").symlink_to("/etc/passwd")
    api = nbgrader(tmp_path)
    for _ in "twice":
        assert (done := api.autograde(mini.LESSON, "ada"))["success"], done
        left = tmp_path / "autograded" / "ada" / mini.LESSON / "left.html"
        left.write_text("by an older version")
        assert (done := api.generate_feedback(mini.LESSON, "ada"))["success"], done
        left.unlink()
    assert {p.name for p in (tmp_path / "autograded/ada" / mini.LESSON).iterdir()} == {f"{mini.LESSON}.ipynb"}
    assert {p.name for p in (tmp_path / "feedback/ada" / mini.LESSON).iterdir()} == {f"{mini.LESSON}.html"}
    assert nbgrader(tmp_path).coursedir.ignore != ["*"]


@pytest.mark.parametrize("content", [b"", b"<script>", b"0" * 257, b"ab\nab", "ａｂ".encode()])
def test_a_secret_of_the_exchange_goes_further_and_nothing_that_is_none(tmp_path, content):
    course, file = BareDirectory(), tmp_path / SUBMISSION_SECRET
    assert course.beside(tmp_path) == {}
    file.write_bytes(b"0a" * 64)
    assert course.beside(tmp_path) == {SUBMISSION_SECRET: b"0a" * 64}
    file.rename(tmp_path / "secret")
    file.symlink_to("secret")
    assert course.beside(tmp_path) == {}
    file.unlink()
    file.write_bytes(content)
    assert course.beside(tmp_path) == {}
    file.unlink()
    os.mkfifo(file)
    assert course.beside(tmp_path) == {}


def test_when_it_was_handed_in(tmp_path):
    """nbgrader's own exchange says it in a file, and without --force grades what is newer than its marks."""
    mini.built_course(tmp_path)
    folder = tmp_path / "submitted" / "ada" / mini.LESSON
    folder.mkdir(parents=True)
    scores = []
    for date, nb in [
        ("2024-01-01 10:00:00.000000 UTC", mini.released(tmp_path)),
        ("2024-01-02 10:00:00.000000 UTC", mini.solved(tmp_path)),
        ("2024-01-02 10:00:00.000000 UTC", mini.released(tmp_path)),
        ("2024-02-30 10:00:00.000000 UTC", mini.released(tmp_path)),
        ("2024-01-03 10:00:00 /etc/passwd", mini.released(tmp_path)),
    ]:
        (folder / "timestamp.txt").write_text(date)
        nbformat.write(nb, folder / f"{mini.LESSON}.ipynb")
        assert (done := nbgrader(tmp_path).autograde(mini.LESSON, "ada", force=False))["success"], done
        with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as book:
            submission = book.find_submission(mini.LESSON, "ada")
            scores.append((submission.score, str(submission.timestamp)))
    new = (6.0, "2024-01-02 10:00:00")
    assert scores == [(0.0, "2024-01-01 10:00:00"), new, new, new, new]


@pytest.mark.parametrize("student", ["<img src=x onerror=hit(1)>", 'x";hit(1)//', "x\\"])
def test_a_students_folder_whose_name_formgrader_would_run_is_refused(student, tmp_path):
    """nbgrader's own pages (Manage Students, the bar above a hand-in) do not escape it."""
    folder = tmp_path / student / "07_matmul"
    folder.mkdir(parents=True)
    (folder / "07_matmul.ipynb").write_text("{}")
    assert "Rename the folder" in why(find_notebook, folder, "07_matmul")
    kind = tmp_path / "O'Brien & Zoë" / "07_matmul"
    kind.mkdir(parents=True)
    (kind / "07_matmul.ipynb").write_text("{}")
    assert find_notebook(kind, "07_matmul")


ODD = 'é \u2028 \x85 "quoted" \\ \t 😀\r\n</script>\x00 last'


def test_a_notebook_is_written_as_nbformat_writes_it(root):
    nb = nbformat.read(root / "solutions/07_matmul/07_matmul.ipynb", 4)
    nb.metadata |= {"none": None, "empty": {}, "numbers": [1, 2.5, -1e300, True], "nested": [[], [{}], {"ü": ODD}]}
    nb.cells.append(nbformat.v4.new_code_cell(ODD, outputs=[nbformat.v4.new_output("stream", text=ODD)]))
    nb.cells.append(nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", {"text/html": ODD})]))
    nb.cells.append(nbformat.v4.new_markdown_cell(ODD, attachments={"a.png": {"image/png": "aaaa"}}))
    assert notebook_text(nb) == nbformat.writes(nb)


def test_a_notebook_that_is_given_away_is_not_copied():
    nb = handin.OwnNotebook(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")]))
    assert copy.deepcopy(nb) is nb and copy.deepcopy(nb.cells[0]) is not nb.cells[0]


def test_only_within_a_hand_in_a_release_is_asked_for_once(monkeypatch):
    asked = []
    monkeypatch.setattr(handin, "_read_release", lambda where: asked.append(where) or len(asked))
    where, other = ({"db_url": "", "notebook": name, "assignment": name} for name in ("one", "other"))
    assert [handin.registered_release(where) for _ in range(2)] == [1, 2]
    with handin.one_release():
        assert [handin.registered_release(one) for one in (where, other, where)] == [3, 4, 3]
        with handin.one_release():
            assert handin.registered_release(where) == 3
    assert handin.registered_release(where) == 5
