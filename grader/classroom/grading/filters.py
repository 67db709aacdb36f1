"""nbconvert's filters, replaced by ones that make a stranger's text harmless to a browser, and do it soon.

Feedback pages and Formgrader, whose page may change everybody's marks, use the same ones: nbgrader_config.py names
them. Nothing is looked for in the source: it is rendered, and of the HTML that comes out only what is listed here is
kept. So it does not matter whether a tag, a link or a picture was written as HTML or as markdown, or how it is spelled.
"""

from __future__ import annotations

import functools
import re
from html import escape
from typing import Any

import nh3
from jinja2 import pass_context
from nbconvert.filters import Highlight2HTML, strip_ansi
from nbconvert.filters import ansi2html as with_colours
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.token import STANDARD_TYPES  # type: ignore[import-untyped]

from grader.classroom.grading.display import PICTURES, is_picture

MOST_IN_CELL = 10_000  # characters of a text or of code: up to two seconds; twice as many, four times as long
MOST_IN_NOTEBOOK = 100_000  # characters of all texts of a notebook; a lesson has up to 30,000
MOST_LINES, LONGEST_LINE = 500, 1_000  # of code that gets colours: blank lines and names, too, take a square
MOST_COLOURS = 1_000  # changes of colour in one output: each of them copies what follows it
MOST_HTML = 10_000_000  # characters of what a text becomes, its pictures included
MOST_PASTED = 40_000_000  # the same of all texts of a notebook that have pictures: each may be shown again and again
MOST_GROWN = 100_000  # characters more in HTML that was made whole: a tag left open is repeated in every paragraph

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
TABLE_CELLS = ("td", "th")
KEPT_HTML = {
    *HEADINGS,
    *TABLE_CELLS,
    *("a", "abbr", "b", "br", "code", "del", "em", "i", "img", "kbd", "q", "s", "small", "span", "strong", "sub"),
    *("blockquote", "dd", "details", "div", "dl", "dt", "hr", "li", "ol", "p", "pre", "summary", "sup", "u", "ul"),
    *("table", "tbody", "thead", "tr"),
}
LINK = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
PICTURE_DATA = re.compile(rf"data:({'|'.join(PICTURES)});base64,(.*)", re.DOTALL)
ALIGNED = re.compile(r"text-align:\s*(left|right|center);?")  # as markdown's tables have it
PREFIX = "text-"  # before each name in a text, so that none is a name of the page's own


@pass_context
def markdown2html(context: Any, source: str) -> str:
    """A text cell as HTML; one that would take too long as it was typed."""
    if len(source) > MOST_IN_CELL or _all_texts(context) > MOST_IN_NOTEBOOK:
        return _as_typed(source)
    attachments = context.get("cell", {}).get("attachments")
    if not attachments:
        return _rendered_once(source)
    html, known = _rendered(source, attachments), context.get("resources", {})
    known["characters_pasted"] = known.get("characters_pasted", 0) + len(html)
    return html if known["characters_pasted"] <= MOST_PASTED else _as_typed(source)


@pass_context
def clean_html(context: Any, html: object) -> str:
    """A raw cell, or another piece of HTML, with nothing left in it but what is listed here."""
    text = str(html)
    is_long = len(text) > MOST_IN_CELL or _all_texts(context) > MOST_IN_NOTEBOOK
    return _as_typed(text) if is_long else _cleaned(text, text)


@functools.lru_cache(maxsize=4096)
def highlighted(source: str) -> str:
    """Python code in colours; very much of it, or very long lines, without."""
    lines = source.split("\n")
    if len(source) > MOST_IN_CELL or len(lines) > MOST_LINES or max(map(len, lines)) > LONGEST_LINE:
        return _as_typed(source)
    return str(Highlight2HTML(pygments_lexer="python")(source))


def highlight_code(source: str, language: str | None = None, metadata: Any = None) -> str:
    """A code cell. Language and metadata matter only where it may not be Python."""
    return highlighted(source)


def ansi2html(text: object) -> str:
    """A text output, with its colours where they are not too many."""
    plain = str(text)
    return str(with_colours(strip_ansi(plain) if plain.count("\x1b[") > MOST_COLOURS else plain))


def strip_files_prefix(html: str) -> str:
    """A rendered text as it is: no address of a file is left in it, and nbconvert's filter takes long to look."""
    return html


def _all_texts(context: Any) -> int:
    """Characters in all text cells of the page's notebook, counted once for a page."""
    known = context.get("resources", {})
    if "characters_of_texts" not in known:
        cells = context["nb"].cells if "nb" in context else []
        known["characters_of_texts"] = sum(len(cell.source) for cell in cells if cell.cell_type != "code")
    return int(known["characters_of_texts"])


def _as_typed(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


@functools.lru_cache(maxsize=4096)
def _rendered_once(source: str) -> str:
    return _rendered(source, {})


def _rendered(source: str, attachments: Any) -> str:
    try:
        html = MarkdownWithMath(renderer=_Renderer(escape=False, attachments=_pictures(attachments))).render(source)
    except Exception:  # whatever a text is that its parser trips over, it is somebody's answer
        return _as_typed(source)
    # Formgrader's page has MathJax, whose macros can do more than mathematics: it is kept off texts.
    return (
        f'<div class="tex2jax_ignore">{_cleaned(html, source)}</div>' if len(html) <= MOST_HTML else _as_typed(source)
    )


def _cleaned(html: str, source: str) -> str:
    """HTML with nothing left in it but what is listed here; its source as it was typed where it would grow by far."""
    clean = _cleaner().clean(html)
    return clean if len(clean) <= len(html) + MOST_GROWN else _as_typed(source)


def _pictures(attachments: Any) -> dict[str, Any]:
    """The pictures among a cell's attachments, by name, as addresses that hold them whole."""
    return {
        name: f"data:{kind};base64,{data}"
        for name, bundle in (attachments.items() if isinstance(attachments, dict) else ())
        for kind, data in (bundle.items() if isinstance(bundle, dict) else ())
        if is_picture(kind, data)
    }


class _Renderer(IPythonRenderer):
    """nbconvert's renderer, without what fetches or runs something. Mathematics stays as it was typed."""

    room = MOST_HTML  # for pictures: one attachment can be shown many times

    def block_code(self, code: str, info: str | None = None) -> str:
        return highlighted(code) if info == "python" else _as_typed(code)

    def inline_math(self, body: str) -> str:
        return f"<code>${escape(body)}$</code>"

    def block_math(self, body: str) -> str:
        return f"<pre>$${escape(body)}$$</pre>"

    def latex_environment(self, name: str, body: str) -> str:
        return f"<pre>\\begin{{{escape(name)}}}{escape(body)}\\end{{{escape(name)}}}</pre>"

    def _embed_image_or_attachment(self, src: str) -> str:
        name = src.removeprefix("attachment:")
        picture = src if name == src else str(self.attachments.get(name, ""))
        self.room -= len(picture)
        return picture if self.room >= 0 else ""


@functools.cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=KEPT_HTML,
        attributes={
            "*": {"title"},
            "a": {"href"},
            "img": {"src", "alt"},
            "ol": {"start"},
            "details": {"open"},
            **{cell: {"style"} for cell in TABLE_CELLS},
            **{heading: {"id"} for heading in HEADINGS},
        },
        attribute_filter=_kept,
        allowed_classes={
            "span": set(STANDARD_TYPES.values()),
            "div": {"highlight", "hl-python"},
            "a": {"anchor-link"},
        },
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer",
    )


def _kept(tag: str, attribute: str, value: str) -> str | None:
    """An attribute's value where it is harmless; else None."""
    match attribute:
        case "href" if value.startswith("#"):
            return f"#{PREFIX}{value[1:]}"
        case "href":
            return value if LINK.match(value) else None
        case "src":
            found = PICTURE_DATA.fullmatch(value)
            return value if found and is_picture(found[1], found[2]) else None
        case "style":
            return value if ALIGNED.fullmatch(value) else None
        case "id":
            return PREFIX + value
    return value
