"""Drawings in a hand-in's outputs: the course's own are shown, and nothing else that calls itself SVG."""

import re

import pages
import pytest
from bleach._vendor import html5lib
from jax.sharding import PartitionSpec as P
from matplotlib.figure import Figure

from grader import draw
from grader.classroom.grading.display import LEFT_OUT, harmless_outputs
from grader.classroom.grading.drawings import MOST_DRAWN, drawing_in

EVIL = "steal()"


def plain_figure():
    figure = Figure()
    figure.add_subplot(title="as Matplotlib draws it").plot([1, 2], "o--")
    return figure


OURS = draw.compare(*(draw.blocks((4, 2), spec, {"x": 4}) for spec in (P("x"), P())))._repr_html_()
SVG = OURS[OURS.index("<svg") : OURS.index("</svg>") + len("</svg>")]
DRAWN = {  # when a test asks for it: all that collect the tests read this
    "blocks": lambda: OURS,
    "movie": lambda: draw.turning(draw.ring(3))._repr_html_(),
    "mesh": lambda: draw.groups({"x": 2, "y": 2, "z": 2}, "x")._repr_html_(),
    "curves": lambda: draw.curves({"one": [4.0, 2.0], "a<b> & $5": [4.0, 3.0]}, against="one")._repr_html_(),
    "any figure": lambda: draw.Picture(plain_figure(), "facts")._repr_html_(),
    "route": lambda: draw.route({0: (0, 0), 1: (1, 0)}, [0, 1])._repr_html_(),
}


def inside(markup: str) -> str:
    """Our drawing with this in it."""
    return SVG.replace("</svg>", f"{markup}</svg>")


def with_attribute(attribute: str, tag: str = "path") -> str:
    return SVG.replace(f"<{tag} ", f"<{tag} {attribute} ", 1)


@pytest.mark.parametrize("name", DRAWN)
def test_what_the_course_draws_is_shown(name):
    drawn = DRAWN[name]()
    found, html = drawing_in(drawn), drawn.partition("</svg>")[0]
    assert drawing_in(found) == found
    for attribute in ("aria-label", "viewBox"):
        assert re.findall(rf'{attribute}="[^"]*"', found) == re.findall(rf'{attribute}="[^"]*"', html)
    for part in ("<path", "<text"):
        assert found.count(part) == html.count(part) > 0
    assert not re.search(r"<style|class=|--t", found)


def test_of_a_film_all_steps_are_shown_one_below_the_other():
    found = drawing_in(DRAWN["movie"]())
    assert [f">step {k}<" in found for k in range(4)] == [True, True, True, False] and "hidden" not in found


HOSTILE = {
    "script": inside(f"<script>{EVIL}</script>"),
    "style": with_attribute('style="position:fixed;inset:0"'),
    "a style sheet": inside("<style>body{display:none}</style>"),
    "event": with_attribute(f'onclick="{EVIL}"'),
    "event on top": with_attribute(f'onload="{EVIL}"', "svg"),
    "link": inside('<a href="https://evil.example"><text x="1" y="1">x</text></a>'),
    "javascript": inside(f'<a xmlns:l="http://www.w3.org/1999/xlink" l:href="javascript:{EVIL}"><text>x</text></a>'),
    "html": inside(f'<foreignObject><body xmlns="http://www.w3.org/1999/xhtml" onload="{EVIL}"/></foreignObject>'),
    "another namespace": inside(f'<img xmlns="http://www.w3.org/1999/xhtml" src="x" onerror="{EVIL}"/>'),
    "image": inside('<image href="https://evil.example/x.png"/>'),
    "use": inside('<use href="https://evil.example/x.svg#y"/>'),
    "animation": inside(f'<set attributeName="onclick" to="{EVIL}"/>'),
    "a title, which is HTML": inside(f"<title>&lt;img src=x onerror={EVIL}&gt;</title>"),
    "address": with_attribute('filter="url(https://evil.example)"'),
    "address as a colour": SVG.replace("#96d9ff", "url(https://evil.example#x)"),
    "name": with_attribute('id="notebook"'),
    "class": with_attribute('class="cell"'),
    "declarations": SVG.replace("height:auto", "height:auto;position:fixed;inset:0"),
    "entities": "<!DOCTYPE svg [<!ENTITY a 'aaaaaaaa'>]>" + SVG,
    "entities inside": inside("<!DOCTYPE x>"),
    "comment": inside(f"<!-- --><x/><!--><img src=x onerror={EVIL}>-->"),
    "CDATA": inside(f"<text><![CDATA[<img src=x onerror={EVIL}>]]></text>"),
    "instruction": inside("<?xml-stylesheet href='https://evil.example'?>"),
    "deep": inside("<g>" * 10 + "</g>" * 10),
    "very deep": inside("<g>" * 20_000 + "</g>" * 20_000),
    "not closed": inside("<g>"),
    "beyond": f"{SVG}<img src=x onerror={EVIL}></svg>",
    "much": inside("<path d='M0 0z'/>" * (MOST_DRAWN // 10)),
    "many beginnings": "<svg" * (MOST_DRAWN // 4),
    "large": SVG.replace('width="', 'width="99999'),
    "no text": None,
    "a list": [SVG],
}


LEFT_ASIDE = ("a style sheet", "entities", "beyond")  # not looked at, and our drawing shown without it


@pytest.mark.parametrize("name", HOSTILE)
def test_what_the_course_would_not_draw_is_not_shown(name):
    """Nothing of it is left; where it is between our shapes and no shape, our drawing without it."""
    assert drawing_in(HOSTILE[name]) in ("", *[drawing_in(OURS)] * (name in LEFT_ASIDE))


@pytest.mark.parametrize("vector", pages.VECTORS)
def test_no_vector_is_a_drawing(vector):
    assert drawing_in(vector) == "" and drawing_in(inside(vector)) in ("", drawing_in(OURS))


def test_a_text_in_a_drawing_stays_a_text():
    evil = f"<img src=x onerror={EVIL}>\"'&"
    found = drawing_in(draw.devices(draw.blocks((4,), P("x"), {"x": 4}), evil)._repr_html_())
    assert "<img" not in found and found.count("&lt;img src=x onerror") == 2  # drawn, and read aloud
    tree = html5lib.parseFragment(found, treebuilder="dom", namespaceHTMLElements=False)
    assert {one.tagName for one in tree.childNodes[0].getElementsByTagName("*")} == {"path", "text"}


def test_the_page_of_a_hand_in_shows_it_with_its_facts():
    shown = {"output_type": "execute_result", "data": {"text/html": OURS, "text/plain": "facts"}}
    (output,) = harmless_outputs([shown])
    assert output.data == {"text/html": drawing_in(OURS), "text/plain": "facts"}
    (output,) = harmless_outputs([{**shown, "data": {"text/html": inside("<script/>")}}])
    assert output.data == {"text/plain": LEFT_OUT}
