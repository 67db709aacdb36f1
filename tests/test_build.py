"""solutions/ -> course/: the same bytes every time, and no solution among them."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import jupytext
import mini
import nbformat
import pytest

from grader.classroom.build import build, execute, lessons, pair, stale
from grader.classroom.notebook import checks, solution_lines
from grader.lessons import find


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    root = mini.make_course(tmp_path_factory.mktemp("course"))
    build(root)
    return root


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_building_twice_changes_no_byte(course):
    before = files(course / "course") | files(course / "solutions")
    build(course)
    assert files(course / "course") | files(course / "solutions") == before


def test_another_folder_and_gradebook_build_the_same_bytes(course, tmp_path):
    build(mini.make_course(tmp_path))
    assert files(tmp_path / "course") == files(course / "course")


def test_the_course_in_the_repository_is_what_its_solutions_build(root):
    assert stale(root) == []


def test_stale_names_what_was_touched(course, tmp_path):
    build(mini.make_course(tmp_path))
    with (tmp_path / "course" / mini.LESSON / f"{mini.LESSON}.md").open("a") as file:
        file.write("An edit in the wrong place.\n")
    assert stale(tmp_path) == [f"course/{mini.LESSON}/{mini.LESSON}.md"]


def test_the_release_has_nothing_but_the_students_files(course):
    assert list(files(course / "course")) == [f"{mini.LESSON}/{mini.LESSON}.{kind}" for kind in ("ipynb", "md")]


def test_cells_are_marked_for_nbgrader(course):
    nb = mini.released(course)
    assert checks(nb) == ["block_matmul", "case3"]
    assert [cell.id for cell in nb.cells] == [f"01-{k:03}" for k in range(len(nb.cells))]
    check = nb.cells[mini.position(nb, "check_case3")]
    answer = nb.cells[mini.position(nb, "answer_case3")]
    assert check.metadata.nbgrader.points == find("case3").points
    assert (check.metadata.nbgrader.grade, check.metadata.nbgrader.locked) == (True, True)
    assert (answer.metadata.nbgrader.solution, answer.metadata.nbgrader.locked) == (True, False)
    assert answer.source == "def case3(a, b, *, mesh):\n    ..."
    assert all(not cell.outputs and cell.execution_count is None for cell in nb.cells if cell.cell_type == "code")


def test_check_cells_of_the_solution_are_compared_by_nbval(course):
    nb = mini.solved(course)
    assert nb.cells[mini.position(nb, "check_case3")].metadata.tags == ["nbval-check-output"]


def test_the_students_text_is_the_released_notebook(course):
    text = jupytext.read(course / "course" / mini.LESSON / f"{mini.LESSON}.md")
    assert [c.source for c in text.cells] == [c.source for c in mini.released(course).cells]


def test_stored_outputs_stay_until_their_cell_changes(tmp_path):
    (source,) = lessons(mini.make_course(tmp_path))
    notebook = pair(source)
    execute(notebook)
    stored = notebook.read_bytes()
    assert b"4 of 4 points" in stored
    assert pair(source).read_bytes() == stored
    execute(notebook)
    assert notebook.read_bytes() == stored, "running again stores the same outputs"
    source.write_text(source.read_text().replace("add_the_parts", "all_parts"))
    nb = nbformat.read(pair(source), 4)
    assert nb.cells[mini.position(nb, "answer_case3")].outputs == []
    assert nb.cells[mini.position(nb, "check_block_matmul")].outputs


# No line of a solution may reach a student, in the course or in the wheel.


@pytest.fixture(scope="module")
def secret_lines(root) -> list[str]:
    """The lines of all solutions which stand nowhere else in their lesson."""
    secret = []
    for source in lessons(root):
        nb = jupytext.read(source)
        shown = "\n".join(re.sub(r"### BEGIN SOLUTION\n.*?### END SOLUTION", "", c.source, flags=re.S) for c in nb.cells)
        secret += [line for line in solution_lines(nb) if line not in shown]
    assert len(secret) > 40
    return secret


def test_no_solution_line_stands_in_the_course(root, secret_lines):
    for path in (root / "course").rglob("*"):
        if path.is_file():
            text = path.read_text()
            assert "BEGIN SOLUTION" not in text
            assert [line for line in secret_lines if line in text] == [], path


def test_no_solution_line_stands_in_the_wheel(root, secret_lines, tmp_path):
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
                   cwd=root, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            assert not name.startswith(("solutions", "tests"))
            text = archive.read(name).decode()
            assert [line for line in secret_lines if line in text] == [], name


def test_the_leak_test_would_find_a_leak(course):
    lines = list(solution_lines(mini.solved(course)))
    assert 'return jax.lax.psum(a_columns @ b_rows, "x")' in lines
    source = (course / "solutions" / mini.LESSON / f"{mini.LESSON}.md").read_text()
    assert all(line in source for line in lines)
