"""Ladders: bars on a log scale, and how many times each is less than the one above."""

import pytest

from grader import draw
from grader.lessons.cost.pictures.ladders import DECADE


def test_a_rung_is_told_with_its_distance():
    assert repr(draw.ladder({"a": 3e9, "b": 2e3}, "B/s")) == "  a: 3e+09 B/s\n  b: 2e+03 B/s, 1,500,000 times less"


def test_ten_times_as_much_is_always_as_long():
    (ax,) = draw.ladder({"a": 1e6, "b": 1e5, "c": 1e3}, "B/s").figure.axes
    a, b, c = (patch.get_width() for patch in ax.patches)
    assert (a - b, b - c) == pytest.approx((DECADE, 2 * DECADE)) and c > 0


@pytest.mark.parametrize("rungs", [{}, {"a": 1, "b": 2}, {"a": 0}])
def test_a_ladder_goes_down_and_never_to_nothing(rungs):
    with pytest.raises(ValueError, match="above zero, the largest first"):
        draw.ladder(rungs, "B")
