"""What a page may hold of a stranger's text: told by a parser of its own, not by the sanitizer that made it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

from bleach._vendor import html5lib
from nbformat.v4 import new_notebook

from grader.classroom.grading.page import Page

VECTORS: list[str] = json.loads((Path(__file__).parent / "classroom" / "xss.json").read_text())["vectors"]
ANYWHERE = {"class", "title"}
LINK = re.compile(r"(https?://|mailto:|#text-)", re.IGNORECASE)
PICTURE = re.compile(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/=\s]+")
ALIGNED = re.compile(r"(text-align: ?[a-z-]+;?)?$")
CLASSES = re.compile(r"|highlight|hl-python|anchor-link|tex2jax_ignore|[a-z]{1,2}[a-z0-9]?|ansi-[a-z-]+")
OF_A_TAG = {
    "a": {"href": LINK, "rel": re.compile("noopener noreferrer")},
    "img": {"src": PICTURE, "alt": re.compile(".*", re.DOTALL)},
    "ol": {"start": re.compile(".*", re.DOTALL)},
    "details": {"open": re.compile(".*", re.DOTALL)},
    "td": {"style": ALIGNED},
    "th": {"style": ALIGNED},
    **{f"h{k}": {"id": re.compile("text-.*", re.DOTALL)} for k in range(1, 7)},
}
TAGS = {*OF_A_TAG, "abbr", "b", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "hr", "i", "kbd"}
TAGS |= {"li", "p", "pre", "q", "s", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "thead"}
TAGS |= {"tr", "u", "ul"}


def page(*cells) -> str:
    """The notebook as a feedback page: the part with the cells."""
    return Page(template_name="basic").from_notebook_node(new_notebook(cells=list(cells)))[0]


def foreign(html: str) -> Iterator[str]:
    """What is in a piece of HTML that no text may bring into a page."""
    for element in html5lib.parseFragment(html, treebuilder="dom", namespaceHTMLElements=False).childNodes:
        yield from _foreign(element)


def _foreign(node) -> Iterator[str]:
    if node.nodeType != node.ELEMENT_NODE:
        if node.nodeType != node.TEXT_NODE:
            yield f"node {node.toxml()[:80]}"
        return
    tag = node.tagName
    if tag not in TAGS:
        yield f"<{tag}>"
    for name, value in node.attributes.items():
        if name == "class":
            yield from (f"class {one}" for one in value.split() if not CLASSES.fullmatch(one))
        elif name not in ANYWHERE and not OF_A_TAG.get(tag, {}).get(name, _NOTHING).match(value):
            yield f"<{tag} {name}={value[:80]}>"
    for child in node.childNodes:
        yield from _foreign(child)


_NOTHING = re.compile(r"(?!)")


def png(width: int, height: int) -> str:
    """The beginning of a picture that claims to be so large, in base64."""
    import struct
    import zlib

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes((width + 1) * min(height, 8))))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")).decode()
