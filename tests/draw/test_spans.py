"""Spans of time: to scale, in order, told."""

import pytest

from grader import draw
from grader.draw.spans import LONG

LANES = {"wire": [("gather", 0, 50), ("gather", 60, 80)], "product": [("multiply", 50, 200)]}


def test_spans_are_told_and_to_scale():
    picture = draw.spans(LANES, "µs", "title", {"end of the gather": 80})
    assert repr(picture).splitlines() == [
        "title",
        "  wire: gather 0 to 50, gather 60 to 80",
        "  product: multiply 50 to 200",
        "  end of the gather: at 80",
        "  all of it: 200 µs",
    ]
    widths = [patch.get_width() for patch in picture.figure.axes[0].patches]
    assert widths == pytest.approx([LONG * part / 200 for part in (50, 20, 150)])


def test_the_same_work_has_the_same_colour():
    first, second, other = (patch.get_facecolor() for patch in draw.spans(LANES, "µs").figure.axes[0].patches)
    assert first == second != other


@pytest.mark.parametrize(
    "lane, said",
    [([("a", 2, 1)], "end before they begin"), ([("a", 0, 2), ("b", 1, 3)], "overlap"), ([], "no lane has a span")],
)
def test_what_has_no_time_of_its_own_is_refused(lane, said):
    with pytest.raises(ValueError, match=said):
        draw.spans({"lane": lane}, "s")
