"""What README.md, CONTRIBUTING.md and the book's pages tell somebody to type works."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "book/students.md", "book/instructors.md")
TEXTS = {name: (ROOT / name).read_text() for name in PAGES}
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", "\n".join(TEXTS.values()), re.DOTALL | re.MULTILINE)
PYTHON = [block for language, block in BLOCKS if language == "python" and "Exercise(" not in block]
TYPED = sorted(
    {line.partition("  #")[0].strip() for language, block in BLOCKS if not language for line in block.splitlines()}
    | {code for text in TEXTS.values() for code in re.findall(r"(?<!`)`((?:make|grader) [a-z][^`]*)`", text)}
)


def starting(word: str) -> list[str]:
    return [line for line in TYPED if line.split()[0] == word]


@pytest.mark.parametrize("block", PYTHON)
def test_python_runs(block, tmp_path, monkeypatch, capsys):
    (tmp_path / "script.py").write_text("import sys; print('process', sys.argv[1])")
    monkeypatch.chdir(tmp_path)
    mesh = jax.make_mesh((8,), ("x",))
    array = jax.device_put(jnp.arange(16.0), jax.NamedSharding(mesh, jax.P("x")))
    given = {
        "fn": jax.jit(jnp.sum),
        "args": (array,),
        "array": array,
        "gradients": {"w": 8 * array},
        "right": {"w": array},
    }
    shown = []
    for line in filter(None, block.splitlines()):
        if line.startswith("grader."):
            shown.append(repr(eval(line, given)))
        else:
            exec(line, given)
    assert any("4 processes ended well" in text for text in shown) and any("8" in text for text in shown)


def test_the_exercise_of_contributing_is_the_one_that_grader_new_writes():
    """It is solved, and its mistakes are made, in tests/classroom/test_new.py."""
    (block,) = [block for language, block in BLOCKS if language == "python" and "Exercise(" in block]
    template = ROOT / "grader" / "classroom" / "course" / "beginnings" / "program.py.txt"
    assert template.read_text().replace("$name", "row_sum").endswith(f"import annotations\n\n{block}")


@pytest.mark.parametrize("line", starting("make"))
def test_make_knows_the_target(line):
    target = line.split()[1]
    assert re.search(rf"^{target}:.*##", (ROOT / "Makefile").read_text(), re.MULTILINE), target


@pytest.mark.parametrize("line", starting("grader"))
def test_the_command_knows_its_options(line, monkeypatch):
    pytest.importorskip("typer")
    from grader.cli import main

    command = line.split()[1]
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["grader", command, "--help"])
    with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    assert [option for option in re.findall(r"--[a-z-]+", line) if option not in out.getvalue()] == []


def test_what_pytest_is_given_is_there():
    paths = [path for line in starting("pytest") for path in re.findall(r"tests/\S+", line)]
    assert paths and [path for path in paths if not (ROOT / path).exists()] == []
    assert {line.split()[0] for line in TYPED} <= {"make", "grader", "pytest"}


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_named_is_there(name):
    """Files and folders that are named by their path."""
    named = {ROOT / path for path in re.findall(r"`((?:grader|tests|solutions|course|book)/[\w/.]+)`", TEXTS[name])}
    linked = {(ROOT / name).parent / path for path in re.findall(r"\]\(([\w./-]+)\)", TEXTS[name])}
    assert linked and [p for p in linked | named if not re.search(r"TOPIC|NN_", str(p)) and not p.exists()] == []


def test_readme_is_a_screen():
    rows = re.compile(r"\| `\d\d_\w+` \|")  # of the lessons' table, one each
    assert len([line for line in TEXTS["README.md"].splitlines() if not rows.match(line)]) <= 43


def test_the_commands_in_readme_are_the_commands_of_its_make():
    """What `make lab`, `make grade` and `make book` run is then tried with them: tests/whole, tests/classroom."""
    for target, command in {"lab": "grader lab", "grade": "grader grade", "book": "grader book"}.items():
        ready = [f"--assume-old={made}" for made in (".venv/.ready", ".cache/course")]
        run = subprocess.run(
            ["make", "--no-print-directory", "--dry-run", *ready, target],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert (
            run.stdout.splitlines()[-1].partition("||")[0].strip() == command
            and f"`make {target}`" in TEXTS["README.md"]
        )
