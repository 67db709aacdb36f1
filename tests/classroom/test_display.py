"""What a hand-in shows is text and pictures: nothing that a browser would run gets into a page."""

from __future__ import annotations

import re

import nbformat
import pages
import pytest
from bs4 import BeautifulSoup
from fuzzing import within
from jinja2 import DictLoader
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from grader.classroom.grading import filters
from grader.classroom.grading.display import LEFT_OUT, MORE, harmless_outputs
from grader.classroom.grading.page import FILTERS, HEAD, Page
from grader.classroom.grading.styles import with_used_styles

EVIL = "<script>steal()</script>"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def rendered(source: str, **cell) -> str:
    """A text as Formgrader's and the feedback page's filter renders it."""
    return filters.markdown2html({"cell": cell, "resources": {}}, source)


def as_html(source: str) -> str:
    """A raw cell as that filter renders it."""
    return filters.clean_html({}, source)


def shown(*outputs) -> str:
    return pages.page(new_code_cell("1", outputs=harmless_outputs(list(outputs))))


@pytest.mark.parametrize("kind", [rendered, as_html])
def test_nothing_but_what_is_allowed_comes_out_of_a_text(kind):
    assert len(pages.VECTORS) > 500
    found = {vector: list(pages.foreign(kind(vector))) for vector in pages.VECTORS}
    assert {vector: what for vector, what in found.items() if what} == {}


def test_what_an_attack_would_bring_is_seen_here():
    seen = [next(pages.foreign(vector), None) for vector in pages.VECTORS if vector.startswith("<")]
    assert sum(map(bool, seen)) > 0.9 * len(seen)


@pytest.mark.parametrize(
    "source, kept",
    [
        ("| a |\n|:-:|\n| 1 |", '<td style="text-align:center">1</td>'),
        ("```python\nx = 1\n```", '<span class="mi">1</span>'),
        ("<details><summary>Hint</summary>\n\nThink of `a`.\n\n</details>", "<details><summary>Hint</summary>"),
        ("# A b", '<h1 id="text-A-b">A b<a class="anchor-link" href="#text-A-b"'),
        ("[x](https://docs.jax.dev)", '<a href="https://docs.jax.dev" rel="noopener noreferrer">x</a>'),
        ("[x](mailto:a@b.c)", 'href="mailto:a@b.c"'),
        ("$a < b$ and `x<3`", "<code>$a &lt; b$</code> and <code>x&lt;3</code>"),
        ("$$\n\\frac{1}{2}\n$$", "<pre>$$\n\\frac{1}{2}\n$$</pre>"),
        ("P<sub>x</sub> <em>cut</em>", "P<sub>x</sub> <em>cut</em>"),
        (f"![a](data:image/png;base64,{PIXEL})", f'src="data:image/png;base64,{PIXEL}"'),
    ],
)
def test_what_a_lesson_uses_stays(source, kept):
    assert kept in rendered(source)


def test_only_pictures_among_attachments_are_shown():
    bundle = {
        "good.png": {"image/png": PIXEL},
        "huge.png": {"image/png": pages.png(40_000, 40_000)},
        "svg": {"image/svg+xml": "PHN2Zy8+"},
        "liar": {"image/png": "PHN2Zy8+"},
        "page": {'text/html" onerror="hit(1)': "eA=="},
        "odd": [1],
        "empty": {},
    }
    html = rendered(" ".join(f"![x](attachment:{name})" for name in (*bundle, "none")), attachments=bundle)
    assert html.count("<img") == 8 and html.count("src=") == 1 and PIXEL in html
    assert "<img" in rendered("![x](attachment:y)", attachments=["odd"])
    many = {"good.png": {"image/png": PIXEL + "\n" * 3_000_000}}
    assert len(rendered("![x](attachment:good.png)" * 300, attachments=many)) < 2 * filters.MOST_HTML


PATTERNS = [
    r"[",
    r"![",
    r"*",
    r"*a",
    r"_a_",
    r"**_",
    r"**a",
    r"$",
    r"$$",
    r"`",
    r"`a",
    r"<",
    r"<a",
    r"<!--",
    r"<?",
    r">",
    r">-",
    r"[](",
    r"[x](",
    r"[a]:",
    r"~~",
    r"~~a",
    r"http://a",
    r"\\[",
    r"\\(",
    r"\\",
    r"&",
    r"&#",
    r"#",
    r"|a",
    r"a|b",
    r"\begin{a}",
    r"\begin{a}$",
    r"\begin{a}\end{b}",
    r"<a@b.c>",
    r"<b><p>",
    r"<a><b><i>",
    r"[[]",
    r"[]]",
    r"][",
    r"-",
    r"1.",
    r"<div>",
    r"<details>",
    r"<x(",
]
LINES = ["#", "# a", "- a", "1. a", "a\n===", "a\n: b", "|a|b|\n|-|-|", "[a]: b", "```", "~~~", "- [ ] a", "<div>", ""]


@pytest.mark.parametrize(
    "source", [p * (filters.MOST_IN_CELL // len(p)) for p in [*PATTERNS, *(f"{x}\n" for x in LINES)]]
)
def test_a_text_is_rendered_soon(source):
    with within(seconds=3):  # ten times what it takes on a quiet machine
        rendered(source)


@pytest.mark.parametrize("line", ["a", "a" * 990, " ", "\t", "match " * 150, "(", '"""', "import", "f'{"])
def test_code_is_coloured_soon(line):
    for count in (filters.MOST_IN_CELL // (len(line) + 1), filters.MOST_LINES - 1):
        with within(seconds=3):
            filters.highlight_code((f"x{line}\n" * count)[: filters.MOST_IN_CELL])


@pytest.mark.parametrize(
    "source",
    [r"\begin{a}" * 55_000, "<b>" * 200_000, "a" * 1_000_000, " \n" * 100_000],
    ids=["formulas", "tags", "letters", "lines"],
)
def test_too_much_of_it_is_shown_as_it_was_typed(source):
    with within(seconds=3):
        cells = new_markdown_cell(source), new_raw_cell(source), new_code_cell(source)
        found = pages.page(*cells)
    assert list(pages.foreign(filters.highlight_code(source))) == []
    assert found.count("<pre>") >= 3


def test_texts_of_a_notebook_are_bounded_together():
    texts = [new_markdown_cell(f"{k}" + r"\\[" * 3300) for k in range(100)]
    with within(seconds=4):
        assert pages.page(*texts).count("<pre>") == 100


@pytest.mark.parametrize(
    "opened",
    ["<b title='" + '"' * 5_000 + "'>", "".join(f"<b a{k}>" for k in range(700))],
    ids=["a long attribute", "many tags"],
)
@pytest.mark.parametrize("kind", [new_markdown_cell, new_raw_cell])
def test_a_tag_left_open_is_not_repeated_without_end(kind, opened):
    source = ("<p>" + opened + "<p>x" * filters.MOST_IN_CELL)[: filters.MOST_IN_CELL]
    with within(seconds=9):  # three times what it takes on a quiet machine
        assert len(pages.page(kind(source))) < 2 * filters.MOST_GROWN


def test_pictures_of_a_notebook_are_bounded_together():
    pasted = {"a.png": {"image/png": PIXEL + "\n" * 1_000_000}}
    texts = [new_markdown_cell("![x](attachment:a.png)" * 9, attachments=pasted) for _ in range(9)]
    assert filters.MOST_PASTED / 2 < len(pages.page(*texts)) < 1.1 * filters.MOST_PASTED


def test_raw_cells_of_a_notebook_are_bounded_together():
    texts = [new_raw_cell(f"{k}" + "<p>x" * 2400) for k in range(100)]
    with within(seconds=4):
        assert pages.page(*texts).count("<pre>") == 100


def test_too_many_colours_are_left_out():
    with within(seconds=2):
        assert "ansi-red-fg" not in filters.ansi2html("\x1b[31mx" * 40_000)
    assert "ansi-red-fg" in filters.ansi2html("\x1b[31mx")


@pytest.mark.parametrize(
    "data",
    [
        {"text/html": EVIL},
        {"application/javascript": "steal()"},
        {"image/svg+xml": f"<svg>{EVIL}</svg>"},
        {"text/latex": r"$\href{javascript:steal()}{x}$"},
        {"text/markdown": EVIL},
        {"image/png": f'x"/>{EVIL}'},
        {"image/png": "PHN2Zz48c2NyaXB0PnN0ZWFsKCk8L3NjcmlwdD48L3N2Zz4="},
        {"image/jpeg": PIXEL},
        {"image/png": pages.png(40_000, 40_000)},
        {"application/vnd.jupyter.widget-view+json": {"model_id": EVIL}},
        {"text/html": [EVIL]},
        {"image/png": 7},
    ],
)
def test_outputs_that_a_browser_would_run_or_choke_on_are_left_out(data):
    for kind in ("display_data", "execute_result"):
        found = shown({"output_type": kind, "data": data, "metadata": {"image/png": {"width": f'1"/>{EVIL}'}}})
        assert "steal()" not in found and "<img" not in found and LEFT_OUT in found


def test_text_and_pictures_are_kept():
    found = shown(
        {"output_type": "display_data", "data": {"image/png": PIXEL, "text/plain": "<Figure>"}},
        {"output_type": "stream", "name": "stdout", "text": f"hello {EVIL}"},
        {"output_type": "error", "ename": "ValueError", "evalue": EVIL, "traceback": [EVIL, 7]},
    )
    assert PIXEL in found and "hello" in found and EVIL not in found and "&lt;script&gt;" in found


def test_very_much_of_an_output_is_cut():
    line = {"output_type": "stream", "name": "stdout", "text": "x"}
    long, *_ = harmless_outputs([{**line, "text": "x" * 3_000_000 + "END"}])
    assert len(long.text) < 300_000 and MORE in long.text and long.text.endswith("END")
    assert len(harmless_outputs([line] * 50_000)) < 2_000
    (error,) = harmless_outputs([{"output_type": "error", "ename": "E", "evalue": "", "traceback": ["x"] * 50_000}])
    assert len(error.traceback) < 1_000


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
    found = pages.page(new_code_cell("1", outputs=harmless_outputs(said)))
    assert EVIL not in found


def test_a_page_is_the_one_that_nbconvert_makes_with_our_filters(root):
    nb = nbformat.read(root / "solutions/02_shardings/02_shardings.ipynb", 4)
    ours = {"filters": {name: getattr(filters, name) for name in FILTERS}, "extra_loaders": [DictLoader(HEAD)]}
    page, plain = (exporter.from_notebook_node(nb)[0] for exporter in (Page(), HTMLExporter(**ours)))
    assert 'role="img"' in page and "<svg" in page
    assert without_descriptions(page) == without_descriptions(with_used_styles(plain))


def without_descriptions(page: str) -> str:
    """The page, parsed and written again, without what nbconvert marks for keyboards and for lack of descriptions."""
    parsed = BeautifulSoup(page, "html.parser")
    for element in parsed.find_all(True):
        element.attrs.pop("tabindex", None)
        element.attrs.pop("alt", None)
    return str(parsed)


def test_no_page_steers_a_terminal_that_shows_it():
    steering = "\x1b]0;x\x07 \x9b2J \x85"
    nb = new_notebook(cells=[new_markdown_cell(steering), new_code_cell(f"x = '{steering}'")])
    page, _ = Page().from_notebook_node(nb)
    assert not re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", page)
