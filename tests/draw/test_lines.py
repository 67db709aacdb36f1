"""Lines on log scales: their ends, and where the first crosses another."""

import re

import pytest

from grader import draw


def test_a_crossing_of_two_powers_is_exact():
    at = [2.0**k for k in range(8)]
    told = repr(draw.growth(at, {"cubes": [x**3 for x in at], "flat": [1000.0] * 8}, "tokens", "s", "title"))
    assert told.splitlines() == [
        "title",
        "  at 1 and 128 tokens",
        "  cubes: 1 → 2,100,000 s",
        "  flat: 1,000 → 1,000 s",
        "  cubes = flat at 10 tokens",
    ]


def test_each_line_and_each_crossing_is_drawn():
    picture = draw.growth([1, 10], {"up": [1, 10], "down": [10, 1], "above": [20, 20]}, "n", "B")
    assert [line.get_gid() for line in picture.figure.axes[0].lines] == ["up", "down", "above", "crossing"]


def test_the_label_of_the_lines_is_level_and_begins_in_the_picture():
    svg = draw.growth([1, 10], {"up": [1, 10]}, "n", "megabytes that each device sends").svg()
    (text,) = re.findall(r"<text ([^>]*)>megabytes that each device sends</text>", svg)
    assert float(re.search(r'x="([^"]+)"', text)[1]) > 0 and "text-anchor" not in text


@pytest.mark.parametrize("at, y", [([1], [1]), ([1, 2], [1]), ([1, 2], [0, 1])])
def test_what_has_no_place_on_a_log_scale_is_refused(at, y):
    with pytest.raises(ValueError, match="above zero"):
        draw.growth(at, {"line": y}, "n", "B")
