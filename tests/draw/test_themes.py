"""Pictures on a light page and on a dark one."""

import re
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from contrast import contrast
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Patch
from matplotlib.text import Text

from grader import draw
from grader.draw import svg
from grader.draw.picture import FAINT, INK, PAGE, QUIET, WRONG

ONES, TWOS = (draw.blocks((4, 2), P("x"), {"x": 4}, value=np.full((4, 2), k)) for k in (1, 2))
AUTO = (jax.sharding.AxisType.Auto,)


def summed():
    """A program of a vector, and one for it."""
    line = jax.make_mesh((2,), ("x",), axis_types=AUTO)
    program = jax.shard_map(lambda v: jax.lax.psum(v, "x"), mesh=line, in_specs=P("x"), out_specs=P())
    return program, jax.device_put(np.ones(2, np.float32), jax.NamedSharding(line, P("x")))


def explicit(axis):
    """A vector whose type says that it is cut over this axis."""
    mesh = jax.make_mesh(
        (2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2, devices=jax.devices()[:4]
    )
    return jax.device_put(np.ones(4, np.float32), jax.NamedSharding(mesh, P(axis)))


PICTURES = {
    "contributions": lambda: draw.contributions(
        {0: [1], 1: [2]}, {"P()": {0: [(0, 1, [1])], 1: [(0, 1, [2])]}}, "title"
    ),
    "crossings": lambda: draw.crossings(3, "title"),
    "descent": lambda: draw.descent(lambda w, rows: ((w - rows) ** 2).mean(), 8, [[1, 3], [3, 5]], 1, "title"),
    "dimensions": lambda: draw.dimensions(
        {"stops": ("i,i->i", {"rows": explicit("x"), "of y": explicit("y")})}, "title"
    ),
    "exchanges": lambda: draw.exchanges({0: [("sum", 1, 4)], 1: [("max", 3, 4)]}, "title"),
    "fits": lambda: draw.fits(np.arange(4), np.ones((4, 1)), np.arange(4) / 3, summed()[1], "title"),
    "flow": lambda: draw.flow(*summed(), title="title"),
    "growth": lambda: draw.growth([1, 10], {"up": [1, 10], "down": [10, 1]}, "n", "B", "title"),
    "hosts": lambda: draw.hosts({0: [0, 1], 1: [2, 3]}, "title"),
    "ladder": lambda: draw.ladder({"HBM": 1e12, "DCN": 1e9}, "B/s", "title"),
    "sharding": lambda: draw.sharding((4, 4), P("x"), {"x": 2, "y": 2}, "title"),
    "lanes": lambda: draw.lanes(2, [draw.Meeting("psum", (0, 1)), draw.Meeting("psum", (0,), (1,))], "title"),
    "lattice": lambda: draw.lattice(["x", "y"], "title"),
    "mapped": lambda: draw.mapped(*summed(), title="title"),
    "mirror": lambda: draw.mirror({"psum": summed()[0]}, summed()[1], "title"),
    "pod": lambda: draw.pod("v5e:4x4", {"x": 16}, axis="x"),
    "puzzle": lambda: draw.puzzle("figure"),
    "matmul_cases": lambda: draw.matmul_cases({"case 3": (P(None, "x"), P("x"), P())}, {"x": 2}, 1),
    "spans": lambda: draw.spans({"wire": [("gather", 0, 8)], "chip": [("multiply", 8, 20)]}, "µs", "title", {"now": 9}),
    "stripes": lambda: draw.stripes({"in order": ["q0", "q1", "k0", "k1"]}, 2, "title"),
    "bias once": lambda: draw.bias_once(np.float32([1, 2]), -3, "title"),
    "bars": lambda: draw.bars({"copies": {"weights": 4, "Adam": 8}, "shards": 3}, "GB", "title"),
    "buffers": lambda: draw.buffers({"What happened?": ([[1, 2], [3, 4]], [[4, 6], [4, 6]])}),
    "calls": lambda: draw.calls(jax.jit(lambda a: a + 1), {"one": [1], "half": [0.5]}, "title"),
    "change": lambda: draw.change(ONES, TWOS, "nothing", device=0),
    "compare": lambda: draw.compare(ONES, TWOS),
    "levels": lambda: draw.levels({"all": [2.0, 2.0], "in turn": [1.0, 1.0]}, "layers"),
    "curves": lambda: draw.curves({"one": [4.0, 2.0], "eight": [4.0, 3.0]}, against="one"),
    "dispatch": lambda: draw.dispatch([[1, 1], [0, 1]], 1, "title"),
    "film": lambda: draw.film([[0, None], [1, 0]], "title", blocks="A"),
    "matmul": lambda: draw.matmul(ONES, ONES, ONES, title="title"),
    "mesh": lambda: draw.mesh(jax.make_mesh((2, 2), ("x", "y")), "title"),
    "placement": lambda: draw.placement(here=np.arange(2)),
    "route": lambda: draw.route({0: (0, 0), 1: (1, 0)}, [0, 1], "title"),
    "shards": lambda: draw.shards(ONES, "title"),
    "specs": lambda: draw.specs((4, 4), [P("x"), P()], {"x": 2}, "title"),
    "table": lambda: draw.table({"sum": {"float32": "1"}}),
    "timetable": lambda: draw.timetable([["F0", "B0", "F1", "B1"], ["F0", "F1", "B0", "B1"]], "title"),
    "triangles": lambda: draw.triangles({"in order": [0, 0, 1, 1]}, "title"),
    "animation": lambda: draw.animation(draw.ring(2), "title"),
    "ways": lambda: draw.ways({"FSDP": ({"x": 2}, (P("x"), P("x"), P(None, "x")))}, 1, "title"),
}


LIGHT, DARK = ("#212121", "#ffffff"), ("#ffffff", "#111111")  # JupyterLab's text and ground


def ground(figure, text):
    """The colour of the uppermost block under the middle of a text; None where there is the page."""
    x, y = text.get_window_extent().get_points().mean(axis=0)
    under = [
        patch.get_facecolor()
        for patch in sorted(figure.findobj(Patch), key=lambda patch: patch.zorder)
        if not isinstance(patch, FancyArrowPatch)  # a line
        and patch.get_visible()
        and patch.get_facecolor()[3]
        and patch.contains_point((x, y))
    ]
    return under[-1] if under else None


@pytest.mark.parametrize("name", PICTURES)
def test_on_a_block_text_is_dark_and_elsewhere_it_has_the_pages_colour(name):
    figure = PICTURES[name]().figure
    figure.patch.set_visible(False)
    for ax in figure.axes:
        ax.patch.set_visible(False)
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    assert texts
    for text in texts:
        block, colour = ground(figure, text), to_hex(text.get_color())
        if block is None:
            assert colour in (PAGE, QUIET, WRONG), text.get_text()
        else:
            assert colour == INK and contrast(INK, block) >= 4.5, text.get_text()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_no_ground_and_nothing_that_reaches_beyond_it(name):
    shown = PICTURES[name]().svg()
    root = ElementTree.fromstring(shown)
    assert root.get("role") == "img" and root.get("aria-label") == repr(PICTURES[name]())
    assert shown == PICTURES[name]().svg() and len(shown) < 40_000
    assert {one.tag.rpartition("}")[2] for one in root.iter()} <= {"svg", "path", "text", "g", "style"}
    assert [one for one in root.iter() if {"id", "clip-path"} & set(one.attrib)] == []
    assert not {"white", "#ffffff", PAGE, QUIET, FAINT, WRONG} & set(re.findall(r'"([^"]*)"', shown))
    selectors = re.findall(r"[}{]([^{}@]+)\{(?!0%)", "".join(root.itertext("style")) if root.find("style") else "")
    assert [s for s in selectors if "many-devices" not in s] == []


@pytest.mark.parametrize("ink, page", [LIGHT, DARK])
def test_the_pages_own_colours_can_be_read(ink, page):
    """A part of the page's ink, as `color-mix` and opacity make it."""
    quiet = [0.75 * a + 0.25 * b for a, b in zip(to_rgb(ink), to_rgb(page), strict=True)]
    red, part = re.search(r"(#\w{6}) (\d+)%, currentColor", svg.THEMED[WRONG][0]).groups()
    wrong = [int(part) / 100 * a + (1 - int(part) / 100) * b for a, b in zip(to_rgb(red), to_rgb(ink), strict=True)]
    assert svg.THEMED[QUIET] == ("currentColor", ".75")
    assert min(contrast(colour, page) for colour in (ink, quiet, wrong)) >= 4.5


@pytest.mark.parametrize(
    "style",
    [
        "font: 700 9px 'DejaVu Sans', sans-serif; text-anchor: middle; fill: #222222",
        "font-weight: 700; font-size: 9px; font-family: 'DejaVu Sans'; text-anchor: middle; fill: #222222",
    ],
)
def test_letters_are_alike_whichever_matplotlib_writes_them(style):
    look = svg._look(ElementTree.fromstring(f'<text style="{style}"/>'))
    assert look == {"font-weight": "700", "font-size": "9", "text-anchor": "middle", "fill": INK}


def plain_figure():
    """As Matplotlib draws it by itself, with ticks, marks and mathematics that is none."""
    figure = Figure()
    figure.add_subplot(title="$5 < $6").plot([1, 2], [3, 4], "ok-", label="a\nb")
    figure.axes[0].legend()
    return figure


def test_any_figure_is_a_picture_in_the_pages_colours():
    shown = draw.Picture(plain_figure(), "facts").svg()
    root = ElementTree.fromstring(shown)
    assert "$5 &lt; $6" in shown and not {"#000000", "black"} & set(re.findall(r'"([^"]*)"', shown))
    marks = [one.get("transform") for one in root if one.get("transform")]
    assert len(marks) > 10 and len({one.get("d") for one in root if one.get("transform")}) == 3  # ticks two ways, dots


def test_an_image_is_no_picture():
    figure = Figure()
    figure.add_subplot().imshow([[1, 2]])
    with pytest.raises(ValueError, match="shapes and texts"):
        draw.Picture(figure, "facts").svg()


def test_pictures_are_small():
    """A whole lesson's pictures are smaller than they were as PNG: 26 kB in base64 on average."""
    assert np.mean([len(draw_it().svg()) for draw_it in PICTURES.values()]) < 8_000
