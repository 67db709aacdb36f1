"""Pictures on a light page and on a dark one."""

import io

import jax
import numpy as np
import pytest
from contrast import contrast
from jax.sharding import PartitionSpec as P
from matplotlib.text import Text
from PIL import Image

from grader import draw
from grader.draw.picture import COLOURS, GROUND, INK, QUIET, WRONG

ONES, TWOS = (draw.blocks((4, 2), P("x"), {"x": 4}, value=np.full((4, 2), k)) for k in (1, 2))
PICTURES = {
    "bars": lambda: draw.bars({"copies": {"weights": 4, "Adam": 8}, "shards": 3}, "GB", "title"),
    "buffers": lambda: draw.buffers({"What happened?": ([[1, 2], [3, 4]], [[4, 6], [4, 6]])}),
    "change": lambda: draw.change(ONES, TWOS, "nothing", device=0),
    "compare": lambda: draw.compare(ONES, TWOS),
    "curves": lambda: draw.curves({"one": [4.0, 2.0], "eight": [4.0, 3.0]}, against="one"),
    "film": lambda: draw.film([[0, None], [1, 0]], "title", blocks="A"),
    "matmul": lambda: draw.matmul(ONES, ONES, ONES, "title"),
    "mesh": lambda: draw.mesh(jax.make_mesh((2, 2), ("x", "y")), "title"),
    "placement": lambda: draw.placement(here=np.arange(2)),
    "route": lambda: draw.route({0: (0, 0), 1: (1, 0)}, [0, 1], "title"),
    "shards": lambda: draw.shards(ONES, "title"),
    "specs": lambda: draw.specs((4, 4), [P("x"), P()], {"x": 2}, "title"),
    "table": lambda: draw.table({"sum": {"float32": "1"}}),
    "turning": lambda: draw.turning(draw.ring(2), "title"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_text_can_be_read_on_the_pictures_own_ground(name):
    texts = [text for text in PICTURES[name]().figure.findobj(Text) if text.get_text()]
    assert texts and [t for t in texts if contrast(t.get_color(), GROUND) < 4.5] == []


@pytest.mark.parametrize("colour", [*COLOURS, "white", GROUND])
def test_every_block_can_be_read(colour):
    assert contrast(INK, colour) >= 7


def test_the_ground_is_light_in_the_middle_of_a_side_and_open_at_the_corners():
    for picture in (PICTURES["shards"](), PICTURES["turning"]()):
        image = Image.open(io.BytesIO(picture.png())).convert("RGBA")
        wide, high = image.size
        assert {image.getpixel((x, y))[3] for x in (0, wide - 1) for y in (0, high - 1)} == {0}
        assert contrast([c / 255 for c in image.getpixel((wide // 2, 1))[:3]], GROUND) < 1.02
    assert min(contrast(ink, GROUND) for ink in (INK, QUIET, WRONG)) >= 4.5
