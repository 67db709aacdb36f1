"""Every command is documented, and does what it says when it is typed."""

import re
import zipfile

import mini
import pytest
from typer.testing import CliRunner

from grader import cli
from grader.classroom.book import website
from grader.classroom.commands import app

COMMANDS = [command.callback.__name__ for part in (app, cli.students) for command in part.registered_commands]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_in_the_documentation(root, name):
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "book").glob("*.md"))]
    assert [
        page.name for page in pages if re.search(rf"`(grader|make) {name}\b|^grader {name}\b", page.read_text(), re.M)
    ]


@pytest.fixture
def typed(tmp_path, monkeypatch):
    """Types a command in a small course of its own, and returns what it says."""
    course = mini.built_course(tmp_path / "course")
    monkeypatch.chdir(course)

    def run(*words):
        done = CliRunner().invoke(app, list(words))
        assert done.exit_code == 0, done.output
        return course, done.output

    return run


def test_build_and_work(typed):
    course, said = typed("build", mini.LESSON)
    assert f"built course/{mini.LESSON}/{mini.LESSON}.ipynb" in said
    _, said = typed("work")
    assert said and (course / "work" / mini.LESSON / f"{mini.LESSON}.ipynb").exists()
    _, said = typed("work")
    assert said == "work/ has all lessons, as they are in course/.\n"


def test_new(typed):
    course, said = typed("new", "22_mine", "center", "--form", "table")
    assert "wrote grader/lessons/mine/center.py" in said and "prove it: `grader prove center`" in said
    assert (course / "grader" / "lessons" / "mine" / "center.py").exists()


def test_gradescope(typed):
    course, said = typed("gradescope", mini.LESSON)
    file = f"dist/gradescope-{mini.LESSON}.zip"
    assert f"wrote {file}: upload it" in said
    with zipfile.ZipFile(course / file) as packed:
        assert {"setup.sh", "run_autograder"} <= {*packed.namelist()}


def test_book(typed, monkeypatch):
    built = []
    monkeypatch.setattr(website, "build_book", lambda root, target: built.append(target))
    course, said = typed("book")
    assert built == [course / "dist" / "book"] and said == "built dist/book/index.html\n"


def test_chips(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["grader", "chips"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code in (0, None) and "v5e:2x4" in capsys.readouterr().out
