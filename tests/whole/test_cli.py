"""The commands: results on standard output, trouble in words and exit status 2."""

import json
import shutil
import subprocess
import sys

import nbformat
import pytest
from handins import packed
from rota import LONG, taking_turns

from grader import cli


def grader(*args, cwd, seconds=200):
    return subprocess.run(
        [sys.executable, "-m", "grader.cli", *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=seconds
    )


@pytest.fixture
def typed(monkeypatch, capsys):
    """The same in this process: to start another one takes seconds."""

    def run(*args, cwd):
        monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["grader", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        output, errors = capsys.readouterr()
        return subprocess.CompletedProcess(args, end.value.code or 0, output, errors)

    return run


def test_help_fits_a_screen_and_names_every_command(root, typed):
    done = typed("--help", cwd=root)
    assert done.returncode == 0 and len(done.stdout.splitlines()) <= 34
    assert all(word in done.stdout for word in ("build", "collect", "grade", "lab", "feedback"))


@taking_turns(1, LONG)
def test_grade_prints_json_records_for_a_folder(root, tmp_path):
    file = tmp_path / "sofia" / "07_matmul" / "07_matmul.ipynb"
    file.parent.mkdir(parents=True)
    nb = nbformat.read(root / "course/07_matmul/07_matmul.ipynb", 4)
    for cell in nb.cells:
        if cell.metadata.get("answer") == "local_shapes":
            cell.source = "local_shapes = {'A[I_X, J]': (2, 32)}"
    nbformat.write(nb, file)
    done = grader("grade", tmp_path, "--json", "--seed", 1, cwd=root)
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)
    assert len(records) == 17 and {r["student"] for r in records} == {"sofia"}
    (shapes,) = [r for r in records if r["exercise"] == "local_shapes"]
    assert shapes["mistake"] == "divided_by_all_devices" and shapes["max"] == 2 and shapes["points"] == 0
    assert set(shapes) == {"student", "notebook", "exercise", "points", "max", "mistake", "message"}


BROKEN = {
    "gone.ipynb": (None, "there is no such file or folder"),
    "text.ipynb": ("not json", "not a notebook"),
    "other.ipynb": ('{"a": 1}', "no notebook: it has no list of cells"),
    "empty.ipynb": (nbformat.writes(nbformat.v4.new_notebook()), "none of the course's exercises"),
}


def test_what_cannot_be_graded_is_said_with_status_2(root, tmp_path, typed):
    for name, (content, _) in BROKEN.items():
        if content is not None:
            (tmp_path / name).write_text(content)
    done = typed("grade", *(tmp_path / name for name in BROKEN), cwd=root)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    for name, (_, words) in BROKEN.items():
        assert any(name in line and words in line for line in done.stderr.splitlines())


def test_an_empty_folder_and_a_wrong_place_are_said(root, tmp_path, typed):
    done = typed("grade", tmp_path, cwd=root)
    assert done.returncode == 2 and "no notebook" in done.stderr
    done = typed("grade", cwd=tmp_path)
    assert done.returncode == 2 and "no nbgrader_config.py" in done.stderr


def test_a_wrong_option_is_status_2(root, typed):
    assert typed("grade", "--nope", cwd=root).returncode == 2


def test_where_names_the_file_of_an_exercise_and_refuses_a_name_that_is_none(root, typed):
    done = typed("where", "case3", cwd=root)
    assert done.returncode == 0 and "grader/lessons/matmul/" in done.stdout and "07_matmul.md" in done.stdout
    done = typed("where", "nothing_of_that_name", cwd=root)
    assert done.returncode == 2 and "nothing_of_that_name" in done.stderr and "Traceback" not in done.stderr


WRONG = {
    "collect a file that is not there": (
        ["collect", "{folder}/none.zip", "07_matmul"],
        "none.zip: there is no such file",
    ),
    "collect what is no zip": (["collect", "{folder}/text.zip", "07_matmul"], "text.zip is no zip, or a damaged one"),
    "collect an empty zip": (["collect", "{folder}/empty.zip", "07_matmul"], "no files in empty.zip"),
    "collect for an unknown lesson": (["collect", "{folder}/ada.zip", "99_none"], "no lesson 99_none"),
    "collect for a folder that is no lesson": (["collect", "{folder}/ada.zip", ".."], "no lesson .."),
    "check an unknown lesson": (["build", "99_none", "--check"], "no lesson 99_none"),
}


@pytest.mark.parametrize("arguments, words", WRONG.values(), ids=WRONG)
def test_wrong_input_is_one_line_and_nothing_is_written(root, tmp_path, arguments, words, typed):
    (tmp_path / "text.zip").write_text("hello")
    (tmp_path / "empty.zip").write_bytes(packed({}))
    (tmp_path / "ada.zip").write_bytes(packed({"ada/x.ipynb": b"{}"}))
    before = sorted((root / "submitted").rglob("*"))
    done = typed(*(word.format(folder=tmp_path) for word in arguments), cwd=root)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert words in line
    assert sorted((root / "submitted").rglob("*")) == before


@pytest.mark.parametrize(
    "command",
    [
        "coverage",
        "feedback",
        "report",
        "new 22_mine center",
        "lab",
        "where case3",
        "build --check",
        "grade x.ipynb --json",
    ],
)
def test_outside_the_course_every_command_says_so_and_no_more(tmp_path, command, typed):
    done = typed(*command.split(), cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and "no nbgrader_config.py" in done.stderr


def test_feedback_before_anything_is_graded_says_so(root, tmp_path, typed):
    shutil.copy(root / "nbgrader_config.py", tmp_path)
    done = typed("feedback", cwd=tmp_path)
    assert done.returncode == 2 and "Nothing is graded yet" in done.stderr
