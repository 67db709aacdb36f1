"""Pictures: the facts they are drawn from, their text, and that something is drawn."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader import draw
from grader.arrays.blocks import blocks, blocks_of
from grader.arrays.meshes import make_mesh, put

MESH = {"x": 4, "y": 2}


@pytest.mark.parametrize(
    "spec", [P("x", "y"), P("y", "x"), P(None, "x"), P(("x", "y")), P(("y", "x")), P(), P("x"), P(None, ("y", "x"))]
)
def test_hypothetical_blocks_are_those_of_jax(spec):
    value = np.arange(16 * 8).reshape(16, 8)
    thought, real = blocks((16, 8), spec, MESH, value=value), blocks_of(put(value, spec, make_mesh(MESH)))
    assert thought.indices == real.indices
    assert all(map(np.array_equal, thought.values, real.values))


def test_text_says_who_holds_what():
    assert draw.text(blocks((4, 6), P("y"), MESH, partial_over=("x",))) == (
        "4×6 over x=4, y=2, parts of a sum over x\n"
        "  [0:2, 0:6] on devices 0, 2, 4, 6\n"
        "  [2:4, 0:6] on devices 1, 3, 5, 7"
    )


def test_lengths_that_cannot_be_cut_say_so():
    with pytest.raises(ValueError, match="10 entries cannot be cut into 4 equal parts over x"):
        blocks((10,), P("x"), MESH)


@pytest.mark.parametrize("shape", [(), (8,), (4, 6), (2, 4, 6)])
def test_every_rank_up_to_three_is_drawn(shape):
    held = blocks(shape, P(), MESH, value=np.arange(np.prod(shape, dtype=int)).reshape(shape))
    for picture in (draw.shards(held, "title"), draw.devices(held)):
        assert picture.svg().startswith("<svg") and len(picture.svg()) < 100_000
        assert "devices 0, 1, 2" in repr(picture)


def test_what_differs_is_framed():
    expected = blocks((4, 2), P("x"), MESH, value=np.ones((4, 2)))
    found = blocks((4, 2), P("x"), MESH, value=np.ones((4, 2)) + (np.arange(4) == 1)[:, None])
    (sheet,) = draw.compare(expected, found).figure.axes
    framed = [patch.get_gid() for patch in sheet.patches if patch.get_linewidth() > 1]
    assert framed == ["devices 2, 3, held by 2 3"]


def test_devices_that_hold_the_same_are_drawn_once():
    expected, found = (blocks((4, 2), spec, MESH, value=np.ones((4, 2))) for spec in (P(), P("x")))
    (sheet,) = draw.compare(expected, found).figure.axes
    names = [text.get_text() for text in sheet.texts if "device" in text.get_text()]
    assert names == ["devices 0–7", "devices 0, 1", "devices 2, 3", "devices 4, 5", "devices 6, 7"]


def colours(picture):
    (sheet,) = picture.figure.axes
    return [patch.get_facecolor() for patch in sheet.patches]


def test_devices_with_the_same_numbers_share_a_colour_wherever_they_lie():
    rolled = np.tile(np.arange(4.0), 4).reshape(8, 2)  # 0 1, 2 3, 0 1 …
    one, other, *rest = colours(draw.devices(blocks((8, 2), P(("x", "y")), MESH, value=rolled)))
    assert one != other and rest == 3 * [one, other]


def test_no_number_is_the_same_as_no_number():
    held = blocks((2,), P(), MESH, value=np.array([1, np.nan]))
    picture = draw.devices(held)
    assert len(set(colours(picture))) == 1 and "no copies" not in repr(picture)


def test_parts_of_a_sum_are_different_data():
    one, other, *rest = colours(draw.devices(blocks((4,), P(), MESH, partial_over=("y",))))
    assert one != other and rest == 3 * [one, other]


def test_copies_that_are_none_are_framed_and_named():
    held = blocks((2,), P(), MESH, value=np.ones(2))
    liar = dataclasses.replace(held, values=tuple(np.full(2, d // 4) for d in range(8)))
    picture = draw.devices(liar)
    assert "no copies, whatever the layout says: devices 0, 1, 2, 3, 4, 5, 6, 7" in repr(picture)
    assert len(set(colours(picture))) == 2 and "no copies" not in repr(draw.devices(held))
    assert {patch.get_linewidth() for patch in picture.figure.axes[0].patches} == {2}


def test_other_things_are_refused_in_words():
    with pytest.raises(TypeError, match="a jax.Array or of Blocks, not of a list"):
        draw.shards([1, 2])
    assert "one device" in draw.text(jax.device_put(jnp.ones(3), jax.devices()[0]))
