"""What is said of a layout that is not the one that is due."""

from dataclasses import replace

import pytest
from jax.sharding import PartitionSpec as P

from grader.arrays.blocks import blocks
from grader.judging.layouts import cut_by, layout_evidence

MESH = {"x": 4, "y": 2, "one": 1}


def test_an_axis_cuts_a_dimension_or_none():
    assert cut_by(blocks((8, 8), P("x"), MESH)) == {"x": 0, "y": None}
    assert cut_by(blocks((8, 8), P(None, ("y", "x")), MESH)) == {"x": 1, "y": 1}


@pytest.mark.parametrize(
    ("found", "due", "words"),
    [
        (P(None, "x"), P("x"), "`x` cuts dimension 1, and should cut dimension 0. Where in your program is that said?"),
        (P(), P("x"), "`x` cuts nothing, and should cut dimension 0. Where in your program is that said?"),
        (P("x", "y"), P("x"), "`y` cuts dimension 1, and should cut nothing. Where in your program is that said?"),
        (
            P("y", "x"),
            P("x", "y"),
            "`x` cuts dimension 1, and should cut dimension 0; `y` cuts dimension 0, and should cut dimension 1. "
            "Where in your program is that said?",
        ),
        (
            P(("y", "x")),
            P(("x", "y")),
            "The same axes cut the same dimensions, but in another order, so that devices hold one another's blocks.",
        ),
    ],
)
def test_which_axis_should_cut_another_dimension_is_told(found, due, words):
    assert layout_evidence(blocks((8, 8), found, MESH), blocks((8, 8), due, MESH)) == words


def test_of_what_no_axes_of_the_mesh_cut_nothing_is_said_of_these():
    line = {"x": 8}
    due, halves = blocks((8, 8), P("x"), line), blocks((8, 8), P("a"), {"a": 2, "b": 4})
    assert layout_evidence(replace(due, indices=halves.indices), due) == (
        "No axes of the mesh cut it so: dimension 0 is in 2 parts, and should be in 8. On which mesh is it?"
    )
    mixed = replace(due, indices=blocks((8, 8), P("a", "b"), {"a": 4, "b": 2}).indices)
    assert "The same axes" not in layout_evidence(mixed, due) and "dimension 1 is in 2 parts" in layout_evidence(
        mixed, due
    )


def test_where_one_axis_cuts_a_dimension_it_is_the_devices_that_stand_in_another_order():
    due = blocks((8, 8), P("x", "y"), MESH)
    words = layout_evidence(replace(due, indices=due.indices[::-1]), due)
    assert words.endswith("devices hold one another's blocks. In which order do they stand?")
    assert layout_evidence(due, due) == ""
