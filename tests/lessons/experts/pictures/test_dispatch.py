"""Pictures of buffers that fill: who stands in which slot, who is dropped, and that it is drawn."""

import pytest

from grader import draw
from grader.lessons.experts.pictures.dispatch import Dispatch

FACTS = Dispatch(((2, 2, 0, 2), (1, 1, 1, 1), (0, 1, 2, 0)), capacity=2)


def test_slots_are_taken_in_order_and_who_comes_late_is_dropped():
    assert FACTS.buffer(0, 2) == (0, 1) and FACTS.buffer(0, 1) == (None, None) and FACTS.buffer(2, 2) == (2, None)
    assert [FACTS.dropped(device) for device in range(3)] == [(3,), (2, 3), ()]


def test_the_picture_says_what_each_device_sends_and_each_expert_gets():
    lines = repr(draw.dispatch(FACTS.experts, 2, "title")).splitlines()
    assert lines[0] == "title"
    assert lines[2] == "  device 1: to 0: - -, to 1: 0 1, to 2: - -; dropped 2 3"
    assert lines[5] == "  expert 1: from 0: - -, from 1: 0 1, from 2: 1 -"


def test_there_is_a_cell_for_every_slot_on_either_side_and_for_everyone_dropped():
    (ax,) = draw.dispatch(FACTS.experts, 2).figure.axes
    assert len(ax.patches) == 2 * 3 * 3 * 2 + 3


def test_an_expert_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="experts are 0 to 1"):
        draw.dispatch([[0], [2]], 1)
