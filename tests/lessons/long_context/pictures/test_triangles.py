"""Triangles of a causal attention: who has how much to do."""

import pytest

from grader import draw
from grader.lessons.long_context.pictures.triangles import Triangle


def test_a_query_counts_for_the_device_that_has_it_and_looks_at_itself_and_all_before():
    assert Triangle((0, 0, 1, 1)).work == {0: 1 + 2, 1: 3 + 4}
    assert Triangle((0, 1, 1, 0)).work == {0: 1 + 4, 1: 2 + 3}


def test_the_text_says_the_work_of_every_device_in_every_layout():
    picture = draw.triangles({"in order": [0, 1], "back": [1, 0]}, "two tokens")
    assert repr(picture) == "two tokens\nin order: device 0 1, device 1 2\nback: device 0 2, device 1 1"
    assert picture.svg().startswith("<svg")


@pytest.mark.parametrize("layouts", [{}, {"in order": []}])
def test_without_a_token_there_is_nothing_to_draw(layouts):
    with pytest.raises(ValueError, match="nothing to draw"):
        draw.triangles(layouts)
