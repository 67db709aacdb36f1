"""Film strips: the facts of a ring, its text, its strip and the ring that moves."""

import io

import jax
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P
from PIL import Image

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
    assert len(picture.figure.axes[0].patches) == 7 and picture.png().startswith(b"\x89PNG")


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


def test_what_is_sent_is_drawn_as_arrows():
    (ax,) = draw.film(FOUR).figure.axes
    assert sum("Arrow" in type(patch).__name__ for patch in ax.patches) == 4 * 3


def test_a_moving_ring_is_one_small_picture_the_same_every_time():
    movie = draw.turning(FOUR, "a ring")
    png = movie._repr_png_()
    assert Image.open(io.BytesIO(png)).n_frames > 10 and len(png) < 300_000
    assert png == draw.turning(FOUR, "a ring").png()
    assert repr(movie) == repr(draw.film(FOUR, "a ring"))
