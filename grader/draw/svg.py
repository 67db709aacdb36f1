"""A figure as SVG that stands in a page: in the page's own letters and colours, and as small as it can be.

Matplotlib writes a file of its own: with ids, clips, a style sheet for all elements and fonts for each text, which in a
page would reach beyond the picture. Its shapes and texts are taken from it, and nothing else; nothing is clipped. Equal
figures give equal text.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import matplotlib
from matplotlib.figure import Figure
from matplotlib.text import Text

# Colours that stand for the page's own: how each is written, and how much of it is seen.
PAGE, QUIET, FAINT, WRONG = "#1f1f1f", "#5c5c5c", "#bbbbbb", "#b83227"
ALARM = "color-mix(in srgb, #d3302a 65%, currentColor)"  # red, darker on a light page and paler on a dark one
THEMED = {
    PAGE: ("currentColor", ""),
    "#000000": ("currentColor", ""),  # Matplotlib's own
    QUIET: ("currentColor", ".75"),
    FAINT: ("currentColor", ".5"),
    WRONG: (ALARM, ""),
}

FITTING = "max-width:100%;height:auto"
MARGIN = 0.06  # inches around what is drawn
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
LETTER = re.compile(r"\s*([A-Za-z])\s*")
SHORTHAND = re.compile(r"(?:(\d{3}) )?([\d.]+)px")
BOX = re.compile(r"M(\S+) (\S+)L([^L ]+) \2L\3 ([^L ]+)L\1 \4(?:L\1 \2)?z")
STROKE = {"stroke", "stroke-width", "stroke-dasharray", "stroke-opacity"}
LOOKS = {"fill", "opacity", *STROKE, "font-size", "font-weight", "text-anchor"}
# What a gid may say of a shape or a text: the devices that hold it, the step from which on it is seen; and as what.
MARKED = {re.compile(r"\bheld by ([\d ]+)"): "data-d", re.compile(r"^from step (\d+)"): "data-t"}
DEFAULTS = {"text-anchor": "start", "font-weight": "400", "stroke-width": "1", "fill": "currentColor"}


def element(size: tuple[float, float], words: str, parts: Iterable[str], style: str = "", kind: str = "") -> str:
    """A picture of this size, in points, as one element of a page.

    Args:
      size: across and down.
      words: are read to who cannot see it.
      parts: what is drawn.
      style: declarations of CSS besides its own.
      kind: the class of the element.
    """
    wide, high = size
    named = f' class="{kind}"' if kind else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg"{named} viewBox="0 0 {wide:g} {high:g}" '
        f'preserveAspectRatio="xMinYMin" width="{wide / 0.72:.0f}" height="{high / 0.72:.0f}" '
        f'style="{FITTING}{style}" fill="currentColor" role="img" '
        f'aria-label="{spoken(words)}">{"".join(parts)}</svg>'
    )


def spoken(words: str) -> str:
    """Words as an attribute's value that means the same to a reader of HTML and of XML, which makes one line of it."""
    return html.escape(words).replace("\n", "&#10;")


def drawn(figure: Figure) -> tuple[tuple[float, float], list[tuple[str, str]]]:
    """A figure's size in points, and each of its shapes and texts with the gid under which it was drawn."""
    file = io.StringIO()
    for text in figure.findobj(Text):
        text.set_parse_math(False)  # a dollar is a dollar
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg", transparent=True, bbox_inches="tight", pad_inches=MARGIN)
    root = ElementTree.fromstring(file.getvalue())
    wide, high = (round(float(length), 1) for length in root.attrib["viewBox"].split()[2:])
    marks = {f"#{path.get('id')}": path for path in root.iterfind(".//{*}defs/{*}path")}
    return (wide, high), list(_parts(root, "", marks))


def _parts(node: Element, name: str, marks: Mapping[str, Element]) -> Iterator[tuple[str, str]]:
    for child in node:
        match child.tag.rpartition("}")[2]:
            case "g":
                yield from _parts(child, child.get("id", name), marks)
            case "use":
                mark = marks[child.attrib["{http://www.w3.org/1999/xlink}href"]]
                look = {
                    "transform": f"translate({' '.join(_place(child))})",
                    **_look(mark),
                    **_look(child),
                    **_said(name),
                }
                yield name, f'<path d="{_path(mark.attrib["d"])}"{_attributes(look)}/>'
            case "path" if (look := _look(child)) and ("stroke" in look or look.get("fill") != "none"):
                yield name, f'<path d="{_path(child.attrib["d"])}"{_attributes({**look, **_said(name)})}/>'
            case "image":
                raise ValueError("a picture is made of shapes and texts; this figure has an image (from `imshow`?)")
            case "text" if child.text:
                x, y = _place(child)
                look = {"x": x, "y": y, **_look(child), **_said(name)}
                yield name, f"<text{_attributes(look)}>{html.escape(child.text.strip())}</text>\n"


def _said(name: str) -> dict[str, str]:
    return {attribute: found[1] for said, attribute in MARKED.items() if (found := said.search(name))}


def _place(node: Element) -> tuple[str, ...]:
    """Where a text or a mark stands; a line of a longer text is moved there."""
    moved = NUMBER.findall(node.get("transform", "0 0"))[:2]
    return tuple(_short(node.get(axis, by)) for axis, by in zip("xy", moved, strict=True))


def _look(node: Element) -> dict[str, str]:
    """Colours, lines and letters of a shape or a text, in the page's terms."""
    style = dict(part.strip().split(": ", 1) for part in node.get("style", "").split(";") if part.strip())
    if font := SHORTHAND.match(style.get("font", "")):  # in one, before Matplotlib 3.10
        style |= {"font-weight": font[1] or "400", "font-size": font[2]}
    look = {name: value.removesuffix("px") for name, value in style.items() if name in LOOKS}
    for paint in ("fill", "stroke"):
        if look.get(paint) in THEMED:
            look[paint], seen = THEMED[look[paint]]
            look |= {f"{paint}-opacity": seen} if seen else {}
    return {name: value for name, value in look.items() if value != DEFAULTS.get(name)}


def _attributes(look: dict[str, str]) -> str:
    return "".join(f' {name}="{value}"' for name, value in look.items())


def _path(d: str) -> str:
    path = LETTER.sub(r"\1", " ".join(NUMBER.sub(lambda match: _short(match[0]), d).split()))
    return BOX.sub(r"M\1 \2H\3V\4H\1z", path)


def _short(number: str) -> str:
    """A length in points, to a tenth of one."""
    return f"{round(float(number), 1) + 0:g}"
