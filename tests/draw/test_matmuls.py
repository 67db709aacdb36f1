"""Products of sharded matrices, drawn: one device's blocks are in colour."""

import itertools

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from matplotlib.colors import to_hex

from grader import draw
from grader.arrays.blocks import blocks
from grader.arrays.meshes import make_mesh, put
from grader.draw.picture import COLOURS

MESH = {"x": 4, "y": 2}
PAIR = [
    blocks((8, 6), P("x"), MESH),
    blocks((6, 12), P(None, "y"), MESH),
    blocks((8, 12), P("x", "y"), MESH),
    blocks((12, 10), P("y"), MESH),
    blocks((8, 10), P("x"), MESH, partial_over=("y",)),
]


def coloured(picture):
    """The colour of each block that has one, by who holds it."""
    (ax,) = picture.figure.axes
    return [(patch.get_gid(), to_hex(patch.get_facecolor())) for patch in ax.patches if patch.get_facecolor()[3]]


def texts(picture):
    return [text.get_text() for text in picture.figure.axes[0].texts]


def test_only_what_one_device_holds_is_in_colour_and_each_array_has_its_own():
    found = coloured(draw.matmul(*PAIR, device=5))
    holders = [set(gid.removeprefix("held by ").split()) for gid, _ in found]
    assert holders == [{"4", "5"}, {"1", "3", "5", "7"}, {"5"}, {"5"}, {"1", "3", "5", "7"}, {"4", "5"}]
    x, w1, hidden, w2, result = COLOURS[:5]
    assert [colour for _, colour in found] == [x, w1, hidden, hidden, w2, result]


def test_the_second_product_stands_below_the_first_and_takes_what_that_made():
    picture = draw.matmul(*PAIR, names=("x", "W1", "hidden", "W2", "result"))
    assert [text for text in texts(picture) if text in ("·", "=")] == ["·", "=", "·", "="]
    assert texts(picture).count("hidden") == 2 and "result  Σ y" in texts(picture)
    assert [line.split(":")[0] for line in repr(picture).splitlines() if " over " in line] == [
        "x", "W1", "hidden", "W2", "result"
    ]  # fmt: skip


def test_real_arrays_are_drawn():
    a = put(np.ones((4, 8), np.float32), P(None, "y"), make_mesh(MESH))
    picture = draw.matmul(a, a.T, blocks((4, 4), P(), MESH, partial_over=("y",)), title="a title")
    assert repr(picture).startswith("a title\nA: 4×8 over") and picture.svg().startswith("<svg")


def test_the_signs_of_a_product_stand_between_its_matrices():
    figure = draw.matmul(*PAIR[:3]).figure
    figure.draw_without_rendering()
    (ax,) = figure.axes
    edges = sorted({(patch.get_x(), patch.get_x() + patch.get_width()) for patch in ax.patches})
    for sign in (text for text in ax.texts if text.get_text() in ("·", "=")):
        reach = sign.get_window_extent().transformed(ax.transData.inverted())
        assert all(right <= reach.x0 or reach.x1 <= left for left, right in edges), sign.get_text()


@pytest.mark.parametrize(
    ("arrays", "options", "said"),
    [
        (PAIR[:2], {}, "2 arrays and 5 names"),
        (PAIR[:4], {}, "4 arrays"),
        (PAIR, {"names": "ABC"}, "5 arrays and 3 names"),
        (PAIR[:3], {"device": 8}, "0 to 7; there is no device 8"),
    ],
)
def test_what_is_no_product_is_refused_in_words(arrays, options, said):
    with pytest.raises(ValueError, match=said):
        draw.matmul(*arrays, **options)


def test_a_wide_product_is_drawn_smaller():
    small, large = (draw.matmul(*itertools.repeat(blocks((n, n), P("x"), MESH), 3)).figure for n in (8, 16))
    assert large.get_figwidth() < 11 and small.get_figwidth() < large.get_figwidth()
