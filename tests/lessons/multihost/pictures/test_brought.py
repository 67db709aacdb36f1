"""What processes bring, and what becomes of it."""

from grader import draw

MINE = {0: [1, 2], 1: [3, 4]}
COPIES = {0: [(0, 2, [1, 2])] * 2, 1: [(0, 2, [3, 4])] * 2}
PARTS = {0: [(0, 2, [1, 2])] * 2, 1: [(2, 4, [3, 4])] * 2}


def framed(made):
    (ax,) = draw.contributions(MINE, made).figure.axes
    return [patch.get_gid() for patch in ax.patches if patch.get_linewidth() == 2]


def test_copies_that_differ_are_framed_and_parts_are_not():
    assert framed({"P('data')": PARTS}) == []
    assert framed({"P('data')": PARTS, "P()": COPIES}) == 2 * ["P(): process 1 [0:2] = 3 4, which differs"]


def test_the_facts_say_who_brings_and_who_holds():
    told = repr(draw.contributions(MINE, {"P()": COPIES}, "two")).splitlines()
    assert told[:2] == ["two", "brings: process 0 1 2; process 1 3 4"]
    assert told[2].startswith("P(): process 0 [0:2] = 1 2; process 0 [0:2] = 1 2; process 1 [0:2] = 3 4, which differs")
