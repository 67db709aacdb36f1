"""The book: pages without solutions, links between lessons, and a website that anybody can read."""

import html
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import grader
from grader.classroom.book.errors import errors_page
from grader.classroom.book.lesson import linked, page
from grader.classroom.book.programs import WATCHED
from grader.classroom.book.website import lay_out
from grader.replays.page import DATA, PLAYER
from grader.wording.errors import ERROR_WORDS

OTHERS = {"04": "04_automatic", "09": "09_cost"}
SEEN = ("index", "course/07_matmul/07_matmul", "book/watch", "book/glossary", "book/errors", "book/reference")


@pytest.fixture(scope="module")
def source(root, tmp_path_factory) -> Path:
    """The sources of all pages of the real course."""
    folder = tmp_path_factory.mktemp("book") / "source"
    lay_out(root, folder)
    return folder


def solution_lines(root: Path) -> set[str]:
    """The lines of all model solutions that stand nowhere in what students get."""
    solved = "\n".join(file.read_text() for file in root.glob("solutions/*/*.md"))
    released = {line.strip() for file in root.glob("course/*/*.md") for line in file.read_text().splitlines()}
    parts = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", solved, re.DOTALL)
    lines = {line.strip() for part in parts for line in part.splitlines()}
    return {line for line in lines - released if len(line) > 24}


def test_no_page_has_a_model_solution(root, source):
    lines = solution_lines(root)
    assert len(lines) > 500
    for notebook in source.rglob("*.ipynb"):
        code = "\n".join(cell.source for cell in nbformat.read(notebook, 4).cells)
        assert "BEGIN SOLUTION" not in code
        assert {line.strip() for line in code.splitlines()} & lines == set()


def test_worked_examples_have_their_outputs_and_checks_have_none(source):
    cells = nbformat.read(source / "course/07_matmul/07_matmul.ipynb", 4).cells
    checks = [cell for cell in cells if cell.source.startswith("check(")]
    shown = [o.get("data", {}) for cell in cells for o in cell.get("outputs", [])]
    pictures = [data["text/html"] for data in shown if "<svg" in data.get("text/html", "")]
    assert len(checks) >= 15 and not any(cell.outputs for cell in checks)
    assert pictures and all(re.search('aria-label="[^"]*device', picture) for picture in pictures)
    assert not any("image/png" in data for data in shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("as in lesson 09.", "as in [lesson 09](../09_cost/09_cost.ipynb)."),
        (
            "lessons 04 to\n09",
            "lessons [04](../04_automatic/04_automatic.ipynb) to\n[09](../09_cost/09_cost.ipynb)",
        ),
        ("lesson 16 is not written", "lesson 16 is not written"),
        ("`lesson 09`, [lesson 09](there)", "`lesson 09`, [lesson 09](there)"),
        ("<details>Lesson 09</details>", '<details><a href="../09_cost/09_cost.html">Lesson 09</a></details>'),
        ("## Lesson 09", "## Lesson 09"),
    ],
)
def test_a_lesson_that_is_spoken_of_is_a_link(text, shown):
    assert linked(text, OTHERS) == shown


def test_what_an_exercise_costs_stands_below_its_heading():
    heading = "### Exercise `case3` · core · 4 points · 8 minutes · ●●○\n\nMultiply."
    nb = page(new_notebook(cells=[new_markdown_cell(heading)]), new_notebook(), {})
    assert nb.cells[0].source == "### Exercise `case3`\n\n{.meta}\ncore · 4 points · 8 minutes · ●●○\n\nMultiply."


def test_the_questions_that_are_drawn_anew_have_no_answers():
    nb = new_notebook(cells=[new_code_cell("review.check(x)", outputs=[nbformat.v4.new_output("stream", text="1. a")])])
    assert page(nb, new_notebook(), {}).cells[0].outputs == []


def test_every_meaning_of_an_error_is_told_without_its_pattern():
    shown = errors_page()
    assert [words for words in ERROR_WORDS.values() if words.replace(" | ", " ") not in shown] == []
    texts = "".join(re.findall(r"^(.*)\n: ", shown, re.MULTILINE))
    assert "`Contracting dimensions are sharded`" in texts and not re.search(r"\.\*|\\|\(\w+\|", texts)


def test_every_program_of_the_page_is_watched_and_one_script_draws_them(source):
    shown = (source / "book" / "watch.md").read_text()
    assert "<!--" not in shown and shown.count(DATA) == len(WATCHED) and shown.count(PLAYER) == 1
    assert "devices 1, 2, 3 never come there" in shown


def test_the_reference_has_every_function_of_the_grader(root):
    named = re.findall(r"autofunction:: (\w+)", (root / "book/reference.md").read_text())
    assert sorted(named) == sorted(set(grader.__all__) - {"draw"})


def test_a_page_needs_no_first_cell_and_no_links_of_a_notebook(source):
    for file in source.glob("course/*/*.ipynb"):
        text = "\n".join(cell.source for cell in nbformat.read(file, 4).cells)
        assert "index.ipynb" not in text and "Run this cell first" not in text, file


def test_what_the_glossary_says_of_jax_is_there(root):
    import jax
    import jax.sharding

    for name in sorted(set(re.findall(r"`jax\.([\w.]+)(?:\(\))?`", (root / "book/glossary.md").read_text()))):
        place = jax
        for part in name.split("."):
            place = getattr(place, part)


@pytest.fixture(scope="module")
def website(root, tmp_path_factory) -> Path:
    """The built book."""
    from grader.classroom.book.website import build_book

    target = tmp_path_factory.mktemp("book") / "html"
    build_book(root, target)
    return target


@pytest.mark.slow
def test_the_website_has_no_model_solution_and_needs_no_other_site(root, website):
    code = {re.sub(r"\s", "", line) for line in solution_lines(root)}
    for file in website.rglob("*.html"):
        text = file.read_text()
        assert "BEGIN SOLUTION" not in text
        shown = html.unescape(re.sub(r"<[^>]*>", "", text))
        assert {re.sub(r"\s", "", line) for line in shown.splitlines()} & code == set()
        assert re.findall(r"<(?:script|img)[^>]* src=\"(?:https?:)?//[^\"]*", text) == []


@pytest.mark.slow
@pytest.mark.needs("browser")
@pytest.mark.parametrize(("theme", "wide"), [("light", 1440), ("dark", 390)])
def test_everybody_can_read_it_on_a_wide_screen_and_a_narrow_one(website, theme, wide):
    import labs
    from axe_playwright_python.sync_playwright import Axe

    with labs.chromium() as browser:
        window = browser.new_page(viewport={"width": wide, "height": 900}, color_scheme=theme)
        asked = []
        window.on("request", lambda request: asked.append(request.url))
        for name in SEEN:
            window.goto((website / f"{name}.html").as_uri())
            found = Axe().run(window).response["violations"]
            assert [(name, f["id"]) for f in found if f["impact"] in ("serious", "critical")] == []
            assert window.evaluate("document.documentElement.scrollWidth") <= wide, name
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
