"""The gallery of layouts: the facts of every panel, and that something is drawn."""

import pytest
from jax.sharding import PartitionSpec as P

from grader import draw
from grader.arrays.blocks import blocks
from grader.arrays.meshes import make_mesh

MESH = {"x": 4, "y": 2}


def test_every_panel_says_which_spec_it_shows_and_who_holds_what():
    picture = draw.specs((8, 4), [P("x"), P(None, "y")], MESH, "two ways")
    one, other = (draw.text(blocks((8, 4), spec, MESH)) for spec in (P("x"), P(None, "y")))
    assert repr(picture) == f"two ways\nP('x'): {one}\nP(None, 'y'): {other}"
    assert picture.svg().startswith("<svg")


@pytest.mark.parametrize("count, panels", [(1, 1), (4, 4), (5, 8), (9, 12)])
def test_panels_stand_four_to_a_row_and_the_rest_is_empty(count, panels):
    axes = draw.specs((8, 8), [P("x")] * count, MESH).figure.axes
    assert len(axes) == panels
    assert [bool(ax.patches) for ax in axes] == [True] * count + [False] * (panels - count)


def test_a_mesh_and_its_sizes_draw_the_same():
    specs = [P(("x", "y")), P(("y", "x"))]
    assert draw.specs((8,), specs, make_mesh(MESH)).svg() == draw.specs((8,), specs, MESH).svg()


def test_arrays_of_several_shapes_are_drawn_in_one_scale():
    panels = draw.specs([(64, 128), (128, 64)], [P("x", "y"), P("y", "x")], MESH).figure.axes
    wide, high = ([ax.get_position().bounds[k] for ax in panels] for k in (2, 3))
    assert wide[0] == pytest.approx(2 * wide[1]) and high[1] == pytest.approx(2 * high[0])


@pytest.mark.parametrize("shape", [(), (2, 4, 8)])
def test_other_ranks_are_refused_in_words(shape):
    with pytest.raises(ValueError, match="rank 1 or 2"):
        draw.specs(shape, [P()], MESH)
