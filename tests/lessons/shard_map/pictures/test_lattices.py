"""The lattice of varying types: JAX itself says what leads where."""

import pytest

from grader import draw
from grader.lessons.shard_map.pictures.lattices import spelled_type, type_moves


def test_sums_lead_down_casts_up_and_the_rest_stays():
    found = type_moves(["x", "y"])
    for (start, end, axis), names in found.items():
        match len(start) - len(end):
            case 1:
                assert start - end == {axis} and names[:2] == ["psum", "pmax"]
            case -1:
                assert end - start == {axis} and names == ["v + axis_index", "pcast"]
            case 0:
                assert axis in start and "ppermute" in names and "all_gather" in names
    assert len(found) == 12


def test_types_are_spelled_as_jax_does():
    assert [spelled_type(frozenset(axes)) for axes in ("", "x", "yx")] == ["{}", "{V:x}", "{V:(x,y)}"]


def test_each_type_is_drawn_once_with_its_arrows():
    (ax,) = draw.lattice(["x", "y"]).figure.axes
    texts = [text.get_text() for text in ax.texts]
    assert [texts.count(kind) for kind in ("{V:(x,y)}", "{V:x}", "{V:y}", "{}  the same on all")] == [1] * 4
    assert len(ax.patches) == 4 + 8


@pytest.mark.parametrize("axes", [[], ["x", "y", "z"]])
def test_no_other_number_of_axes(axes):
    with pytest.raises(ValueError, match="one axis or two"):
        draw.lattice(axes)
