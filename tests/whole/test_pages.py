"""All vectors in a real browser: as text, output, error and file name, on a feedback page and in Formgrader."""

import json

import labs
import mini
import nbformat
import pages
import pytest
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell
from nbgrader.api import Gradebook
from rota import LABS, taking_turns

from grader.classroom.grading.record import HandIn, record

STUDENT = "mallory"
FILE = "<img src=x onerror=hit(1)>.ipynb"
SHOW = """
import json
vectors = json.loads({0!r})
class Odd:
    def _repr_html_(self): return vectors[0]
    def _repr_mimebundle_(self, **_): return {{"text/html": vectors[0], "image/svg+xml": vectors[0]}}
for vector in vectors: print(vector)
display(Odd())
from IPython.display import HTML
import grader
ours = grader.draw.devices(grader.draw.blocks((4,), jax.P("x"), {{"x": 4}}), vectors[0])._repr_html_()
display(HTML(ours))
for vector in vectors: display(HTML(ours.replace("</svg>", vector + "</svg>")), HTML(vector + ours))
raise type(vectors[0], (Exception,), {{}})("\\n".join(vectors))
"""
WATCH = "window.hits = []; window.hit = x => hits.push(x); alert = confirm = prompt = window.print = window.hit"
pytestmark = pytest.mark.needs("browser")


@pytest.fixture(scope="module")
def graded(course):
    """The small course with one hand-in full of vectors, graded."""
    nb = mini.solved(course)
    nb.cells += [new_markdown_cell(vector) for vector in pages.VECTORS]
    nb.cells += [new_raw_cell(vector) for vector in pages.VECTORS[::4]]
    nb.cells += [new_code_cell(SHOW.format(json.dumps(pages.VECTORS)))]
    for k, cell in enumerate(nb.cells):
        cell.id = f"c{k}"
    file = course / "submitted" / STUDENT / mini.LESSON / FILE
    file.parent.mkdir(parents=True)
    nbformat.write(nb, file)
    row = record(HandIn(course, STUDENT, mini.LESSON))
    assert not row.problem and sum(row.points.values()) == 6
    return course


@pytest.fixture(scope="module")
def browser():
    with labs.chromium() as browser:
        yield browser


def looked_at(browser, address, expected, said=()):
    """Open a page, click every link, unfold everything, and tell what it did: requests, dialogs, scripts, messages."""
    page = browser.new_page()
    asked, told = [], []

    def answer(route):
        if route.request.url.startswith(expected):
            return route.continue_()
        asked.append(route.request.url)
        return route.abort()

    page.route("**/*", answer)
    page.on("dialog", lambda dialog: (told.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: told.append(message.text))
    page.on("popup", lambda popup: told.append(f"opened {popup.url}"))
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_load_state("load")
    page.wait_for_timeout(500)
    before = list(asked)
    addresses = page.evaluate(
        """() => {
            document.querySelectorAll("details").forEach(one => one.open = true);
            const raw = "#notebook-container > :not(.cell):not(:has(.cell))";
            const texts = [...document.querySelectorAll(`.text_cell_render *, ${raw}, ${raw} *`)];
            const links = texts.filter(one => one.tagName === "A" && one.hasAttribute("href"));
            const attributes = texts.flatMap(one => [...one.attributes]);
            const on = attributes.filter(one => /^on|^data-|^style$|^name$/.test(one.name));
            for (const one of texts) for (const kind of ["mouseover", "focus", "toggle", "wheel", "copy", "input"])
                one.dispatchEvent(new Event(kind));
            links.filter(one => !/^(https?|mailto):/.test(one.protocol)).forEach(one => one.click());
            return {links: links.map(one => one.href), on: on.map(one => one.name + "=" + one.value)};
        }"""
    )
    page.wait_for_timeout(300)
    hits = page.evaluate("window.hits")
    page.close()
    return before, addresses, hits, [line for line in told if not line.startswith(tuple(said))]


def test_the_browser_would_tell(browser, tmp_path):
    """A few of the vectors in nbconvert's own page do run, ask for things, and leave what is looked for."""
    few = ("<img src=x onerror", "<a onmouseover", "[x](javascript:", "![x](https:")
    cells = [new_markdown_cell(vector) for vector in pages.VECTORS if vector.startswith(few)]
    plain = HTMLExporter(template_name="classic").from_notebook_node(new_notebook(cells=cells))[0]
    (tmp_path / "plain.html").write_text(plain)
    page = (tmp_path / "plain.html").as_uri()
    asked, found, hits, _ = looked_at(browser, page, page)
    assert hits and any("evil.example" in one for one in asked) and found["on"]


def test_a_feedback_page_runs_nothing_and_asks_for_nothing(graded, browser):
    (page,) = (graded / "feedback" / STUDENT).rglob("*.html")
    asked, found, hits, told = looked_at(browser, page.as_uri(), page.as_uri())
    assert (asked, hits, told) == ([], [], [])
    assert {on for on in found["on"] if not on.startswith("style=text-align")} == set()
    assert len(found["links"]) > 20  # there is something to click on
    assert page.read_text().count("<svg") > 100  # and to look at
    allowed = ("https://", "http://", "mailto:", f"{page.as_uri()}#text-")
    assert [link for link in found["links"] if not link.startswith(allowed)] == []


@pytest.fixture(scope="module")
def formgrader(graded):
    """The address of the hand-in in a real Formgrader."""
    with Gradebook(f"sqlite:///{graded}/gradebook.db") as book:
        number = book.find_submission_notebook(mini.LESSON, mini.LESSON, STUDENT).id
    with labs.running_lab(graded, "--instructor") as address:
        yield f"{address}/formgrader/submissions/{number}/?token=open"


@taking_turns(4, LABS)
def test_formgrader_runs_nothing_of_a_students(formgrader, browser):
    """Its own scripts run; the only thing from elsewhere that it asks for is MathJax, which is kept off the texts."""
    start = formgrader.partition("submissions/")[0]
    own = (start, formgrader.partition("formgrader/")[0] + "static/")
    asked, found, hits, told = looked_at(browser, formgrader, own, said=("Failed to load resource",))
    assert [one for one in asked if "mathjax" not in one] == []
    assert (hits, told) == ([], [])
    assert {on for on in found["on"] if not on.startswith("style=text-align")} == set()
    allowed = ("https://", "http://", "mailto:")
    assert [link for link in found["links"] if not link.startswith(allowed)] == []
