"""Pictures for who cannot see them: each one that is stored with a lesson says in words what it shows, and is sharp."""

import re
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

LESSONS = sorted((Path(__file__).parents[2] / "solutions").glob("*/*.ipynb"))
IN_TEXT = re.compile(r"!\[([^\]]*)\]\(")


class Pictures(HTMLParser):
    """What stands for each picture in a piece of HTML: "" where nothing does."""

    def __init__(self, html: str):
        super().__init__()
        self.said: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "svg" and found.get("aria-hidden") != "true":
            self.said.append(found.get("aria-label", "") if found.get("role") == "img" else "")
        if tag in ("img", "canvas"):
            self.said.append(found.get("alt") or "")


def outputs(lesson):
    for cell in nbformat.read(lesson, as_version=4).cells:
        yield from (output.get("data", {}) for output in cell.get("outputs", ()))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_every_picture_has_words(lesson):
    pages = [data["text/html"] for data in outputs(lesson) if "text/html" in data]
    said = [words for html in pages for words in Pictures(html).said]
    assert [words for words in said if len(words) <= 10] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_no_picture_is_made_of_pixels(lesson):
    """SVG is sharp on every screen; of pixels there would have to be twice as many."""
    kinds = {kind for data in outputs(lesson) for kind in data}
    assert not {kind for kind in kinds if kind.startswith("image/") and kind != "image/svg+xml"}
    pages = [data["text/html"] for data in outputs(lesson) if "text/html" in data]
    assert not [html for html in pages if re.search(r"data:image/(png|jpeg|gif)", html)]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_pictures_in_the_text_have_words(lesson):
    texts = [cell.source for cell in nbformat.read(lesson, as_version=4).cells if cell.cell_type == "markdown"]
    assert [words for text in texts for words in IN_TEXT.findall(text) if not words] == []


def test_a_course_has_pictures():
    pages = [data["text/html"] for lesson in LESSONS for data in outputs(lesson) if "text/html" in data]
    assert sum(len(Pictures(html).said) for html in pages) > 50


def test_a_picture_without_words_is_found():
    assert Pictures('<p><svg role="img" aria-label="a ring"></svg><img src="x"><svg></svg>').said == ["a ring", "", ""]
