"""One step of data parallel training, drawn: one colour after the update, or one for each device."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from grader import draw
from grader.draw.picture import OF_KIND
from grader.lessons.data_parallel.pictures.descents import HEADS

ROWS = [[1, 3], [3, 5], [8, 10]]


def half_square(weight, rows):
    return ((weight - rows) ** 2).mean() / 2


def columns(picture):
    """Of each panel, by column from the left, what is written on its boxes and in which colours; a bar is one box."""
    (ax,) = picture.figure.axes
    words = {tuple(np.round(text.get_position(), 3)): text.get_text() for text in ax.texts}
    boxes = [(p.get_x(), p.get_y(), p.get_width(), p.get_height(), to_hex(p.get_facecolor())) for p in ax.patches]
    last = max(y + high for _, y, _, high, _ in boxes)
    found = ({}, {})
    for x, y, wide, high, colour in boxes:
        middle = tuple(np.round((x + wide / 2, y + high / 2), 3))
        found[y > last / 2].setdefault(x, []).append((words[middle], colour))
    return [[panel[x] for x in sorted(panel)] for panel in found]


def test_a_step_is_that_of_all_rows_and_without_the_mean_each_device_follows_its_own():
    facts = repr(draw.descent(half_square, 8, ROWS, 1)).splitlines()
    assert facts[-2:] == [
        f"  pmean: gradient 3 → weight {np.mean(ROWS):g}, on all devices",
        "  without the pmean: weights 2, 4, 9",
    ]


def test_what_all_have_in_common_has_one_colour_and_what_is_a_devices_own_has_its():
    together, apart = columns(draw.descent(half_square, 8, ROWS, 1, "a title"))
    kinds = [len({colour for _, colour in column}) for column in together]
    assert kinds == [3, 1, 3, 3, 1, 1, 1] and len(together) == len(HEADS)
    own = [colour for _, colour in together[0]]
    assert [colour for _, colour in together[3]] == own
    assert together[4] == [("pmean", OF_KIND["all_reduce"])]
    assert [words for words, _ in together[6]] == ["5"] * 3
    assert apart[-1] == list(zip(["2", "4", "9"], own, strict=True)) and len(apart) == len(HEADS) - 2
    one_each = [column[0][1] for column in (together[1], *together[4:])]
    assert len({*own, *one_each}) == 3 + len(one_each)


@pytest.mark.parametrize("rows", [[], [[1]], [[k] for k in range(5)]])
def test_a_device_must_have_a_colour_of_its_own(rows):
    with pytest.raises(ValueError, match=f"2 to 4 devices.*here are {len(rows)}"):
        draw.descent(half_square, 8, rows, 1)
