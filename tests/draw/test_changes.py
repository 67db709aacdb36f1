"""A change of layout: the facts, their text, and what is drawn."""

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader import communication, draw
from grader.arrays.blocks import blocks
from grader.arrays.meshes import make_mesh, put
from grader.draw.changes import changed

MESH = {"x": 4, "y": 2}


def layout(spec, shape=(16, 16), **more):
    return blocks(shape, spec, MESH, **more)


@pytest.mark.parametrize(
    "before, after, arriving",
    [
        (P("x"), P(None, "x"), 48),
        (P("x"), P("x", "y"), 0),
        (P("x", "y"), P(), 224),
        (P("x"), P("x", None), 0),
    ],
)
def test_what_must_arrive_follows_from_the_layouts(before, after, arriving):
    assert changed(layout(before), layout(after)).arriving == (arriving,) * 8


def test_devices_may_lack_different_amounts():
    lacking = changed(layout(P("x", "y")), layout(P("y", "x"))).arriving
    assert lacking[0] == 16 and max(lacking) == 32 and len(lacking) == 8


def test_another_shape_or_a_sum_has_no_such_number():
    assert changed(layout(P("x")), layout(P(), (16,))).arriving is None
    assert changed(layout(P(), partial_over=("y",)), layout(P())).arriving is None


def test_a_report_says_where_fewer_devices_exchange_than_the_axis_has():
    mesh = make_mesh(MESH)
    v = put(np.arange(512, dtype=np.float32).reshape(16, 32), P("x", "y"), mesh)
    turned = jax.jit(lambda v: v + 1, out_shardings=NamedSharding(mesh, P("y", "x")))
    report = communication(turned, v)
    assert "all_to_all over x: 128 B (in groups of 2)" in repr(draw.change(v, turned(v), report))
    assert "over x (in groups of 2): 128 B sent per device" in repr(report)


def test_a_report_says_what_moves_and_real_arrays_are_drawn():
    mesh = make_mesh(MESH)
    rows = put(np.arange(256, dtype=np.float32).reshape(16, 16), P("x"), mesh)

    def turned(v):
        return lax.with_sharding_constraint(v, NamedSharding(mesh, P(None, "x")))

    picture = draw.change(rows, jax.jit(turned)(rows), communication(turned, rows), device=5)
    assert "→ all_to_all over x: 192 B" in repr(picture) and "48 are missing" in repr(picture)
    framed = [patch.get_gid() for ax in picture.figure.axes for patch in ax.patches if not patch.get_fill()]
    assert framed == ["held by 5", "device 5, held by 5"] * 2
    assert picture.svg().startswith("<svg") and picture.svg() == picture.svg()


def filled(picture):
    """For the arrays before and after: their filled rectangles, by corner."""
    return [
        {patch.get_xy(): patch.get_facecolor() for patch in ax.patches if patch.get_facecolor()[3]}
        for ax in (picture.figure.axes[0], picture.figure.axes[2])
    ]


def test_a_piece_has_the_colour_of_the_block_that_it_was_in():
    before, after = filled(draw.change(layout(P("x")), layout(P(None, "x"))))
    assert len(before) == 4 and len(after) == 16
    assert all(after[across, down] == before[0, down] for across, down in after)


def test_other_data_has_its_own_colours():
    before, after = filled(draw.change(layout(P("x")), layout(P("x"), (16,))))
    assert len(before) == len(after) == 4


def test_nothing_sent_is_said():
    told = repr(draw.change(layout(P("x")), layout(P("x", "y")), title="a title"))
    assert told.startswith("a title\nbefore\n") and "→ nothing is sent" in told


@pytest.mark.parametrize(
    "before, after, between, words",
    [
        (layout(P("x")), blocks((16, 16), P(), {"x": 2}), "", "8 devices, after on 2"),
        (layout(P(), (2, 2, 2)), layout(P(), (2, 2, 2)), "", "at most two dimensions"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(before, after, between, words):
    with pytest.raises(ValueError, match=words):
        draw.change(before, after, between)


def test_what_stands_between_is_text_or_a_report():
    with pytest.raises(TypeError, match="texts or a report, not a int"):
        draw.change(layout(P()), layout(P()), 3)
