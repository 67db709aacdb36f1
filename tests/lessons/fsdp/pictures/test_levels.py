"""How much is held over time: the facts, and lines that show them."""

import pytest

from grader import draw

WAYS = {"all at once": [3, 3, 3, 3, 3], "piling up": [1, 2, 3, 2, 1], "in turn": [0, 1, 1, 1, 1]}


def test_levels_are_told_by_where_they_turn():
    assert repr(draw.levels(WAYS, "layers", "three ways")).splitlines() == [
        "three ways",
        "  all at once: 3, 3 layers at most",
        "  piling up: 1 → 3 → 1, 3 layers at most",
        "  in turn: 0 → 1, 1 layers at most",
    ]


def test_each_way_has_a_line_of_its_levels_from_zero_on():
    (axes,) = draw.levels(WAYS, "layers").figure.axes
    drawn = {stairs.get_gid(): stairs.get_data().values.tolist() for stairs in axes.patches}
    assert drawn == WAYS
    assert axes.get_ylim()[0] == 0 < 3 < axes.get_ylim()[1]


@pytest.mark.parametrize("ways", [{}, {"none": []}, {"long": [1, 2], "short": [1]}])
def test_levels_that_cannot_be_drawn_are_refused(ways):
    with pytest.raises(ValueError, match="moments"):
        draw.levels(ways, "layers")
