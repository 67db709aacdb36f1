"""What a hand-in shows is text and pictures: nothing that a browser would run gets into a page."""

from __future__ import annotations

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from grader.classroom.grading.display import LEFT_OUT, harmless_outputs, harmless_text
from grader.classroom.grading.page import Page

EVIL = "<script>steal()</script>"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def page(*cells) -> str:
    """The notebook as a feedback page: the part with the cells."""
    nb = new_notebook(cells=list(cells))
    nbformat.validate(nb)
    return Page(template_name="basic").from_notebook_node(nb)[0]


def shown(*outputs) -> str:
    return page(new_code_cell("1", outputs=harmless_outputs(list(outputs))))


@pytest.mark.parametrize(
    "source",
    [
        EVIL,
        "<img src=x onerror=steal()>",
        "<iframe srcdoc='<script>steal()</script>'>",
        "<!--><script>steal()</script>",
        "[click](javascript:steal())",
        "[click](JaVaScRiPt:steal())",
        "<svg/onload=steal()>",
        f"</div>{EVIL}",
        "[x](data:text/html,<script>steal()</script>)",
        "![x](data:image/svg+xml,<svg/onload=steal()>)",
    ],
)
@pytest.mark.parametrize("kind", [new_markdown_cell, new_raw_cell])
def test_html_in_texts_is_shown_and_not_obeyed(source, kind):
    cell = kind(source)
    harmless_text(cell)
    found = page(cell).lower()
    assert "steal()" in found or "steal" not in source
    assert "<script" not in found and "<img src=x" not in found and "<svg" not in found and "<iframe" not in found
    assert 'href="javascript:' not in found and 'href="data:' not in found and 'src="data:' not in found


def test_mathematics_and_comparisons_stay_as_they_are():
    cell = new_markdown_cell("$a < b$ and `x<3`, with P('x') *emphasised*")
    before = cell.source
    harmless_text(cell)
    assert cell.source == before


@pytest.mark.parametrize(
    "data",
    [
        {"text/html": EVIL},
        {"application/javascript": "steal()"},
        {"image/svg+xml": f"<svg>{EVIL}</svg>"},
        {"text/latex": r"$\href{javascript:steal()}{x}$"},
        {"text/markdown": EVIL},
        {"image/png": f'x"/>{EVIL}'},
        {"application/vnd.jupyter.widget-view+json": {"model_id": EVIL}},
        {"text/html": [EVIL]},
        {"image/png": 7},
    ],
)
def test_outputs_that_a_browser_would_run_are_left_out(data):
    for kind in ("display_data", "execute_result"):
        found = shown({"output_type": kind, "data": data, "metadata": {"image/png": {"width": f'1"/>{EVIL}'}}})
        assert "steal()" not in found and LEFT_OUT in found


def test_text_and_pictures_are_kept():
    found = shown(
        {"output_type": "display_data", "data": {"image/png": PIXEL, "text/plain": "<Figure>"}},
        {"output_type": "stream", "name": "stdout", "text": f"hello {EVIL}"},
        {"output_type": "error", "ename": "ValueError", "evalue": EVIL, "traceback": [EVIL, 7]},
    )
    assert PIXEL in found and "hello" in found and EVIL not in found and "&lt;script&gt;" in found


@pytest.mark.parametrize(
    "said",
    [
        None,
        7,
        {},
        ["x", 3, None],
        [{}],
        [{"output_type": "stream", "name": "x", "text": "y"}],
        [{"output_type": EVIL}],
        [{"output_type": "stream", "name": "stdout", "text": 3}],
    ],
)
def test_what_is_no_output_is_told_of_or_left_out(said):
    found = page(new_code_cell("1", outputs=harmless_outputs(said)))
    assert EVIL not in found


def test_a_page_is_the_one_that_nbconvert_makes(root):
    nb = nbformat.read(root / "solutions/02_shardings/02_shardings.ipynb", 4)
    ours, theirs = (exporter().from_notebook_node(nb)[0] for exporter in (Page, HTMLExporter))
    assert 'alt="A picture that this cell shows"' in ours
    assert without_descriptions(ours) == without_descriptions(theirs)


def without_descriptions(page: str) -> str:
    """The page, parsed and written again, without what nbconvert marks for keyboards and for lack of descriptions."""
    parsed = BeautifulSoup(page, "html.parser")
    for element in parsed.find_all(True):
        element.attrs.pop("tabindex", None)
        element.attrs.pop("alt", None)
    return str(parsed)
