"""A mesh beside a matrix: brackets name the holders, and a device has the colour of its block."""

import pytest
from jax.sharding import PartitionSpec as P

from grader import draw

MESH = {"x": 2, "y": 4}


@pytest.mark.parametrize(
    "spec, rows, columns",
    [
        (P("x", "y"), "x=0; x=1", "y=0; y=1; y=2; y=3"),
        (P(None, "x"), "whole", "x=0; x=1"),
        (P(("y", "x")), "y=0, x=0; y=0, x=1; y=1, x=0", "whole"),
    ],
)
def test_each_part_is_named_by_the_place_of_its_holders(spec, rows, columns):
    told = repr(draw.sharding((8, 8), spec, MESH)).splitlines()
    assert told[1].startswith(f"  rows: {rows}") and told[2] == f"  columns: {columns}"
    assert told[3:] == draw.text(draw.blocks((8, 8), spec, MESH)).splitlines()[1:]


def test_a_device_has_the_colour_of_the_block_that_it_holds():
    (ax,) = draw.sharding((8, 8), P("y"), MESH).figure.axes
    held = {patch.get_gid(): patch.get_facecolor() for patch in ax.patches}
    for k in range(4):
        assert held[f"held by {k}"] == held[f"held by {k + 4}"] == held[f"held by {k} {k + 4}"]
    assert len(set(held.values())) == 4


@pytest.mark.parametrize("shape, mesh", [((8,), MESH), ((8, 8), {"x": 2, "y": 2, "z": 2})])
def test_other_ranks_are_refused_in_words(shape, mesh):
    with pytest.raises(ValueError, match="a matrix is drawn beside a mesh of one axis or two"):
        draw.sharding(shape, P("x"), mesh)
