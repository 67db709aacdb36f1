"""The frame of a lesson: its first cell works wherever it is opened, and its links lead on."""

import ast
import os
import re
import subprocess
import sys

import jupytext
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from grader.classroom.course.build import lessons, pair
from grader.classroom.course.frame import bare, fetching_cell, framed, titles, without_links
from grader.classroom.course.published import Published
from grader.classroom.course.work import merged
from grader.classroom.runs.run import code

NOWHERE = Published("", "v1.0")
GITHUB = Published("owner/name", "v1.0")
ORDER = {"01_one": "01 · One", "02_two": "02 · Two", "03_three": "03 · Three"}
OURS = "def welcome(version): print('8 devices, version', version)\n"
NOTEBOOK = """import sys
for cell in sys.argv[1:]:
    try:
        exec(cell, globals())
    except Exception as error:  # as IPython shows it
        sys.exit("".join(error._render_traceback_()))
"""
STRANGERS = "class Homework: pass\n"
PIP = """import sys
print("pip was asked:", *sys.argv[1:], file=open("asked", "a"))
{}
"""


@pytest.fixture
def lesson():
    cells = [new_markdown_cell("# 02 · Two\n\nOn two."), new_code_cell("two = 2"), new_markdown_cell("The end.")]
    for k, cell in enumerate(cells):
        cell.id = f"02-{k:03}"
    return new_notebook(cells=cells)


@pytest.fixture
def place(tmp_path):
    """A machine with no package but those that a test puts there."""

    def put(module, text, file="__init__.py"):
        (tmp_path / module).mkdir()
        (tmp_path / module / "__init__.py").touch()
        (tmp_path / module / file).write_text(text)

    def run(nb, times=1):
        cells = [nb.cells[1].source] * times + ["print('and on')"]
        return subprocess.run(
            [sys.executable, "-S", "-c", NOTEBOOK, *cells],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)},
            text=True,
            capture_output=True,
        )

    put("google", "")
    (tmp_path / "google" / "colab.py").touch()
    run.put, run.folder = put, tmp_path
    return run


def stopped(done):
    """What a cell says that ends the run in a sentence."""
    assert done.returncode == 1 and "Traceback" not in done.stderr and "and on" not in done.stdout
    return done.stderr


@pytest.mark.parametrize("where", [NOWHERE, GITHUB])
def test_the_first_cell_finds_the_tools_and_installs_nothing(lesson, place, where):
    place.put("grader", OURS)
    place.put("pip", PIP, "__main__.py")
    done = place(framed(lesson, "02_two", ORDER, where), times=2)
    assert done.stdout == "8 devices, version 1.0\n" * 2 + "and on\n", done.stderr
    assert not (place.folder / "asked").exists()


def test_the_first_cell_installs_the_lessons_own_version_once(lesson, place):
    there = str(place.folder / "grader")
    install = f"import os; os.mkdir({there!r}); open({there!r} + '/__init__.py', 'w').write({OURS!r})"
    place.put("pip", PIP.format(install), "__main__.py")
    done = place(framed(lesson, "02_two", ORDER, GITHUB), times=2)
    assert done.stdout.splitlines()[1:] == ["8 devices, version 1.0"] * 2 + ["and on"], done.stderr
    asked = (place.folder / "asked").read_text()
    assert asked == "pip was asked: install --quiet git+https://github.com/owner/name@v1.0\n"


def test_where_nothing_can_be_installed_a_sentence_says_what_to_do(lesson, place):
    place.put("pip", PIP.format("sys.exit(1)"), "__main__.py")
    assert "Is this machine online" in stopped(place(framed(lesson, "02_two", ORDER, GITHUB)))


def test_pip_is_not_let_change_a_platforms_jax_and_the_oldest_that_does_is_named(lesson, place, root):
    place.put("jax-0.6.0.dist-info", "", "METADATA")
    (place.folder / "jax-0.6.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.6.0\n")
    place.put("pip", PIP.format("sys.exit(1)"), "__main__.py")
    said = stopped(place(framed(lesson, "02_two", ORDER, GITHUB)))
    oldest = re.search(r'"jax>=([\d.]+)"', (root / "pyproject.toml").read_text())[1]
    assert f"JAX {oldest} or newer (here: jax==0.6.0)" in said
    assert (place.folder / "asked").read_text().endswith("@v1.0 jax==0.6.0\n")


def test_where_the_course_is_not_published_a_sentence_says_what_to_type(lesson, place):
    place.put("pip", PIP, "__main__.py")
    assert "type `make lab`" in stopped(place(framed(lesson, "02_two", ORDER, NOWHERE)))
    assert not (place.folder / "asked").exists()


@pytest.mark.parametrize("where", [NOWHERE, GITHUB])
def test_a_strangers_grader_is_told_from_ours(lesson, place, where):
    place.put("grader", STRANGERS)
    place.put("pip", PIP, "__main__.py")
    assert "%pip uninstall -y grader" in stopped(place(framed(lesson, "02_two", ORDER, where)))
    assert not (place.folder / "asked").exists()


def test_a_lesson_leads_to_its_neighbours_and_to_all_lessons(lesson):
    nb = framed(lesson, "02_two", ORDER, NOWHERE)
    before, after = "[← 01 · One](../01_one/01_one.ipynb)", "[03 · Three →](../03_three/03_three.ipynb)"
    links = f"{before} · [all lessons](../index.ipynb) · {after}"
    assert nb.cells[0].source == f"# 02 · Two\n\n{links}<br>\nAbout 5 minutes.\n\nOn two."
    assert [cell.id for cell in nb.cells] == ["02-000", "02-setup", "02-001", "02-002", "02-end"]
    assert nb.cells[-1].source == links
    assert "←" not in framed(lesson, "01_one", ORDER, NOWHERE).cells[-1].source
    assert "→" not in framed(lesson, "03_three", ORDER, NOWHERE).cells[-1].source


def test_a_published_lesson_opens_in_colab_and_goes_on_there(lesson):
    nb = framed(lesson, "02_two", ORDER, GITHUB)
    for url in (GITHUB.colab("02_two"), GITHUB.kaggle("02_two"), GITHUB.codespaces, GITHUB.download("02_two")):
        assert f"]({url})" in nb.cells[0].source
    assert "Save a copy in Drive" in nb.cells[0].source
    assert f"[03 · Three →]({GITHUB.colab('03_three')})" in nb.cells[-1].source


@pytest.mark.parametrize("where", [NOWHERE, GITHUB])
def test_what_an_author_saves_in_a_notebook_is_not_framed_twice(lesson, where):
    nb = framed(lesson, "02_two", ORDER, where)
    saved = jupytext.reads(jupytext.writes(nb, fmt="md:myst"), fmt="md:myst")
    assert [cell.source for cell in bare(saved).cells] == [cell.source for cell in lesson.cells]


def test_every_lesson_has_a_frame_and_a_short_title(root):
    sources = lessons(root)
    assert len(titles(sources)) == len(sources) and all(len(title) < 45 for title in titles(sources).values())
    for source in sources:
        cells = nbformat.read(source.with_suffix(".ipynb"), 4).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        assert code[0].id.endswith("-setup") and cells[-1].id.endswith("-end")
        assert without_links(cells[0].source) != cells[0].source


def test_the_frame_comes_into_an_older_notebook(lesson):
    mine, new = nbformat.from_dict(lesson), framed(lesson, "02_two", ORDER, NOWHERE)
    mine.cells[1].source += "\nmine = 3"
    mine.cells[0].source += "\n\nMy notes."
    after = merged(mine, lesson, new).cells
    assert [cell.id for cell in after] == ["02-000", "02-setup", "02-001", "02-002", "02-end"]
    assert after[0].source == "# 02 · Two\n\nOn two.\n\nMy notes."
    assert after[2].source == "two = 2\nmine = 3"
    assert merged(lesson, lesson, new).cells == new.cells


def test_a_later_version_replaces_the_first_cell(lesson):
    base, new = (framed(lesson, "02_two", ORDER, Published("owner/name", tag)) for tag in ("v1.0", "v1.1"))
    assert merged(base, base, new).cells == new.cells


def test_stored_outputs_stay_when_only_the_frame_changes(tmp_path, root, lesson):
    import mini

    source = mini.make_course(tmp_path) / "solutions" / mini.LESSON / f"{mini.LESSON}.md"
    nb = nbformat.read(pair(source), 4)
    k = next(k for k, cell in enumerate(nb.cells) if cell.id == "01-001")
    nb.cells[k].outputs = [nbformat.v4.new_output("stream", text="kept")]
    nbformat.write(nb, source.with_suffix(".ipynb"))
    settings = tmp_path / "pyproject.toml"
    settings.write_text(settings.read_text().replace('repository = ""', 'repository = "owner/name"'))
    after = nbformat.read(pair(source), 4).cells
    assert "owner/name" in after[k - 1].source and after[k].outputs == nb.cells[k].outputs


@pytest.mark.parametrize(
    ("behind", "end"),
    [
        (["The bill", "What to remember"], "“The bill”"),
        (["You may see this elsewhere", "What to remember"], "“What to remember”"),
        ([], "what follows"),
    ],
)
def test_a_part_outside_the_core_says_where_the_core_goes_on(behind, end):
    def part(number, kind):
        heading = f"## {number} · Title\n\nText.\n\n### Exercise `case3` · {kind} · 4 points · 8 minutes · ●●○"
        marks = {"grade_id": f"answer_{number}", "grade": False}, {"grade_id": f"check_{number}", "grade": True}
        return [new_markdown_cell(heading), *(new_code_cell("...", metadata={"nbgrader": mark}) for mark in marks)]

    kinds = ("core", "stretch", "core", "stretch")
    parts = [cell for k, kind in enumerate(kinds, 1) for cell in part(k, kind)]
    questions = new_markdown_cell("## Before we begin: three questions")
    others = [new_markdown_cell(f"## {heading}\n\nText.") for heading in behind]
    lesson = new_notebook(cells=[new_markdown_cell("# 02 · Two"), new_code_cell("two = 2"), questions, *parts, *others])
    shown = framed(lesson, "02_two", ORDER, NOWHERE)
    said = [re.findall(r"the core, (.*)\.\*", cell.source) for cell in shown.cells if cell.source.startswith("## ")]
    without = "leave this part out, cells and all, and go on with"
    assert said == [[], [], [f"{without} part 3"], [], [f"{without} {end}"], *([] for _ in behind)]
    assert [cell.source for cell in bare(shown).cells] == [cell.source for cell in lesson.cells]


def test_a_notebook_that_installs_from_an_address_is_run_as_the_lesson_is(lesson):
    """Its first cell is another one, which is no code of the student's."""
    first = next(cell for cell in framed(lesson, "02_two", ORDER, NOWHERE).cells if cell.cell_type == "code")
    examples = {first.source}
    ours = code(nbformat.from_dict({"cells": [first]}), examples)
    theirs = fetching_cell(first, "https://example.org/a.whl", "a.whl", "0" * 64, "0.1.0")
    assert "urllib" in theirs.source and ast.parse(theirs.source)
    assert code(nbformat.from_dict({"cells": [theirs]}), examples) == ours
