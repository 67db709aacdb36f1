"""Timetables drawn: the text is the table, and every piece of work is there."""

import pytest
from matplotlib.patches import Rectangle

from grader import draw

PAIR = [["F0", "F1", "B0", "B1"], ["F0", "B0", "F1", "B1"]]


def test_every_piece_of_work_is_drawn_in_its_microbatchs_colour():
    picture = draw.timetable(PAIR, "a pair")
    assert repr(picture).startswith("a pair\ndevice 0 │ F0 F1 ·")
    works = [p for p in picture.figure.findobj(Rectangle) if p.get_facecolor()[3] and p.get_width() < 1]
    assert len(works) == 8 and len({p.get_facecolor() for p in works}) == 2


def test_orders_that_come_to_a_halt_are_drawn_up_to_there():
    picture = draw.timetable([["F0", "B0"], ["B0", "F0"]])
    assert "Deadlock: every device with work left is waiting." in repr(picture)
    assert "device 0 │ F0" in repr(picture)


def test_the_same_timetable_is_drawn_alike_every_time():
    assert draw.timetable(PAIR).svg() == draw.timetable(draw.simulate(PAIR)).svg()


def test_rows_may_have_names_of_their_own():
    picture = draw.timetable([["F0"], ["F0"]], rows=("first half", "second half"))
    assert repr(picture).startswith("first half │ F0 ·\nsecond half │ ·  F0")
    with pytest.raises(ValueError, match="2 rows to name, and 1 names"):
        draw.timetable([["F0"], ["F0"]], rows=("all",))


def test_the_numbers_below_a_timetable_are_steps():
    assert "step" in [text.get_text() for text in draw.timetable(PAIR).figure.axes[0].texts]
