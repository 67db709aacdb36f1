"""The experiments behind lesson 16."""

import pytest

from grader.lessons.pipelines.orders import (
    gpipe_orders,
    one_f_one_b_orders,
    zb_h1_orders,
    zb_v_orders,
)
from grader.lessons.pipelines.questions import _timetable, idle_places
from grader.timetables import interleaved, simulate


@pytest.mark.parametrize("stages, pieces, idle", [(1, 5, 0), (3, 4, 6), (4, 1, 12)])
def test_a_pipelines_table(stages, pieces, idle):
    assert idle_places(stages, pieces) == (idle, stages * (stages + pieces - 1))


def test_timetables_follow_the_rule_that_the_hint_gives():
    table = _timetable(3, 4)
    assert [list(row[:6]) for row in table] == [
        [0, 1, 2, 3, None, None],
        [None, 0, 1, 2, 3, None],
        [None, None, 0, 1, 2, 3],
    ]
    assert len(_timetable(3, 4, waiting=True)[0]) == 12


@pytest.mark.parametrize("s, m", [(2, 4), (3, 6), (4, 8), (4, 12), (8, 16)])
def test_the_targets_are_what_the_papers_say(s, m):
    """GPipe (2019), Megatron-LM (2021), zero bubble (2024), at F = B = W = 1."""
    gpipe, one, rounds, h1, v = (
        simulate(orders(s, m)) for orders in (gpipe_orders, one_f_one_b_orders, interleaved, zb_h1_orders, zb_v_orders)
    )
    assert gpipe.steps == one.steps == 3 * (m + s - 1)
    assert (max(gpipe.held), max(one.held), max(h1.held), max(v.held)) == (m, s, s, s)
    assert rounds.bubble == pytest.approx((s - 1) / (2 * m + s - 1))
    assert max(rounds.held) == pytest.approx(s + (s - 1) / 2)
    assert h1.steps == 3 * m + s - 1
    assert v.steps == 6 * m + s - 1
