"""What README.md says to type first, really typed in a fresh clone: each command comes to what it promises."""

import os
import re
import subprocess

import labs
import pytest

from grader.classroom.course.build import lessons

NOT_TYPED = {"make test"}  # it would try itself
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def clone(root, tmp_path_factory):
    """A clone of this repository's last commit, with nothing installed."""
    folder = tmp_path_factory.mktemp("fresh") / "course"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(root), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def environment(root, tmp_path_factory):
    """That of somebody who has just opened a terminal: nothing of this run's Python or make."""
    own = ("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "XLA_FLAGS", "JAX_PLATFORMS", "NPROC")
    path = [folder for folder in os.get_exec_path() if not folder.startswith(str(root))]
    home = str(tmp_path_factory.mktemp("home"))
    kept = {name: value for name, value in os.environ.items() if name not in own}
    return {**kept, "PATH": os.pathsep.join(path), "MANY_DEVICES_HOME": home}


@pytest.fixture
def typed(clone, environment):
    """Types a line in the clone, and gives what it printed."""

    def run(line: str) -> str:
        done = subprocess.run(
            line.split(), cwd=clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert done.returncode == 0, done.stdout[-5000:]
        return done.stdout

    return run


def changed(clone) -> str:
    """What git says of the clone: nothing, where a command kept its files to itself."""
    return subprocess.run(["git", "status", "--short"], cwd=clone, capture_output=True, text=True, check=True).stdout


def test_every_command_to_type_first_is_typed_here(root):
    rows = re.findall(r"^\|[^|]*\| `(make \w+)` \|", (root / "README.md").read_text(), re.MULTILINE)
    here = {f"make {name.removeprefix('test_make_')}" for name in globals() if name.startswith("test_make_")}
    assert set(rows) - NOT_TYPED == here


@pytest.mark.needs("walls")
def test_make_grade(clone, typed):
    """Without hand-ins, a class for show: everybody's marks, and a page for each."""
    said = typed("make grade")
    table = (clone / "demo/grades.csv").read_text().splitlines()
    students = {row.split(",")[0] for row in table[1:]}
    pages = list((clone / "demo/feedback").rglob("*.html"))
    assert len(students) > 3 and len(pages) >= len(students)
    assert "feedback/" in said and "Traceback" not in said
    assert changed(clone) == ""


def test_make_course(clone, typed):
    """What is built is what is kept."""
    (clone / ".cache/course").unlink(missing_ok=True)  # built once already, for another command
    typed("make course")
    assert changed(clone) == ""


@pytest.mark.needs("browser")
def test_make_lab(clone, environment):
    """The start page is there, and its first cell runs."""
    with (
        labs.running_lab(clone, command=("make", "lab"), environment=environment, seconds=600) as address,
        labs.chromium() as browser,
    ):
        page = browser.new_page()
        page.goto(f"{address}/?token=open", timeout=60_000)
        page.locator(".jp-Notebook h1", has_text="Many devices in JAX").wait_for(timeout=60_000)
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)
        page.keyboard.press("Shift+Enter")
        page.keyboard.press("Shift+Enter")
        page.get_by_text("8 simulated CPU devices").first.wait_for(timeout=60_000)
    assert changed(clone) == ""


def test_make_book(clone, typed):
    """A page for each lesson, with its pictures."""
    typed("make book")
    pages = {file.stem: file.read_text() for file in (clone / "dist/book").rglob("*.html")}
    assert {source.stem for source in lessons(clone)} <= set(pages)
    assert "<svg xmlns" in pages["07_matmul"]
    assert changed(clone) == ""
