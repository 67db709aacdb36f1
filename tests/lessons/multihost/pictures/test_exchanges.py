"""What processes bring to exchanges, and what they take it for."""

import pytest

from grader import draw

MIXED = {0: [("sum", 1, 8), ("max", 1, 7)], 1: [("sum", 5, 8), ("max", 3, 7)], 2: [("max", 2, 8), ("sum", 7, 7)]}


def test_every_exchange_and_every_belief_is_told():
    told = repr(draw.exchanges(MIXED, "mixed up")).splitlines()
    assert told[0] == "mixed up" and told[1] == (
        "  exchange 1: process 0 brings 1 for the sum; process 1 brings 5 for the sum; process 2 brings 2 for the max; "
        "they take 8"
    )
    assert told[3] == "  process 0 says: sum 8, max 7" and told[-1] == "  process 2 says: sum 7, max 8"


def test_who_asks_for_something_else_is_framed():
    (ax,) = draw.exchanges(MIXED).figure.axes
    framed = [patch.get_gid() for patch in ax.patches if patch.get_linewidth() == 2]
    assert framed == ["exchange 1: process 2 asks for the max", "exchange 2: process 2 asks for the sum"]
    colours = {p.get_gid(): p.get_facecolor() for p in ax.patches if p.get_gid() and p.get_linewidth() < 1}
    assert colours["exchange 1: process 0"] == colours["exchange 2: process 2"] != colours["exchange 1: process 2"]


def test_what_is_taken_may_differ():
    assert "they take 4, 5" in repr(draw.exchanges({0: [("sum", 1, 4)], 1: [("max", 3, 5)]}))


def test_all_have_called_equally_often():
    with pytest.raises(ValueError, match="process 0 has 1, process 1 has 0"):
        draw.exchanges({0: [("sum", 1, 1)], 1: []})
