"""Film strips: the facts of a ring, its text, its strip and the ring that moves."""

from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader import draw
from grader.arrays.meshes import make_mesh

FOUR = draw.ring(4, does=lambda t, d, k: f"A{d}{k}·B{k}", blocks="B")


def really(n, shift, start):
    """Who holds which block, by moving the blocks' numbers round a real ring."""
    pairs = [(k, (k + shift) % n) for k in range(n)]
    move = jax.shard_map(
        lambda v: lax.ppermute(v, "x", pairs), mesh=make_mesh({"x": n}), in_specs=P("x"), out_specs=P("x")
    )
    rows = [(np.arange(n) + start) % n]
    for _ in range(n - 1):
        rows.append(np.asarray(move(rows[-1])))
    return tuple(tuple(row.tolist()) for row in rows)


@pytest.mark.parametrize("n, shift, start", [(4, 1, 0), (4, -1, 1), (8, -1, 0), (3, 1, 2), (1, 1, 0)])
def test_the_film_of_a_ring_is_what_devices_do(n, shift, start):
    assert draw.ring(n, shift, start=start).holds == really(n, shift, start)


def test_a_strip_reads_as_text():
    assert repr(draw.film(FOUR, "a ring")).splitlines()[:3] == [
        "a ring",
        "step 0: device 0 B0 (A00·B0), device 1 B1 (A11·B1), device 2 B2 (A22·B2), device 3 B3 (A33·B3)",
        "  sends 0→1, 1→2, 2→3, 3→0",
    ]
    assert repr(draw.film(FOUR)).count("sends") == 3


def test_any_table_is_a_film():
    picture = draw.film([[0, (1, 2), None], ["lo", 3, "hi"]], blocks="C")
    assert (
        repr(picture) == "step 0: device 0 C0, device 1 C1 C2, device 2 nothing\n"
        "step 1: device 0 lo, device 1 C3, device 2 hi"
    )
    assert len(picture.figure.axes[0].patches) == 7 and picture.svg().startswith("<svg")


def test_a_step_may_have_another_word():
    turns = draw.Film(((0, 1), (1, 0)), blocks="C", word="turn")
    assert repr(draw.film(turns)) == "turn 0: device 0 C0, device 1 C1\nturn 1: device 0 C1, device 1 C0"
    for picture in (draw.film(turns), draw.animation(turns)):
        assert {"turn 0", "turn 1"} <= {text.get_text() for text in picture.figure.axes[0].texts}


@pytest.mark.parametrize(
    "holds, does", [((), ()), (((0, 1), (2,)), ()), (((0, 1),), (("a",),)), (((0, 1),), (("a", "b"), ("c", "d")))]
)
def test_a_table_with_holes_is_refused(holds, does):
    with pytest.raises(ValueError, match="an entry for every device at every step"):
        draw.Film(holds, does)


def test_the_same_block_has_the_same_colour_wherever_it_is():
    (ax,) = draw.film(draw.ring(3)).figure.axes
    cells = [patch.get_facecolor() for patch in ax.patches if hasattr(patch, "get_width")]
    assert cells[0] == cells[4] == cells[8] and len(set(cells)) == 3


def test_a_film_may_say_which_blocks_are_of_one_colour():
    parts = draw.Film(((("a0", "a1"), ("b0", "b1")), ("a0 + b0", "a1 + b1")), colour=lambda block: int(block[-1]))
    (ax,) = draw.film(parts).figure.axes
    cells = [patch.get_facecolor() for patch in ax.patches]
    assert cells == 3 * cells[:2] and len(set(cells)) == 2


def test_what_is_sent_is_drawn_as_arrows():
    (ax,) = draw.film(FOUR).figure.axes
    assert sum("Arrow" in type(patch).__name__ for patch in ax.patches) == 4 * 3


def test_a_movie_goes_through_its_steps_and_stands_still_at_the_first():
    """What is seen of each step, and what is on its way in it: of the last, nothing."""
    movie = draw.animation(FOUR, "a ring")
    assert repr(movie) == repr(draw.film(FOUR, "a ring"))
    root = ElementTree.fromstring(movie.svg())
    scenes = [one for one in root if one.tag.endswith("g")]
    assert [scene.get("visibility") for scene in scenes] == [None, "hidden", "hidden", "hidden"]
    assert [scene.get("style") for scene in scenes] == [f"--t:{step}" for step in range(4)]
    texts = [[one.text for one in scene if one.tag.endswith("text")] for scene in scenes]
    assert all({f"step {t}", f"A0{-t % 4}·B{-t % 4}"} <= set(told) for t, told in enumerate(texts))
    sent = [[one.text for one in scene.findall("*/*") if one.text] for scene in scenes]
    assert [sorted(names) for names in sent] == [["B0", "B1", "B2", "B3"]] * 3 + [[]]


def test_what_is_sent_arrives():
    """The way of each block on its way is the way from its device to the next."""
    travels = draw.animation(FOUR).travels
    assert list(travels)[:2] == ["sent 0 0 1", "sent 0 1 2"] and len(travels) == 12
    ends = np.array([travels[f"sent 0 {d} {(d + 1) % 4}"][1] for d in range(4)])
    np.testing.assert_allclose(ends.sum(0), 0, atol=1e-9)  # once round
    np.testing.assert_allclose(np.hypot(*ends.T), 72 * 1.2 * np.sqrt(2))


def test_a_devices_name_stands_on_the_side_away_from_the_ring():
    """The way of each block leads through the inside."""
    (ax,) = draw.animation(FOUR).figure.axes
    names = {text.get_text(): text.get_position() for text in ax.texts if text.get_text().startswith("device")}
    cells = [patch for patch in ax.patches if patch.get_gid() == "step 0"]
    left, right = min(p.get_x() for p in cells), max(p.get_x() + p.get_width() for p in cells)
    top, bottom = min(p.get_y() for p in cells), max(p.get_y() + p.get_height() for p in cells)
    assert names["device 0"][1] < top and names["device 2"][1] > bottom
    assert names["device 1"][0] > right and names["device 3"][0] < left
