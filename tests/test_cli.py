"""The command as a student has it: nothing that only an extra brings can be imported."""

import itertools
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions, requires

import pytest


def of_the_extras(root) -> list[str]:
    """The modules, of those installed here, that the student's install does not bring."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    students = named(project["dependencies"])
    students |= named(requirement for name in students for requirement in requires(name) or ())
    names = named(itertools.chain.from_iterable(project["optional-dependencies"].values())) - students
    return [m for m, packages in packages_distributions().items() if names & {p.lower() for p in packages}]


def named(requirements) -> set[str]:
    """The packages that these requirements name."""
    return {re.match(r"[\w-]+", requirement)[0].lower() for requirement in requirements}


@pytest.fixture
def grader(root, tmp_path):
    """Runs the command in a folder that is no course; processes find no extra, and the classroom in a clone only."""
    (tmp_path / "site").mkdir()
    gone = of_the_extras(root)
    path = {"PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{root}"}

    def run(*arguments, clone=False):
        absent = gone if clone else [*gone, "grader.classroom"]
        (tmp_path / "site" / "sitecustomize.py").write_text(f"import sys\nsys.modules.update(dict.fromkeys({absent}))")
        command = [sys.executable, "-m", "grader.cli", *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, env={**os.environ, **path}, capture_output=True, text=True, timeout=120
        )

    return run


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "script.py"
    file.write_text("import sys\nprint('process', sys.argv[1], 'of', sys.argv[2])\nassert sys.argv[3:] == []\n")
    return file


def test_a_student_can_launch_a_script(grader, script):
    done = grader("launch", "--processes", 2, "--devices", 1, script)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sorted(lines[:2]) == ["0 │ process 0 of 2", "1 │ process 1 of 2"] and lines[2:] == [
        "2 processes ended well."
    ]


def test_a_student_can_see_what_is_done(grader, monkeypatch, tmp_path):
    monkeypatch.setenv("MANY_DEVICES_HOME", str(tmp_path))
    done = grader("progress")
    assert done.returncode == 0 and done.stdout.startswith("Your progress: 0 of "), done.stderr


def test_a_script_that_is_not_there_and_numbers_that_make_no_sense_are_status_2(grader, script):
    done = grader("launch", "nowhere.py")
    assert done.returncode == 2 and done.stderr.startswith("grader: There is no script")
    done = grader("launch", "--processes", 0, script)
    assert done.returncode == 2 and "from 1 to 64" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("launch",), "Missing argument 'SCRIPT'"),
        (("launch", "script.py", "--processes", "many"), "valid integer"),
        (("chips", "--nope"), "--nope"),
        (("progress", "now"), "now"),
        (("certificate", " "), "Whose certificate?"),
        (("certificate", "Ada", "--student", "ada"), "`make grade`"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else "",
)
def test_what_is_typed_wrongly_is_told_in_a_line_with_status_2(grader, arguments, says):
    done = grader(*arguments)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith("grader: ") and says in line


@pytest.mark.parametrize("arguments", [(), ("--help",)], ids=str)
def test_a_student_is_shown_the_commands_that_work_here(grader, arguments):
    done = grader(*arguments)
    assert done.returncode == 0 and "`make grade`" in " ".join(done.stdout.split())
    assert all(command in done.stdout for command in ("launch", "progress", "certificate", "chips"))


@pytest.mark.parametrize("arguments", [("grade",), ("where", "case3"), ("grade", "--help")], ids=" ".join)
def test_an_instructors_command_says_in_a_line_what_it_needs(grader, arguments):
    needs(grader(*arguments))


def test_in_a_clone_where_only_the_students_side_is_installed_it_does_too(grader):
    needs(grader("build", clone=True))
    needs(grader("certificate", "Ada", "--student", "ada", clone=True))


def needs(done):
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and "clone" in line and "`make grade`" in line
