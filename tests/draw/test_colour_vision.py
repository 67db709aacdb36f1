"""Whoever looks at a picture: colours that may meet look different, and texts and lines can be seen."""

import itertools

import pytest
from colour_vision import VISIONS, ciede2000, difference
from contrast import contrast

from grader.draw.curves import LINES
from grader.draw.picture import COLOURS, INK, OF_KIND

LEAST = 12  # CIEDE2000
PAGES = ("#ffffff", "#111111")  # JupyterLab's, light and dark
# Sharma, Wu and Dalal 2005, table 1: lines 1, 7, 9, 10, 16, 17, 25 and 31.
PUBLISHED = [
    ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
    ((50, 0, 0), (50, -1, 2), 2.3669),
    ((50, 2.49, -0.001), (50, -2.49, 0.0009), 7.1792),
    ((50, 2.49, -0.001), (50, -2.49, 0.0010), 7.1792),
    ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
    ((50, 2.5, 0), (73, 25, -18), 27.1492),
    ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
]


@pytest.mark.parametrize("one, other, published", PUBLISHED)
def test_the_distance_is_the_published_one(one, other, published):
    assert ciede2000(one, other) == pytest.approx(published, abs=5e-5)
    assert ciede2000(other, one) == pytest.approx(published, abs=5e-5)


def test_who_sees_no_red_takes_red_and_green_of_equal_lightness_for_one():
    red, green = "#c05040", "#6b7a30"
    assert difference(red, green) > 40 > 10 > difference(red, green, "deuteranopia")
    assert difference("#808080", "#808080", "protanopia") == 0


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("palette", [COLOURS, LINES], ids=["blocks", "lines"])
def test_any_two_colours_that_may_meet_look_different_to_everyone(palette, vision):
    near = {pair: d for pair in itertools.combinations(palette, 2) if (d := difference(*pair, vision)) < LEAST}
    assert near == {}


@pytest.mark.parametrize("colour", COLOURS)
def test_what_is_written_on_a_block_can_be_read(colour):
    assert contrast(INK, colour) >= 4.5


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("line", LINES)
def test_a_line_is_seen_on_either_page(line, page):
    assert contrast(line, page) >= 3


def test_each_collective_has_a_block_colour_of_its_own():
    assert len(set(OF_KIND.values())) == len(OF_KIND) and set(OF_KIND.values()) <= set(COLOURS)
