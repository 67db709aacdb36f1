"""Bars side by side: the facts they are drawn from, and lengths that are to scale."""

import itertools

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

from grader import communication, draw
from grader.arrays.meshes import make_mesh, put
from grader.draw.bars import LONG, amount, looks
from grader.draw.picture import FAINT

WAYS = {"one": {"weights": 30, "gradients": 10}, "other": {"weights": 20, "gradients": 0}, "none": {}}


def lengths(picture):
    (ax,) = picture.figure.axes
    return {patch.get_gid(): patch.get_width() for patch in ax.patches if patch.get_gid()}


def test_bars_are_told_line_by_line():
    assert repr(draw.bars(WAYS, "MB", "memory")).splitlines() == [
        "memory",
        "  one: 40 MB = weights 30, gradients 10",
        "  other: 20 MB = weights 20",
        "  none: 0 MB",
    ]
    assert repr(draw.bars({"8 devices": 53.8, "1 device": 351}, "ms")) == "  8 devices: 53.8 ms\n  1 device: 351 ms"


def test_bars_are_to_one_scale():
    found = lengths(draw.bars(WAYS, "MB"))
    assert found["one: weights"] == pytest.approx(LONG * 30 / 40)
    assert found["other: weights"] == pytest.approx(LONG * 20 / 40)
    assert found["other: gradients"] == 0


def test_a_bar_without_parts_beside_one_with_parts_has_a_colour_of_its_own():
    colours = {kind: colour for kind, (colour, _) in looks(["weights", "gradients", ""]).items()}
    assert colours[""] == FAINT and len(set(colours.values())) == 3
    assert looks([""])[""][0] != FAINT


def test_a_line_stands_where_the_room_ends():
    picture = draw.bars({"small": 4, "large": 24}, "GiB", marks={"room": 16})
    assert repr(picture).splitlines()[-1] == "  room: at 16 GiB"
    small, large = lengths(picture).values()
    (line,) = picture.figure.axes[0].lines
    left = picture.figure.axes[0].patches[0].get_x()
    assert line.get_xdata()[0] - left == pytest.approx(4 * small) == pytest.approx(LONG * 16 / 24)
    assert large == LONG


def test_a_picture_without_any_bytes_is_drawn_too():
    assert draw.bars({"nothing": 0, "nor here": {}}).svg().startswith("<svg")


@pytest.mark.parametrize("bad", [{}, {"way": {"part": -1}}])
def test_what_has_no_length_is_refused(bad):
    with pytest.raises(ValueError):
        draw.bars(bad)


def test_programs_are_compared_by_collective_and_axis():
    mesh = make_mesh({"x": 4, "y": 2})
    x = put(jnp.ones((8, 8)), P("x", "y"), mesh)

    def both(v):
        return jax.lax.psum(jax.lax.psum(v, "x") + jax.lax.psum(2 * v, "x"), "y")

    def program(body, out):
        return communication(jax.shard_map(body, mesh=mesh, in_specs=P("x", "y"), out_specs=out), x)

    picture = draw.bytes_sent({"both axes": program(both, P()), "neither": program(jnp.sin, P("x", "y"))})
    block = 8 * 8 // 8 * 4
    assert repr(picture).splitlines() == [
        f"  both axes: {4 * block} B sent per device = all_reduce over x {3 * block}, all_reduce over y {block}",
        "  neither: 0 B sent per device",
    ]


@pytest.mark.parametrize(
    "size, said", [(0, "0"), (1536, "1,536"), (53.8, "53.8"), (2.4, "2.4"), (1234.5, "1,234"), (0.0123, "0.0123")]
)
def test_amounts_are_readable(size, said):
    assert amount(size) == said


def test_a_mark_may_be_another_one_for_each_bar():
    picture = draw.bars({"dp": 4, "tp": 2}, "MB", marks={"your bet": {"dp": 2, "tp": 2.2}})
    assert repr(picture).splitlines()[-1] == "  your bet: dp 2, tp 2.2 MB"
    (ax,) = picture.figure.axes
    left = ax.patches[0].get_x()
    lines = [line for line in ax.lines if line.get_gid() == "your bet"]
    assert [line.get_xdata()[0] - left for line in lines] == pytest.approx([LONG * 2 / 4, LONG * 2.2 / 4])
    (first, second), bars = (line.get_ydata() for line in lines), ax.patches
    for (above, below), bar in ((first, bars[0]), (second, bars[1])):
        assert above < bar.get_y() and below > bar.get_y() + bar.get_height()
    total = next(text for text in ax.texts if text.get_text() == "2 MB")
    assert total.get_position()[0] > left + LONG * 2.2 / 4  # beside the mark, not under it


def test_the_legend_has_the_colours_that_can_be_seen():
    picture = draw.bars({"one": {"large": 1e6, "tiny": 1}, "other": {"large": 1e5}})
    words = [text.get_text() for text in picture.figure.axes[0].texts]
    assert "large" in words and "tiny" not in words and "tiny 1" in repr(picture)


def test_bars_that_are_a_pair_stand_together():
    picture = draw.bars({"a: here": 1, "a: there": 2, "b: here": 3, "b: there": 4})
    tops = [patch.get_y() for patch in picture.figure.axes[0].patches]
    first, between, last = (below - above for above, below in itertools.pairwise(tops))
    assert first == pytest.approx(last) and between > first


def test_sizes_stand_in_the_parts_that_have_room_for_them():
    picture = draw.bars({"one": {"most": 99.5, "little": 0.5}, "two": {"most": 98}}, "%", inside=True)
    words = [text.get_text() for text in picture.figure.axes[0].texts]
    assert "99.5" in words and "0.5" not in words and "100 %" not in words
    assert words.count("%") == 1
