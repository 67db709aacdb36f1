"""The drawings in a hand-in's outputs: SVG that is read as data and written anew, or not shown at all.

A drawing stands in its page (an `img` would not follow the page's colours), where SVG can do whatever HTML can. So
nothing of it is let through: it is read as XML without declarations, entities or comments; each of its elements and
attributes must be one that the course's own pictures have (`grader.draw.svg`), each value of its form; and what is
written are those, with every text escaped. None of them can run, fetch, link, name or restyle anything. Of a film
its strip is shown.
"""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from grader.draw.svg import ALARM, FITTING, MARKED, spoken

MOST_DRAWN = 200_000  # characters of a drawing; the largest in a lesson has 40,000
MOST_NESTED = 5  # elements in one another
NAMESPACE = "http://www.w3.org/2000/svg"
LENGTH = re.compile(r"-?\d{0,5}(\.\d{1,6})?")
LENGTHS = re.compile(r"[-\d., ]{1,200}")
COLOUR = re.compile(rf"none|currentColor|#[0-9a-f]{{6}}|{re.escape(ALARM)}")
ANY = re.compile(r".*", re.DOTALL)
PAINTED = {"fill": COLOUR, "stroke": COLOUR} | dict.fromkeys(
    ("stroke-width", "stroke-opacity", "fill-opacity", "opacity"), LENGTH
)
PERMITTED = {
    "svg": {
        "viewBox": LENGTHS,
        "preserveAspectRatio": re.compile("xMinYMin"),
        "width": LENGTH,
        "height": LENGTH,
        "style": re.compile(re.escape(FITTING)),
        "fill": COLOUR,
        "role": re.compile("img"),
        "aria-label": ANY,
    },
    "g": {"opacity": LENGTH, "visibility": re.compile("hidden")},
    "path": {
        **PAINTED,
        "transform": re.compile(r"translate\([-\d. ]{1,30}\)"),
        "d": re.compile(r"[-MLHVCQz\d. ]*"),
        "stroke-dasharray": LENGTHS,
    },
    "text": {
        **PAINTED,
        **dict.fromkeys(("x", "y", "font-size", "font-weight"), LENGTH),
        "text-anchor": re.compile("middle|end"),
    },
}
# Left out: what moves and lights, and with it the style sheet that it is for.
LIVELY = {("svg", "class"), ("g", "style"), *((shape, mark) for shape in ("path", "text") for mark in MARKED.values())}


def drawing_in(html: object) -> str:
    """The first drawing in HTML, made harmless; "" where there is none, or it is none that the course could draw."""
    if not isinstance(html, str) or len(html) > MOST_DRAWN or "<svg" not in html:
        return ""
    drawing = html[html.find("<svg") : html.find("</svg>") + len("</svg>")]
    if "<!" in drawing or "<?" in drawing:
        return ""
    try:
        return _written(ElementTree.fromstring(drawing), MOST_NESTED)
    except (ElementTree.ParseError, _Foreign):
        return ""


class _Foreign(Exception):
    """It is not one of the course's own drawings."""


def _written(element: Element, deep: int) -> str:
    name = element.tag.removeprefix(f"{{{NAMESPACE}}}")
    if name == element.tag or name not in PERMITTED or not deep:
        raise _Foreign(name)
    attributes = "".join(_attribute(name, *item) for item in element.items() if (name, item[0]) not in LIVELY)
    space = f' xmlns="{NAMESPACE}"' if name == "svg" else ""
    inside = [_written(part, deep - 1) for part in element if part.tag != f"{{{NAMESPACE}}}style"]
    said = escape(element.text or "") if name == "text" else ""
    return f"<{name}{space}{attributes}>{said}{''.join(inside)}</{name}>"


def _attribute(element: str, name: str, value: str) -> str:
    form = PERMITTED[element].get(name)
    if form is None or not form.fullmatch(value):
        raise _Foreign(name)
    return f' {name}="{spoken(value)}"'
